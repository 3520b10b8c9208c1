// The flags of training that hpc-run and hpc-train have alike, as plain data.
#pragma once

#include "runtime/train/Checkpoints.h"
#include "runtime/train/LearningRate.h"
#include "tools/running/TextData.h"
#include "tools/running/TrainReport.h"

namespace hpc {

struct TrainFlags {
  bool train = false, allowJump = false;
  std::string data, evaluate, metrics, save, load, gradients, curve = "constant";
  std::string loadFlag = "--load";      ///< by which `load` was given, for messages
  int64_t steps = 0;                    ///< 0: as --epochs says
  std::optional<int64_t> epochs;
  int64_t evaluateEvery = 0;            ///< steps; 0: after the last
  std::optional<int64_t> evaluateSteps; ///< batches of an evaluation (default: all)
  int64_t warmup = 0;                   ///< steps, or epochs where `byEpoch`
  std::optional<int64_t> curveSteps;    ///< likewise
  int64_t runLength = 0;                ///< likewise, of the whole run; resolved
  bool byEpoch = false;                 ///< the learning rate changes between epochs only
  std::optional<double> rate, leastRate, power, lossScale;
  int64_t mostSkipped = 100;
  CheckpointOptions checkpoints; ///< without a folder none
  int64_t saveEvery = 0;         ///< steps; 0: after the last
  std::string shardSize;         ///< as given
  std::optional<int64_t> seed;
  TextFlags text;
  ReportFlags report;

  /// One step or many, or none and only the loss.
  bool any() const { return train || !gradients.empty() || !evaluate.empty(); }
  bool onlyEvaluates() const { return !train && !evaluate.empty(); }
  /// Held-out rows are evaluated: those of a file, or of --split.
  bool evaluates() const { return !evaluate.empty() || (train && !text.shares.empty() && text.shares[1] > 0); }
};

TrainFlags readTrainFlags(const Arguments &arguments);
/// Errors for flags that exclude each other.
Status checkTrainFlags(const Arguments &arguments, const TrainFlags &flags);
/// Once the data are known: turns --epochs into steps. Errors: more steps than can be counted; numbers that do not fit the learning rate's curve.
Status resolveSteps(TrainFlags &flags, const StepData &data);
/// The learning rate of resolved flags.
LearningRate rateOf(const TrainFlags &flags);
/// A hash of the flags that have to be the same in all processes.
uint64_t fingerprint(const TrainFlags &flags);

} // namespace hpc
