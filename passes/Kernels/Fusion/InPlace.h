// When a region's result may be written over one of its operands.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

/// Whether the region reads `operand` only at the very element of `result` that it computes: then writing element after
/// element destroys nothing that is still needed inside. (Outside, the operand must be dead afterwards.)
bool canWriteOver(nn::FusedOp region, unsigned result, unsigned operand);

} // namespace hpc::kernels
