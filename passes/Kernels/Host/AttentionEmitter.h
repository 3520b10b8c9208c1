// Attention and its gradient on a host: nothing of the size of the scores is ever in memory. Dao et al. 2022
// (FlashAttention), algorithm 1, with the queries of a block beside each other in vectors.
#pragma once

#include "passes/Kernels/Code/MachineCode.h"
#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

/// Independent items: blocks of queries, or of a gradient whole groups, whose keys' gradients are sums over queries.
int64_t countAttentionItems(const AttentionRegion &region);

/// Computes the region's results into `outputs`, the items that the emitter's loop nest gives to this call.
void emitAttention(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, ValueRange outputs,
                   VectorUnit unit);

} // namespace hpc::kernels
