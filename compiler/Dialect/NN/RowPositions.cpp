// Attention reads positions of queries for its causal mask and for dropout; nn.dropout reads those of any one dim.
#include "compiler/Dialect/NN/RowPositions.h"

namespace hpc::nn {

constexpr unsigned queriesDim = 2;

bool isCausalAttention(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return attention.getCausalOffset().has_value();
  auto gradient = dyn_cast<AttentionGradOp>(op);
  return gradient && gradient.getCausalOffset();
}

bool takesRowPositions(Operation *op, unsigned dim) {
  if (auto dropout = dyn_cast<DropoutOp>(op))
    return dropout.getOffsets().empty();
  return isa<AttentionOp, AttentionGradOp>(op) && dim == queriesDim;
}

void setRowPositions(Operation *op, unsigned dim, Value positions) {
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    attention.getQueryPositionsMutable().assign(positions);
  } else if (auto gradient = dyn_cast<AttentionGradOp>(op)) {
    gradient.getQueryPositionsMutable().assign(positions);
  } else {
    auto dropout = cast<DropoutOp>(op);
    dropout.getOffsetsMutable().assign(positions);
    dropout.setOffsetDims(ArrayRef<int64_t>{int64_t(dim)});
  }
}

} // namespace hpc::nn
