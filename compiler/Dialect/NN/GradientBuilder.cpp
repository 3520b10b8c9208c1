// Helpers of the rules. What they fold is exact: a sum with 0, a product with 1, views that change nothing.
#include "compiler/Dialect/NN/Widened.h"

namespace hpc {

using namespace nn;

GradientBuilder::GradientBuilder(OpBuilder &builder, Operation *op, ArrayRef<Value> cotangents,
                                 llvm::BitVector wanted, Location loc)
    : builder(builder), loc(loc), cotangents(cotangents), gradients(op->getNumOperands()),
      operandTypes(op->getOperandTypes()), wanted(std::move(wanted)) {}

double splatOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (elements && elements.isSplat() && isa<FloatType>(elements.getElementType()))
        return FloatAttr::get(elements.getElementType(), elements.getSplatValue<APFloat>()).getValueAsDouble();
      break;
    }
    if (!isa<ReshapeOp, BroadcastOp, TransposeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

static Type elementOf(Value value) { return tensorType(value).getElementType(); }

void GradientBuilder::give(unsigned operand, Value gradient) {
  if (!gradient || !wants(operand))
    return;
  auto type = mlir::cast<RankedTensorType>(operandTypes[operand]);
  gradient = broadcast(cast(sumTo(gradient, type.getShape()), type.getElementType()), type.getShape());
  gradients[operand] = gradients[operand] ? add(gradients[operand], gradient) : gradient;
}

/// The parts of two concats, where of each part one is zero; empty where that is not so.
static SmallVector<Value> disjointParts(Value a, Value b) {
  auto left = a.getDefiningOp<ConcatOp>(), right = b.getDefiningOp<ConcatOp>();
  SmallVector<Value> parts;
  if (!left || !right || left.getAxis() != right.getAxis() || left->getNumOperands() != right->getNumOperands())
    return {};
  for (auto [mine, theirs] : llvm::zip(left.getOperands(), right.getOperands())) {
    bool isMine = splatOf(theirs) == 0;
    if (mine.getType() != theirs.getType() || (!isMine && splatOf(mine) != 0))
      return {};
    parts.push_back(isMine ? mine : theirs);
  }
  return parts;
}

Value GradientBuilder::add(Value a, Value b) {
  SmallVector<int64_t> shape(broadcastType({a, b}).getShape());
  if (SmallVector<Value> parts = disjointParts(a, b); !parts.empty())
    return concat(parts, a.getDefiningOp<ConcatOp>().getAxis());
  if (splatOf(a) == 0)
    return broadcast(b, shape);
  if (splatOf(b) == 0)
    return broadcast(a, shape);
  return AddOp::create(builder, loc, a, b);
}

Value GradientBuilder::sub(Value a, Value b) {
  if (splatOf(b) == 0)
    return broadcast(a, broadcastType({a, b}).getShape());
  return SubOp::create(builder, loc, a, b);
}

Value GradientBuilder::mul(Value a, Value b) {
  SmallVector<int64_t> shape(broadcastType({a, b}).getShape());
  if (splatOf(a) == 1)
    return broadcast(b, shape);
  if (splatOf(b) == 1)
    return broadcast(a, shape);
  return MulOp::create(builder, loc, a, b);
}

Value GradientBuilder::div(Value a, Value b) {
  if (splatOf(b) == 1)
    return broadcast(a, broadcastType({a, b}).getShape());
  return DivOp::create(builder, loc, a, b);
}

Value GradientBuilder::select(Value condition, Value a, Value b) {
  return SelectOp::create(builder, loc, condition, a, b);
}

Value GradientBuilder::compare(ComparePredicate predicate, Value a, Value b) {
  return CompareOp::create(builder, loc, predicate, a, b);
}

Value GradientBuilder::cast(Value value, Type elementType) {
  if (elementOf(value) == elementType)
    return value;
  return CastOp::create(builder, loc, RankedTensorType::get(shapeOf(value), elementType), value);
}

Value GradientBuilder::number(Value like, double value) {
  Type element = elementOf(like);
  auto type = RankedTensorType::get({}, element);
  Attribute number = isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, value))
                                             : Attribute(builder.getIntegerAttr(element, int64_t(value)));
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, number));
}

Value GradientBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, elementOf(value)), value);
}

Value GradientBuilder::transpose(Value value, ArrayRef<int64_t> permutation) {
  bool moves = llvm::any_of(llvm::enumerate(permutation),
                            [](auto entry) { return int64_t(entry.index()) != entry.value(); });
  return moves ? Value(TransposeOp::create(builder, loc, value, permutation)) : value;
}

Value GradientBuilder::broadcast(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return BroadcastOp::create(builder, loc, RankedTensorType::get(shape, elementOf(value)), value);
}

Value GradientBuilder::reduce(ReduceKind kind, Value value, ArrayRef<int64_t> axes) {
  if (llvm::all_of(axes, [&](int64_t axis) { return shapeOf(value)[size_t(axis)] == 1; }))
    return value;
  return ReduceOp::create(builder, loc, kind, value, axes);
}

Value GradientBuilder::meanOfLast(Value value) {
  Value wide = nn::widened(*this, value);
  int64_t last = int64_t(shapeOf(value).size()) - 1;
  return cast(div(sum(wide, {last}), number(wide, double(shapeOf(value)[size_t(last)]))), elementOf(value));
}

Value GradientBuilder::sumTo(Value value, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = shapeOf(value);
  if (from.size() < shape.size())
    return value; // a scalar gradient of all its elements
  size_t leading = from.size() - shape.size();
  SmallVector<int64_t> axes;
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (from[dim] != 1 && (dim < leading || shape[dim - leading] == 1))
      axes.push_back(int64_t(dim));
  if (!axes.empty())
    value = sum(value, axes);
  return leading ? reshape(value, shapeOf(value).drop_front(leading)) : value;
}

Value GradientBuilder::padWithZeros(Value value, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  SmallVector<int64_t> shape(shapeOf(value));
  for (size_t dim = 0; dim < shape.size(); ++dim)
    shape[dim] += low[dim] + high[dim];
  if (ArrayRef<int64_t>(shape) == shapeOf(value))
    return value;
  Type element = elementOf(value);
  return PadOp::create(builder, loc, RankedTensorType::get(shape, element), value, builder.getDenseI64ArrayAttr(low),
                       builder.getDenseI64ArrayAttr(high), builder.getZeroAttr(element));
}

Value GradientBuilder::slice(Value value, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> sizes) {
  bool isWhole = shapeOf(value) == sizes && llvm::all_of(steps, [](int64_t step) { return step == 1; });
  if (isWhole)
    return value;
  return SliceOp::create(builder, loc, RankedTensorType::get(sizes, elementOf(value)), value, starts, steps);
}

Value GradientBuilder::concat(ArrayRef<Value> parts, int64_t axis) {
  SmallVector<int64_t> shape(shapeOf(parts[0]));
  shape[size_t(axis)] = 0;
  for (Value part : parts)
    shape[size_t(axis)] += shapeOf(part)[size_t(axis)];
  return ConcatOp::create(builder, loc, RankedTensorType::get(shape, elementOf(parts[0])), parts, axis);
}

Value GradientBuilder::matmul(Value lhs, Value rhs, bool transposeLhs, bool transposeRhs, Type elementType) {
  auto op = MatmulOp::create(builder, loc, lhs, rhs, transposeLhs, transposeRhs);
  op.getResult().setType(RankedTensorType::get(shapeOf(op), elementType));
  return op;
}

Value GradientBuilder::iota(ArrayRef<int64_t> shape, int64_t dim, Type elementType) {
  return IotaOp::create(builder, loc, RankedTensorType::get(shape, elementType), Value(), dim, 0, 1);
}

} // namespace hpc
