// From scf and arith to PTX, in process; and the same LLVM IR as x86-64 code that a block runner executes.
#pragma once

#include "passes/Kernels/Device/DeviceEmitter.h"

namespace hpc::kernels {

struct DeviceCode {
  std::string ptx;
  std::string onHost; ///< an ELF shared object for test/gpu/BlockRunner.h, if requested
};

/// Compiles all functions of `kernels` (consumed), of which those in `launches` are kernels. The same functions give the
/// same text. Fails with a diagnostic at `loc`.
FailureOr<DeviceCode> compileDeviceKernels(ModuleOp kernels, ArrayRef<DeviceLaunch> launches, bool onHostToo,
                                           Location loc);

} // namespace hpc::kernels
