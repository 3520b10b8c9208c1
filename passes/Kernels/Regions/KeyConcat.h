// Keys or values of an attention that are put together of parts, as past and new ones are in a step of decoding: what has
// to hold so that each part can be read where it lies.
#pragma once

#include "passes/Kernels/Regions/StridedView.h"

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

struct KeyConcat {
  nn::ConcatOp op;                  ///< along the keys
  SmallVector<Operation *> behind;  ///< views and casts from its result to the attention's operand, in this order
  SmallVector<int64_t> keyDims;     ///< which dim the keys are in the result of each of them

  /// Of one of the op's operands.
  int64_t countKeys(Value part) const { return nn::shapeOf(part)[nn::ConcatOp(op).getAxis()]; }
  /// What `behind` makes of a view of `part`, an operand of `op`; false where that has no strides.
  bool apply(StridedView &view, Value part) const;
};

/// How `operand`, an attention's key or value, is put together; nothing where it is not, or where a view behind takes keys
/// apart or leaves some out.
std::optional<KeyConcat> findKeyConcat(Value operand);

/// A cast from floats to floats: an attention's keys and values are read through it.
bool isFloatCast(Operation *op);

} // namespace hpc::kernels
