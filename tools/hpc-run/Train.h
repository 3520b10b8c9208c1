// Training by hpc-run: its flags, and the run from the first step to the checkpoint.
#pragma once

#include "runtime/train/TrainingRun.h"
#include "tools/Arguments.h"

namespace hpc {

struct TrainFlags {
  bool train = false, allowJump = false;
  std::string data, metrics, save, load, gradients, curve = "constant";
  int64_t steps = 0, warmup = 0;
  std::optional<int64_t> curveSteps; ///< default: `steps`
  std::optional<double> rate, power, lossScale;
  std::optional<int64_t> seed;
  std::vector<const CLI::Option *> ofSteps; ///< what one backward step has no use for

  /// One step or many.
  bool any() const { return train || !gradients.empty(); }
};

void addTrainFlags(CLI::App &app, TrainFlags &flags);
/// Flags that do not go together.
Status checkTrainFlags(const TrainFlags &flags);
/// What of the flags has to be the same in all processes.
uint64_t fingerprint(const TrainFlags &flags);

/// `isHome`: this process is the one that prints and writes.
Status trainPlan(const TrainFlags &flags, const plan::Plan &plan, Session &session, const Batches &data, bool isHome);

} // namespace hpc
