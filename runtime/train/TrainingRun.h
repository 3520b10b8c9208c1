// Steps of a plan that trains: fills inputs and step scalars, runs, reads what the step reports. What the step scalars and the
// results are called is what phase train of the compiler made (passes/Train/Ports.h).
#pragma once

#include "runtime/core/Session.h"
#include "runtime/train/Batches.h"
#include "runtime/train/LearningRate.h"

namespace hpc {

/// What one step told.
struct StepReport {
  int64_t step = 0; ///< from 0
  double learningRate = 0;
  double loss = 0;         ///< over all valid tokens of the step
  double gradientNorm = 0; ///< before clipping
  std::optional<double> validTokens;
  double milliseconds = 0;
  /// The gradient norm was not finite: parameters and states are as they were.
  bool wasSkipped() const;
};

/// {"step": 0, "loss": ..., "lr": ..., "grad_norm": ..., "valid_tokens": ..., "ms": ..., "skipped": false}: one line
/// without its end. A number that is not finite is null.
std::string metricsLine(const StepReport &report);

/// Whether the plan is a training step that this loop can run: it reports a loss and a gradient norm, and wants no step
/// scalar that is unknown here.
Status checkTrains(const plan::Plan &plan);

class TrainingRun {
public:
  /// `session` runs `plan`; both outlive the run. Errors: those of checkTrains.
  static Expected<TrainingRun> create(const plan::Plan &plan, Session &session, const Batches &data,
                                      const LearningRate &rate);

  /// Step `step`, with the batch and the rate of that number. In processes other than that of rank 0 the report has
  /// no numbers of the step.
  Expected<StepReport> run(int64_t step);
  /// The gradients of step `step`, by the names of their parameters, and its `loss`; nothing is learnt from it.
  Expected<NamedArrays> gradients(int64_t step);

private:
  TrainingRun(const plan::Plan &plan, Session &session, const Batches &data, const LearningRate &rate)
      : plan(&plan), session(&session), data(&data), rate(rate) {}
  Status step(int64_t step, double learningRate, Outputs wanted);

  const plan::Plan *plan;
  Session *session;
  const Batches *data;
  LearningRate rate;
  size_t loss = 0, gradientNorm = 0;        ///< outputs of the plan
  std::optional<size_t> validTokens;        ///< likewise
  std::vector<Array> inputs, outputs;
};

} // namespace hpc
