// Attention on a host of a few queries with many keys: a step of decoding. Keys and values come once, whole rows one
// after the other, as fast as memory gives them.
#pragma once

#include "passes/Kernels/Code/MachineCode.h"
#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

/// Whether emitAttentionOfFewQueries computes the region: few queries (hasFewQueries) and all their keys, no dropout, channels that lie side by
/// side and make whole vectors.
bool takesFewQueries(const AttentionRegion &region, VectorUnit unit);

/// As emitAttention; an item is a group with all its queries.
void emitAttentionOfFewQueries(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers,
                               ValueRange outputs, VectorUnit unit);

} // namespace hpc::kernels
