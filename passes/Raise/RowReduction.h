// A reduction to one number a row, as exporters write it in softmax and similar ops.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

/// x of a reduction of that kind over x's last dim; null for any other value.
inline Value reducedOverLast(Value value, ReduceKind kind) {
  auto reduce = value.getDefiningOp<nn::ReduceOp>();
  if (!reduce || reduce.getKind() != kind)
    return {};
  int64_t last = int64_t(nn::shapeOf(reduce.getOperand()).size()) - 1;
  return reduce.getAxes() == ArrayRef<int64_t>(last) ? reduce.getOperand() : Value();
}

} // namespace hpc
