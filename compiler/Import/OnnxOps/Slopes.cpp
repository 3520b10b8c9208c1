// A selection sends a gradient to one operand alone; max and min divide it among equals (docs/numerics.md).
#include "compiler/Import/OnnxOps/Slopes.h"

namespace hpc::onnx {

static bool hasSlopes(NodeImport &n, Value x) { return n.mode.training && isFloat(n.b.dtype(x)); }

Value clamped(NodeImport &n, Value x, Value low, Value high) {
  const bool selects = hasSlopes(n, x);
  if (low)
    x = selects ? n.b.select(n.b.compare(nn::ComparePredicate::le, x, low), low, x) : n.b.binary<nn::MaxOp>(x, low);
  if (high)
    x = selects ? n.b.select(n.b.compare(nn::ComparePredicate::ge, x, high), high, x) : n.b.binary<nn::MinOp>(x, high);
  return x;
}

Value reluHalfAtZero(NodeImport &n, Value x) {
  return hasSlopes(n, x) ? n.b.binary<nn::MaxOp>(x, n.b.scalar(0, x)) : n.b.unary<nn::ReluOp>(x);
}

Value whereNegative(NodeImport &n, Value x, Value negative) {
  Value zero = n.b.scalar(0, x);
  if (hasSlopes(n, x))
    return n.b.select(n.b.compare(nn::ComparePredicate::gt, x, zero), x, negative);
  return n.b.select(n.b.compare(nn::ComparePredicate::lt, x, zero), negative, x);
}

Value belowZero(NodeImport &n, Value x) {
  if (!hasSlopes(n, x))
    return x;
  Value zero = n.b.scalar(0, x);
  return n.b.select(n.b.compare(nn::ComparePredicate::gt, x, zero), zero, x);
}

Value rootOfPowers(NodeImport &n, Value sum, function_ref<Value(Value)> root) {
  if (!hasSlopes(n, sum))
    return root(sum);
  Value zero = n.b.scalar(0, sum), isZero = n.b.compare(nn::ComparePredicate::eq, sum, zero);
  return n.b.select(isZero, zero, root(n.b.select(isZero, n.b.scalar(1, sum), sum)));
}

Value lengthOf(NodeImport &n, Value sumOfSquares) {
  return rootOfPowers(n, sumOfSquares, [&](Value sum) { return n.b.unary<nn::SqrtOp>(sum); });
}

} // namespace hpc::onnx
