// The speed of this machine, measured: the yardstick of profiles, and the numbers of hpc-calibrate.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/Status.h"

namespace hpc::host {

/// Of one thread while `threads` do the same; seconds go by.
struct MachineSpeed {
  /// Flops a second of products whose operands and panels lie in the caches, by the type of A.
  double f32 = 0, bf16 = 0, f16 = 0;
  double bytesPerSecond = 0; ///< read and written, of far more than caches hold

  double flopsPerSecond(DType type) const { return type == DType::BF16 ? bf16 : type == DType::F16 ? f16 : f32; }
  /// Of so many threads.
  MachineSpeed times(double threads) const {
    return {f32 * threads, bf16 * threads, f16 * threads, bytesPerSecond * threads};
  }
};
/// `moves`: bytesPerSecond, too, which takes 128 MiB a thread; else it is 0.
Expected<MachineSpeed> measureSpeed(int64_t threads, bool moves = true);

/// Operations on elements a second of the calling thread, as generated kernels do them: multiply-adds of f32 on data in the nearest cache, in
/// the widest vectors that the machine has. By the seconds of its processor.
double measureElements();

} // namespace hpc::host
