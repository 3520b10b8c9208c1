// A process that --processes has started knows its parent, and tells it how far the run is.
#pragma once

#include "runtime/train/RunObserver.h"

#include <memory>

namespace hpc {

/// PID:DESCRIPTOR of the parent and of the pipe to it.
inline constexpr const char *parentVariable = "HPC_PARENT";

/// A record in the pipe.
struct StepRecord {
  int64_t step; ///< the last one that is done; -1: none
  int64_t isNew; ///< this process has done it; else it was done before
};

/// Whether a parent of --processes has started this process, and not one further up.
bool hasParent();
/// Sends each step to the parent; null where there is none.
std::unique_ptr<RunObserver> makeStepReports();

} // namespace hpc
