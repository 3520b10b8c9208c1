// Rows that stand in another order than that of the program: the ops that ask where a row is, and take an answer as an operand.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

/// Whether later rows see more keys than earlier ones: nn.attention and its gradient where they are causal.
bool isCausalAttention(Operation *op);

/// Whether the op, which counts the rows along dim `dim` of operand 0, can read their positions from an operand instead.
bool takesRowPositions(Operation *op, unsigned dim);
/// Lets it do so: `positions` are whole numbers, one for each row.
void setRowPositions(Operation *op, unsigned dim, Value positions);

} // namespace hpc::nn
