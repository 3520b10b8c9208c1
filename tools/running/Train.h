// Training by hpc-run: its flags, and the run from the first step to the checkpoint.
#pragma once

#include "runtime/train/Checkpoints.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/TrainingRun.h"
#include "tools/flags/Arguments.h"
#include "tools/running/TextData.h"

namespace hpc {

struct TrainFlags {
  bool train = false, allowJump = false;
  std::string data, evaluate, metrics, save, load, gradients, curve = "constant";
  int64_t steps = 0, warmup = 0;
  int64_t evaluateEvery = 0; ///< steps; 0: after the last
  std::optional<int64_t> curveSteps; ///< default: `steps`
  std::optional<double> rate, power, lossScale;
  CheckpointOptions checkpoints; ///< without a folder none
  int64_t saveEvery = 0;         ///< steps; 0: after the last
  std::string shardSize;         ///< as given
  std::optional<int64_t> seed;
  TextFlags text;

  /// One step or many, or none and only the loss.
  bool any() const { return train || !gradients.empty() || !evaluate.empty(); }
  bool onlyEvaluates() const { return !train && !evaluate.empty(); }
  /// Held-out rows are evaluated: those of a file, or of --split.
  bool evaluates() const { return !evaluate.empty() || (train && !text.shares.empty() && text.shares[1] > 0); }
};

TrainFlags readTrainFlags(const Arguments &arguments);
/// Errors for flags that exclude each other.
Status checkTrainFlags(const Arguments &arguments, const TrainFlags &flags);
/// A hash of the flags that have to be the same in all processes.
uint64_t fingerprint(const TrainFlags &flags);

/// The data of a run, and the plans of the entries that take it.
struct TrainData {
  std::unique_ptr<StepData> batches; ///< --data, of the session's entry 0
  std::unique_ptr<StepData> heldOut; ///< --evaluate, of `evaluation`
  size_t evaluation = 0;             ///< entry
};

/// Opens the files of the flags. `entries`: plan::planOf each entry of `plan`, none where it has none; both outlive the data. `notes` receives
/// facts that the user should know.
Status openTrainData(const TrainFlags &flags, const plan::Plan &plan, const std::vector<plan::Plan> &entries, TrainData &data,
                     std::vector<std::string> &notes);

/// `isHome`: this process is the one that prints and writes.
Status trainPlan(const TrainFlags &flags, Session &session, const TrainData &data, bool isHome);

} // namespace hpc
