// Index arithmetic and the index maps of the ops that only move elements.
#include "passes/Kernels/IndexMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace hpc::kernels {

static std::optional<int64_t> known(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSExtValue();
  return std::nullopt;
}

Value IndexBuilder::constant(int64_t value) {
  Value &made = constants[value];
  if (!made) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    made = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  return made;
}
Value IndexBuilder::add(Value a, Value b) {
  std::optional<int64_t> x = known(a), y = known(b);
  if (x && y)
    return constant(*x + *y);
  if (x == 0)
    return b;
  if (y == 0)
    return a;
  return arith::AddIOp::create(builder, loc, a, b);
}
Value IndexBuilder::mul(Value a, int64_t b) {
  if (std::optional<int64_t> x = known(a))
    return constant(*x * b);
  return b == 1 ? a : arith::MulIOp::create(builder, loc, a, constant(b)).getResult();
}
Value IndexBuilder::div(Value a, int64_t b) {
  if (std::optional<int64_t> x = known(a))
    return constant(*x / b);
  return b == 1 ? a : arith::DivUIOp::create(builder, loc, a, constant(b)).getResult();
}
Value IndexBuilder::rem(Value a, int64_t b) {
  if (std::optional<int64_t> x = known(a))
    return constant(*x % b);
  return b == 1 ? constant(0) : arith::RemUIOp::create(builder, loc, a, constant(b)).getResult();
}
Value IndexBuilder::clamp(Value a, int64_t size) {
  int64_t last = std::max<int64_t>(size - 1, 0);
  if (last == 0)
    return constant(0);
  if (std::optional<int64_t> x = known(a))
    return constant(std::clamp<int64_t>(*x, 0, last));
  Value atLeastZero = arith::MaxSIOp::create(builder, loc, a, constant(0));
  return arith::MinSIOp::create(builder, loc, atLeastZero, constant(last));
}
Value IndexBuilder::isWithin(Value a, Value low, Value high) {
  Value isAbove = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, a, low);
  Value isBelow = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, high);
  return arith::AndIOp::create(builder, loc, isAbove, isBelow);
}

Value IndexBuilder::linearize(ArrayRef<Value> index, ArrayRef<int64_t> shape) {
  Value linear = constant(0);
  int64_t stride = 1;
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    linear = add(mul(index[dim], stride), linear);
    stride *= shape[dim];
  }
  return linear;
}

Index IndexBuilder::delinearize(Value linear, ArrayRef<int64_t> shape) {
  Index index(shape.size());
  size_t major = 0;
  while (major < shape.size() && shape[major] == 1)
    ++major;
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    int64_t size = std::max<int64_t>(shape[dim], 1); // an empty dim is never reached
    index[dim] = dim == int64_t(major) ? linear : rem(linear, size);
    linear = div(linear, size);
  }
  for (size_t dim = 0; dim < major; ++dim)
    index[dim] = constant(0);
  return index;
}

Index IndexBuilder::reshape(ArrayRef<Value> index, ArrayRef<int64_t> to, ArrayRef<int64_t> from) {
  Index source(from.size(), constant(0));
  if (llvm::is_contained(to, 0))
    return source;
  // Walk both shapes from the left in runs of equal products: [4, 33, 40] and [132, 5, 8] have the runs (4, 33 | 132)
  // and (40 | 5, 8).
  size_t i = 0, j = 0;
  while (i < to.size() || j < from.size()) {
    size_t firstTo = i, firstFrom = j;
    int64_t a = i < to.size() ? to[i++] : 1, b = j < from.size() ? from[j++] : 1;
    while (a != b)
      a < b ? a *= to[i++] : b *= from[j++];
    ArrayRef<int64_t> toRun = to.slice(firstTo, i - firstTo), fromRun = from.slice(firstFrom, j - firstFrom);
    Index part = delinearize(linearize(index.slice(firstTo, toRun.size()), toRun), fromRun);
    std::copy(part.begin(), part.end(), source.begin() + firstFrom);
  }
  return source;
}

Index IndexBuilder::broadcast(ArrayRef<Value> index, ArrayRef<int64_t> from) {
  Index source(index.take_back(from.size()));
  for (auto [value, size] : llvm::zip_equal(source, from))
    if (size == 1)
      value = constant(0);
  return source;
}

bool mapThroughView(IndexBuilder &indices, Operation *op, ArrayRef<Value> index, Index &source) {
  if (op->getNumOperands() != 1)
    return false;
  ArrayRef<int64_t> from = nn::shapeOf(op->getOperand(0)), to = nn::shapeOf(op->getResult(0));
  if (isa<nn::ReshapeOp>(op)) {
    source = indices.reshape(index, to, from);
    return true;
  }
  if (isa<nn::BroadcastOp>(op)) {
    source = indices.broadcast(index, from);
    return true;
  }
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    source.assign(from.size(), Value());
    for (auto [dim, fromDim] : llvm::enumerate(transpose.getPermutation()))
      source[fromDim] = index[dim];
    return true;
  }
  if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    source.clear();
    for (auto [i, start, step] : llvm::zip_equal(index, slice.getStarts(), slice.getSteps()))
      source.push_back(indices.add(indices.constant(start), indices.mul(i, step)));
    return true;
  }
  return false;
}

} // namespace hpc::kernels
