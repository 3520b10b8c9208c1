// The gradient of attention on a host. Dao et al. 2022 (FlashAttention), appendix B.2: probabilities are computed again
// from query and key. A whole group of keys is one item, so that no other item adds to the sums over its queries.
#pragma once

#include "passes/Kernels/Code/MachineCode.h"
#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::kernels {

void emitAttentionGrad(ElementEmitter &emitter, const AttentionRegion &region, ValueRange buffers, ValueRange outputs,
                       VectorUnit unit);

} // namespace hpc::kernels
