// What a region computes, as loops of a target.
#pragma once

#include "passes/Kernels/ElementEmitter.h"

namespace hpc::kernels {

/// How many independent items the region has: what `rows` says. 0 where nothing can be emitted.
int64_t countItems(nn::FusedOp region);

/// Computes all results into `outputs`, the items that the emitter's loop nest gives to this call. Fails when the
/// results have no common loop nest.
LogicalResult emitBody(ElementEmitter &emitter, nn::FusedOp region, ValueRange outputs);

} // namespace hpc::kernels
