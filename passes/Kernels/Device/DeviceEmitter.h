// One region as a kernel of the scratch module that becomes device code.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// The launch of a kernel (plan::Launch).
struct DeviceLaunch {
  std::string symbol;
  int64_t blocks = 0, threads = 0, sharedBytes = 0;
};

/// Adds `void symbol(ptr args..., i64 scalars...)` to `kernels`, for one thread of the launch that it returns. Fails with a
/// diagnostic at the region when an op in it has no code.
FailureOr<DeviceLaunch> emitDeviceRegion(nn::FusedOp region, ModuleOp kernels);

} // namespace hpc::kernels
