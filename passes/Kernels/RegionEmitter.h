// One region as a function of the scratch module that becomes machine code.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// Adds `void symbol(ptr args, ptr scalars, i64 begin, i64 end)` to `kernels`. Fails with a diagnostic at the region
/// when an op in it has no code.
LogicalResult emitRegion(nn::FusedOp region, ModuleOp kernels);

} // namespace hpc::kernels
