// What this machine can do at best, measured: the yardstick of profiles.
#pragma once

#include "runtime/base/Status.h"

namespace hpc::host {

/// Of one thread while `threads` do the same; seconds go by.
struct MachineSpeed {
  double flopsPerSecond = 0; ///< of f32 products whose operands and panels lie in the caches
  double bytesPerSecond = 0; ///< read and written, of far more than caches hold
};
Expected<MachineSpeed> measureSpeed(int64_t threads);

} // namespace hpc::host
