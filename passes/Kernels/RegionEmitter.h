// One region as a function of the scratch module that becomes machine code.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "passes/Kernels/MachineCode.h"

namespace hpc::kernels {

/// Whether every op of the region has code, on whatever target; else a diagnostic at the op.
LogicalResult checkOps(nn::FusedOp region);
/// Quotients and remainders that were joined again, and what only they read.
void eraseDeadOps(func::FuncOp function);

/// Adds `void symbol(ptr args, ptr scalars, i64 begin, i64 end)` to `kernels`, its vectors made for `unit`. Fails with a
/// diagnostic at the region when an op in it has no code.
LogicalResult emitRegion(nn::FusedOp region, ModuleOp kernels, VectorUnit unit);

} // namespace hpc::kernels
