// The state of a training run besides weights and optimizer states: its progress, its seed and its loss scale. A run
// that continues from a checkpoint equals one that never stopped.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/train/LossScale.h"

#include <map>
#include <string>

namespace hpc {

/// Sums over the steps of the present epoch, skipped ones only counted. A checkpoint has them, so that an epoch's means are those of all its
/// steps.
struct EpochSums {
  int64_t steps = 0; ///< that changed parameters
  int64_t skipped = 0;
  double loss = 0, gradientNorm = 0, validTokens = 0;
};

struct RunState {
  /// A step scalar of f64 holds every seed exactly.
  static constexpr int64_t largestSeed = (int64_t(1) << 53) - 1;

  int64_t steps = 0;   ///< done, skipped ones included: the position in the data and in the learning rate's curve
  int64_t updates = 0; ///< those of them that changed parameters and states: Adam's bias correction uses it
  int64_t seed = 0;  ///< of all random numbers, 0 to largestSeed
  LossScale lossScale;
  EpochSums epoch; ///< in the process of rank 0

  /// The metadata of a checkpoint (Checkpoint.h).
  std::map<std::string, std::string> toMetadata() const;
  /// From the checkpoint at `path`. Numbers that an older checkpoint lacks are as at the beginning, except for the
  /// updates: none of its steps counts as skipped. Errors: it has no count of steps, or an impossible number.
  static Expected<RunState> fromMetadata(const std::map<std::string, std::string> &metadata, const std::string &path);
};

} // namespace hpc
