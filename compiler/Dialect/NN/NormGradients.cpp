// Gradients of composites over the last dim. They are compositions: fusion makes one pass over the rows of them, and a
// cut last dim turns their sums into partial ones.
#include "compiler/Dialect/NN/Widened.h"

namespace hpc::nn {

static int64_t lastDim(Value value) { return int64_t(shapeOf(value).size()) - 1; }

/// 1 / sqrt(variance + epsilon).
static Value inverseDeviation(GradientBuilder &b, Value variance, double epsilon) {
  return b.unary<ReciprocalOp>(b.unary<SqrtOp>(b.shifted(variance, epsilon)));
}

/// y as those who read it have it: 0 in rows that all of them replace by 0, as attention does where a query sees nothing.
/// Such a row is NaN, and 0 flows back to it; it must not flow on as 0 * NaN.
static Value asRead(GradientBuilder &b, Value y) {
  Value read = y;
  while (read.hasOneUse() && isa<CastOp>(*read.user_begin()))
    read = (*read.user_begin())->getResult(0);
  SelectOp repair;
  for (Operation *user : read.getUsers()) {
    if (isa<IsNanOp>(user))
      continue;
    auto select = dyn_cast<SelectOp>(user);
    if (!select || repair || shapeOf(select.getResult()) != shapeOf(y))
      return y;
    repair = select;
  }
  if (!repair)
    return y;
  Value condition = repair.getCondition();
  auto isNan = condition.getDefiningOp<IsNanOp>();
  bool isOfRows = shapeOf(condition).empty() || shapeOf(condition).back() == 1 || (isNan && isNan.getOperand() == read);
  bool keepsWhereFalse = repair.getOnFalse() == read;
  if (!isOfRows || splatOf(keepsWhereFalse ? repair.getOnTrue() : repair.getOnFalse()) != 0)
    return y;
  return keepsWhereFalse ? b.select(condition, b.zero(y), y) : b.select(condition, y, b.zero(y));
}

/// y (g - sum(g y)).
void SoftmaxOp::buildGradients(GradientBuilder &b) {
  Value g = widened(b, b.cotangent()), y = widened(b, asRead(b, getResult()));
  Value mean = b.sum(b.mul(g, y), {lastDim(y)});
  b.give(0, b.cast(b.mul(y, b.sub(g, mean)), tensorType(getResult()).getElementType()));
}

/// With h = (x - mean) / deviation and g = weight * gradient: (g - mean(g) - h mean(g h)) / deviation.
void LayerNormOp::buildGradients(GradientBuilder &b) {
  Value g = b.cotangent(), x = getOperand();
  unsigned bias = getWeight() ? 2 : 1;
  if (getBias())
    b.give(bias, g);
  if (!b.wants(0) && !(getWeight() && b.wants(1)))
    return;
  Value centered = b.sub(x, b.meanOfLast(x));
  Value inverse = inverseDeviation(b, b.meanOfLast(b.square(centered)), getEpsilon().convertToDouble());
  Value normal = b.mul(centered, inverse);
  if (getWeight() && b.wants(1))
    b.give(1, b.mul(g, normal));
  if (!b.wants(0))
    return;
  Value weighted = getWeight() ? b.mul(g, getWeight()) : g;
  Value rest = b.add(b.meanOfLast(weighted), b.mul(normal, b.meanOfLast(b.mul(weighted, normal))));
  b.give(0, b.mul(b.sub(weighted, rest), inverse));
}

/// The same without the mean.
void RmsNormOp::buildGradients(GradientBuilder &b) {
  Value g = b.cotangent(), x = getOperand();
  Value inverse = inverseDeviation(b, b.meanOfLast(b.square(x)), getEpsilon().convertToDouble());
  Value normal = b.mul(x, inverse);
  if (getWeight() && b.wants(1))
    b.give(1, b.mul(g, normal));
  if (!b.wants(0))
    return;
  Value weighted = getWeight() ? b.mul(g, getWeight()) : g;
  b.give(0, b.mul(b.sub(weighted, b.mul(normal, b.meanOfLast(b.mul(weighted, normal)))), inverse));
}

} // namespace hpc::nn
