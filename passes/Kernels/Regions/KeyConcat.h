// Concatenated keys or values of an attention, such as past and new ones in a step of decoding: the conditions under
// which each part can be read in its own buffer.
#pragma once

#include "passes/Kernels/Regions/StridedView.h"

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

struct KeyConcat {
  nn::ConcatOp op;                  ///< along the keys
  SmallVector<Operation *> behind;  ///< views and casts from its result to the attention's operand, in this order
  SmallVector<int64_t> keyDims;     ///< which dim the keys are in the result of each of them

  /// The keys in one of the op's operands.
  int64_t countKeys(Value part) const { return nn::shapeOf(part)[nn::ConcatOp(op).getAxis()]; }
  /// Applies `behind` to a view of `part`, an operand of `op`; false if the result has no strides.
  bool apply(StridedView &view, Value part) const;
};

/// The concatenation of `operand`, an attention's key or value; nullopt if there is none, or if a view after it splits
/// keys or leaves some out.
std::optional<KeyConcat> findKeyConcat(Value operand);

/// A cast from floats to floats: an attention's keys and values are read through it.
bool isFloatCast(Operation *op);

} // namespace hpc::kernels
