// The interface of ops that work over ranks or micro-batches: their kind, group and reduction, for checks, packing and lowering. Partition
// makes such ops from the steps of a reshard (ReshardStep), which have the same properties.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"
#include "compiler/MLIR.h"
#include "runtime/base/ReduceKind.h"

#include "compiler/Interfaces/Collective.h.inc"

namespace hpc {

/// Whether data crosses ranks. A slice and a sum over micro-batches stay on their rank.
bool crossesRanks(Operation *op);

} // namespace hpc
