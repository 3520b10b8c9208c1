// Gradients of reductions. Equal largest elements share what the maximum gets, as PyTorch's amax has it, or the first one gets all,
// as in its pools.
#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::nn {

/// A product without one of its elements; where it holds zeros, not by division: with one of them all but that element get
/// 0, with two all do.
static Value productGradient(GradientBuilder &b, ReduceOp op) {
  Value x = op.getOperand(), g = b.cotangent(), zero = b.zero(x), one = b.number(x, 1);
  Value isZero = b.compare(ComparePredicate::eq, x, zero);
  Value others = b.reduce(ReduceKind::Prod, b.select(isZero, one, x), op.getAxes());
  Value zeros = b.sum(b.select(isZero, one, b.broadcast(zero, shapeOf(x))), op.getAxes());
  Value ofZero = b.select(b.compare(ComparePredicate::eq, zeros, one), others, zero);
  Value ofOther = b.select(b.compare(ComparePredicate::eq, zeros, zero), b.div(others, b.select(isZero, one, x)), zero);
  return b.mul(g, b.select(isZero, ofZero, ofOther));
}

/// Whether an element is the first of those that are chosen, in row-major order along the axes.
static Value isFirstOf(GradientBuilder &b, Value isChosen, ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> sizes = shapeOf(isChosen);
  Value position;
  int64_t count = 1;
  for (int64_t axis : llvm::reverse(axes)) {
    SmallVector<int64_t> shape(sizes.size(), 1);
    shape[size_t(axis)] = sizes[size_t(axis)];
    auto type = RankedTensorType::get(shape, b.builder.getI32Type());
    Value along = IotaOp::create(b.builder, b.loc, type, Value(), axis, 0, count);
    position = position ? b.add(position, along) : along;
    count *= sizes[size_t(axis)];
  }
  Value first = b.reduce(ReduceKind::Min, b.select(isChosen, position, b.number(position, double(count))), axes);
  return b.compare(ComparePredicate::eq, position, first);
}

void ReduceOp::buildGradients(GradientBuilder &b) {
  Value x = getOperand(), g = b.cotangent();
  if (getKind() == ReduceKind::Sum)
    return b.give(0, g);
  if (getKind() == ReduceKind::Prod)
    return b.give(0, productGradient(b, *this));
  Value isChosen = b.compare(ComparePredicate::eq, x, getResult());
  if (getFirst() && !getAxes().empty())
    return b.give(0, b.select(isFirstOf(b, isChosen, getAxes()), g, b.zero(g)));
  Value count = b.sum(b.cast(isChosen, tensorType(x).getElementType()), getAxes());
  b.give(0, b.select(isChosen, b.div(g, count), b.zero(g)));
}

} // namespace hpc::nn
