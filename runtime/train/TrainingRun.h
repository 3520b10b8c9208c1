// Steps of a plan that trains: fills inputs and step scalars, runs, reads the step's results. Step scalars and results
// have the names that phase train of the compiler gives them (runtime/plan/StepPorts.h).
#pragma once

#include "runtime/core/Session.h"
#include "runtime/train/LearningRate.h"
#include "runtime/train/ReadAhead.h"
#include "runtime/train/RunState.h"
#include "runtime/train/StepData.h"

namespace hpc {

/// Means over the steps of an epoch that changed something.
struct EpochReport {
  int64_t epoch = 0; ///< from 0
  int64_t steps = 0, skipped = 0;
  double loss = 0, gradientNorm = 0; ///< NaN where all steps were skipped
  double validTokens = 0;            ///< a sum; 0 where the plan counts none
};

/// The results of one step.
struct StepReport {
  int64_t step = 0;             ///< from 0
  int64_t epoch = 0, batch = 0; ///< likewise; the batch is counted in its epoch
  double learningRate = 0;
  double loss = 0;         ///< over all valid tokens of the step
  double gradientNorm = 0; ///< before clipping
  std::optional<double> validTokens;
  std::optional<int64_t> seed;     ///< where the plan draws random numbers
  std::optional<double> lossScale; ///< in this step, where the plan scales its loss
  double milliseconds = 0;
  double readerSeconds = 0; ///< of them, waited for the data
  std::optional<EpochReport> ended; ///< where it is the last step of its epoch
  /// The gradient norm was not finite: parameters and states are as they were.
  bool wasSkipped() const;
};

/// The learning rate in a step, whose epoch the data know.
inline double rateIn(int64_t step, const LearningRate &rate, const StepData &data) { return rate.at(rate.byEpoch ? data.epochOf(step) : step); }

/// Whether the plan is a training step that this loop can run: it returns a loss and a gradient norm, and needs no
/// unknown step scalar.
Status checkTrains(const plan::Plan &plan);

class TrainingRun {
public:
  /// `session` runs `plan`; both outlive the run, which begins after `state.steps`. Errors: those of checkTrains.
  static Expected<TrainingRun> create(const plan::Plan &plan, Session &session, const StepData &data,
                                      const LearningRate &rate, const RunState &state);

  /// The state before the next step.
  const RunState &state() const { return now; }
  /// The next step, with the batch and the rate of its number. In processes other than that of rank 0 the report has
  /// no numbers of the step.
  Expected<StepReport> run();
  /// Steps that changed nothing, since the last one that did; the same in all processes.
  int64_t skippedInRow() const { return skipped; }
  /// Does the last step again, and fails at the first tensor that is not finite (Session::findNotFinite). Nothing may run after it.
  Status findNotFinite() { return session->findNotFinite(inputs); }
  /// The gradients of the next step, by the names of their parameters, and its `loss`; the step changes nothing.
  /// `report` gets the step's results.
  Expected<NamedArrays> gradients(StepReport &report);

private:
  TrainingRun(const plan::Plan &plan, Session &session, const StepData &data, const LearningRate &rate,
              const RunState &state)
      : plan(&plan), session(&session), data(&data), ahead(data), rate(rate), now(state) {}
  bool has(const std::string &stepScalar) const;
  Status step(double learningRate, Outputs wanted);
  void readOutputs(StepReport &report) const;
  void addToEpoch(StepReport &report);

  const plan::Plan *plan;
  Session *session;
  const StepData *data;
  ReadAhead ahead;
  LearningRate rate;
  RunState now;
  size_t loss = 0, gradientNorm = 0;        ///< outputs of the plan
  std::optional<size_t> validTokens;        ///< likewise
  int64_t skipped = 0;                      ///< in a row
  double readerSeconds = 0;                 ///< of the last step
  std::vector<Array> inputs, outputs;
};

} // namespace hpc
