// Functions put together of pieces, and roots: in a training step they have PyTorch's slope where pieces meet and where a root is 0.
// In inference, which has no slopes, they are spelled as shortly as their values allow.
#pragma once

#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

/// min(max(x, low), high); a bound may be null. x has no slope at its bounds.
Value clamped(NodeImport &n, Value x, Value low, Value high);

/// max(x, 0) with the slope 1/2 at 0, as in a softplus, whose other term has no slope there.
Value reluHalfAtZero(NodeImport &n, Value x);

/// x where it is above 0, else `negative`, whose slope counts at 0.
Value whereNegative(NodeImport &n, Value x, Value negative);

/// x for a function that `whereNegative` chooses below 0 alone and that is infinite far above it: 0 times its slope is NaN there.
Value belowZero(NodeImport &n, Value x);

/// root(sum) of a sum of powers: a norm, whose slope at 0 is 0.
Value rootOfPowers(NodeImport &n, Value sum, function_ref<Value(Value)> root);
/// The square root of a sum of squares.
Value lengthOf(NodeImport &n, Value sumOfSquares);

} // namespace hpc::onnx
