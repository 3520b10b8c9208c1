// A row of nn.embedding_grad: the sum of the rows whose id it is, in the order of the ids. Ids are compared once a row of
// the table that some id names; a row of memory, where there is one, takes only the rows that match.
#pragma once

#include "passes/Kernels/Elements/ElementEmitter.h"

namespace hpc::kernels {

/// Where a call does many rows: notes once which of them ids name.
void prepareEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, int64_t rowsOfItem);
/// Numbers: the first id that matches and the one behind the last. `memory`, if any, holds the sums; those of earlier
/// micro-batches too where the region adds up, when it is a row of the result.
RowNumbers startEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, const Index &index,
                              const std::optional<RowMemory> &memory);
Value finishEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, const Index &index,
                          const RowNumbers &numbers);

} // namespace hpc::kernels
