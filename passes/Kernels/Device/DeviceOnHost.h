// A device's LLVM IR as code of the host: NVPTX instructions (thread and block ids, barriers, shuffles, shared memory)
// become calls through a table that a block runner provides. Nothing else changes, and nothing is optimized again.
#pragma once

#include "passes/Kernels/Device/DeviceEmitter.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace hpc::kernels {

/// Each kernel then is `void symbol(void *const *params)` for one thread of a launch, where params[i] points to parameter i,
/// as cuLaunchKernel takes them; the table is `hpc_block_runner` (test/gpu/BlockRunner.h).
void retargetToHost(llvm::Module &module, ArrayRef<DeviceLaunch> launches, const llvm::TargetMachine &host);

} // namespace hpc::kernels
