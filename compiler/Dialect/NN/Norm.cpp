// Layer norm, RMS norm and softmax over the last dim. decompose() is the definition that interpreter, partition and
// kernels use.
#include "compiler/Dialect/NN/Widened.h"

namespace hpc::nn {

/// A scalar constant of the element type of `like`.
static Value scalar(OpBuilder &builder, Location loc, Value like, double value) {
  Type element = tensorType(like).getElementType();
  return ConstantOp::create(
      builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, element), builder.getFloatAttr(element, value)));
}

/// (C1) result is the operand's shape; a weight or bias is [e].
static LogicalResult verifyOverLast(Operation *op, Value operand, ArrayRef<Value> vectors) {
  ArrayRef<int64_t> shape = shapeOf(operand);
  if (shape.empty() || shapeOf(op->getResult(0)) != shape)
    return op->emitOpError("(C1) result ")
           << op->getResult(0).getType() << " must have the shape of " << operand.getType();
  for (Value vector : vectors)
    if (vector && shapeOf(vector) != shape.take_back(1))
      return op->emitOpError("(C1) weight or bias ") << vector.getType() << " must be [" << shape.back() << "]";
  return success();
}

// ---- layer norm ---------------------------------------------------------------------------------

ShardingRule LayerNormOp::getShardingRule() {
  std::string text = "...e";
  for (unsigned i = 1; i < getNumOperands(); ++i)
    text += ",e";
  return buildRule(text + "->...e; internal e", *this);
}
int64_t LayerNormOp::getFlops() { return 8 * tensorType(getResult()).getNumElements(); }
LogicalResult LayerNormOp::verify() { return verifyOverLast(*this, getOperand(), {getWeight(), getBias()}); }

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  Value centered = SubOp::create(builder, loc, getOperand(), GradientBuilder(builder, loc).meanOfLast(getOperand()));
  Value variance = GradientBuilder(builder, loc).meanOfLast(MulOp::create(builder, loc, centered, centered));
  Value shifted = AddOp::create(builder, loc, variance, scalar(builder, loc, variance, getEpsilon().convertToDouble()));
  Value result = DivOp::create(builder, loc, centered, SqrtOp::create(builder, loc, shifted));
  if (getWeight())
    result = MulOp::create(builder, loc, result, getWeight());
  if (getBias())
    result = AddOp::create(builder, loc, result, getBias());
  return {result};
}

// ---- RMS norm -----------------------------------------------------------------------------------

ShardingRule RmsNormOp::getShardingRule() {
  return buildRule(getWeight() ? "...e,e->...e; internal e" : "...e->...e; internal e", *this);
}
int64_t RmsNormOp::getFlops() { return 5 * tensorType(getResult()).getNumElements(); }
LogicalResult RmsNormOp::verify() { return verifyOverLast(*this, getOperand(), {getWeight()}); }

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  Value square = GradientBuilder(builder, loc).meanOfLast(MulOp::create(builder, loc, getOperand(), getOperand()));
  Value shifted = AddOp::create(builder, loc, square, scalar(builder, loc, square, getEpsilon().convertToDouble()));
  Value result = DivOp::create(builder, loc, getOperand(), SqrtOp::create(builder, loc, shifted));
  if (getWeight())
    result = MulOp::create(builder, loc, result, getWeight());
  return {result};
}

// ---- softmax ------------------------------------------------------------------------------------

ShardingRule SoftmaxOp::getShardingRule() { return buildRule("...e->...e; internal e", *this); }
int64_t SoftmaxOp::getFlops() { return 5 * tensorType(getResult()).getNumElements(); }
LogicalResult SoftmaxOp::verify() { return verifyOverLast(*this, getOperand(), {}); }

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  GradientBuilder b(builder, loc);
  Value x = widened(b, getOperand());
  int64_t last = int64_t(shapeOf(x).size()) - 1;
  Value top = ReduceOp::create(builder, loc, ReduceKind::Max, x, {last});
  Value exponential = ExpOp::create(builder, loc, SubOp::create(builder, loc, x, top));
  Value sum = ReduceOp::create(builder, loc, ReduceKind::Sum, exponential, {last});
  return {b.cast(DivOp::create(builder, loc, exponential, sum), tensorType(getResult()).getElementType())};
}

} // namespace hpc::nn
