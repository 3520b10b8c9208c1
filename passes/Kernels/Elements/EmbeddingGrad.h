// A row of nn.embedding_grad: the sum of the rows whose id it is, in the order of the ids. Ids are compared once a row of
// the table that some id names; a row of memory, where there is one, takes only the rows that match.
#pragma once

#include "passes/Kernels/Elements/ElementEmitter.h"

namespace hpc::kernels {

/// If a call computes many rows: notes once which of them ids select.
void prepareEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, int64_t rowsOfItem);
/// Numbers: the first matching id and one after the last. `memory`, if any, holds the sums; if it is a row of the
/// result and the region accumulates, also those of earlier micro-batches.
RowNumbers startEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, const Index &index,
                              const std::optional<RowMemory> &memory);
Value finishEmbeddingGrad(ElementEmitter &emitter, nn::EmbeddingGradOp op, const Index &index,
                          const RowNumbers &numbers);

} // namespace hpc::kernels
