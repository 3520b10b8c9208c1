// What an op that works over ranks or micro-batches does to whom: the questions of checks, packing and lowering. The answers are those of a reshard's
// step (ReshardStep), from which partition makes such ops.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"
#include "compiler/MLIR.h"
#include "runtime/base/ReduceKind.h"

#include "compiler/Interfaces/Collective.h.inc"

namespace hpc {

/// Whether data crosses ranks. A slice and a sum over micro-batches stay on their rank.
bool crossesRanks(Operation *op);

} // namespace hpc
