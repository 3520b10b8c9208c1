// The causal offset of an attention whose positions are known only at run time: cut queries start at another position on
// each rank, and a decoding step starts after the keys of earlier steps.
#pragma once

#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

/// The causal offset of a region that moves(), an i64: query i sees keys j <= i + offset. It lies from -queries to keys, beyond
/// which nothing changes.
Value emitCausalOffset(ElementEmitter &emitter, const AttentionRegion &region);

} // namespace hpc::kernels
