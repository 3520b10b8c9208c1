// The order of positions in which ranks that share a sequence have equal work under a causal mask: each has a part of the
// beginning and a part of the end. It is an order of rows, so all cuts stay what they are.
#pragma once

#include "passes/Annotate/SequenceDims.h"

namespace hpc {

/// The position of each row: the blocks of ceil(size / ranks) rows that ranks get, in the first half of each the next positions from the
/// front, in the second those before the last ones. 8 over 2: 0 1 6 7, 2 3 4 5. A rank has two intervals, both in rising order.
std::vector<int64_t> zigzagPositions(int64_t size, int64_t ranks);

/// Puts the rows of all values with positions in that order, over `axes`, if some attention is causal; false: none is. Ids and the
/// like are permuted as they enter, keys and values back as attention reads them, gradients of these as the ones of their makers, and
/// outputs as they leave. Every op computes what it did, of its rows in another order.
bool orderInZigzag(func::FuncOp function, const SequenceDims &sequence, const dist::Mesh &mesh, ArrayRef<std::string> axes);

} // namespace hpc
