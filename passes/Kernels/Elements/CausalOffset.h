// Where an attention's diagonal lies when positions are known at run time alone: queries that are cut start at another
// position on each rank, and a step of decoding behind the keys of earlier steps.
#pragma once

#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

/// The causal offset of a region that moves(), an i64: query i sees keys j <= i + offset. It lies from -queries to keys, beyond
/// which nothing changes.
Value emitCausalOffset(ElementEmitter &emitter, const AttentionRegion &region);

} // namespace hpc::kernels
