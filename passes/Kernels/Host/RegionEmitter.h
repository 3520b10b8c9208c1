// One region as a function of the scratch module that becomes machine code.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "passes/Kernels/Code/MachineCode.h"

namespace hpc::kernels {

/// The number of independent items of the region: its `rows`. 0 if it has no code.
int64_t countItems(nn::FusedOp region);

/// Adds `void symbol(ptr args, ptr scalars, i64 begin, i64 end)` to `kernels`, its vectors made for `unit`. Fails with a
/// diagnostic at the region when an op in it has no code.
LogicalResult emitRegion(nn::FusedOp region, ModuleOp kernels, VectorUnit unit);

} // namespace hpc::kernels
