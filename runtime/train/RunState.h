// What a training run is besides weights and states: how far it is, and what decides its random numbers and its loss scale.
// A run that goes on from a checkpoint is the run that never stopped.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/train/LossScale.h"

#include <map>
#include <string>

namespace hpc {

struct RunState {
  /// A step scalar of f64 holds every seed exactly.
  static constexpr int64_t largestSeed = (int64_t(1) << 53) - 1;

  int64_t steps = 0;   ///< done, skipped ones included: where the data and the learning rate's curve are
  int64_t updates = 0; ///< of these, the ones that changed parameters and states: what Adam corrects its bias by
  int64_t seed = 0;  ///< of all random numbers, 0 to largestSeed
  LossScale lossScale;

  /// As a checkpoint holds it (Checkpoint.h).
  std::map<std::string, std::string> toMetadata() const;
  /// Of the checkpoint at `path`. What an older one does not say is as at the beginning, but for the updates: none of its
  /// steps counts as skipped. Errors: it has no count of steps, or a number that cannot be.
  static Expected<RunState> fromMetadata(const std::map<std::string, std::string> &metadata, const std::string &path);
};

} // namespace hpc
