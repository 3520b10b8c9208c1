// The causal offset of an attention whose positions are known only at run time: cut queries start at another position on
// each rank, and a decoding step starts after the keys of earlier steps.
#pragma once

#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

/// The causal offset of a region that moves(), an i64: query i sees keys j <= i + offset. It lies from -queries to keys, beyond
/// which nothing changes; of a region that isPlaced(), it is to be added to a position.
Value emitCausalOffset(ElementEmitter &emitter, const AttentionRegion &region);
/// An element of queryPositions, an i64.
Value emitQueryPosition(ElementEmitter &emitter, const AttentionRegion &region, const IndexExpr &batch, const IndexExpr &query);
/// The last key that a query of a region that isPlaced() sees, from -1 to keys - 1. `offset`: of emitCausalOffset.
Value emitLastKey(ElementEmitter &emitter, const AttentionRegion &region, const IndexExpr &batch, const IndexExpr &query, Value offset);

} // namespace hpc::kernels
