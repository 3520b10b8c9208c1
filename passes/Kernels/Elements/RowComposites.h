// Composites along the last dim that generated code computes whole: softmax, layer norm, RMS norm; and the rows of an embedding's
// gradient. First the numbers of a row of their result, once; then an element at a time, inside any region of fusion. compiler/Providers.cpp claims them.
#pragma once

#include "passes/Kernels/Elements/ElementEmitter.h"

namespace hpc::kernels {

bool isRowComposite(OperationName name);
/// How often the row is read before the first element is known.
int64_t passesOverRow(Operation *composite);
/// Whether an element is cheaper with a row of memory.
bool keepsRow(Operation *composite);
/// The type of the elements in that memory: those of a softmax are not rounded to 16 bits.
Type rowType(Operation *composite);

/// Whether the composite can add its row to the content of the row's memory (ElementEmitter::isLater).
bool addsToRow(OperationName name);

/// Before the items: computes values that all rows of the composite share. An item is `rowsOfItem` rows.
void prepareRowComposite(ElementEmitter &emitter, Operation *composite, int64_t rowsOfItem);
/// The numbers that the composite needs of the row at `index`, whose last dim is 0.
RowNumbers startRowComposite(ElementEmitter &emitter, Operation *composite, const Index &index,
                             const std::optional<RowMemory> &memory);
/// The element at `index`, in the row that `row` was started for.
Value finishRowComposite(ElementEmitter &emitter, Operation *composite, const Index &index, const RowNumbers &row);

} // namespace hpc::kernels
