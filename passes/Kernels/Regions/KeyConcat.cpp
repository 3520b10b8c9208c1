// The dim of the keys is followed from the concatenation down to the attention.
#include "passes/Kernels/Regions/KeyConcat.h"

namespace hpc::kernels {

bool isFloatCast(Operation *op) {
  auto isFloat = [](Value value) { return isa<FloatType>(nn::tensorType(value).getElementType()); };
  return isa<nn::CastOp>(op) && isFloat(op->getOperand(0)) && isFloat(op->getResult(0));
}

/// The dim of the op's result that is its operand's dim `dim`; nullopt if it is not whole, or merged with others.
static std::optional<int64_t> followDim(Operation *op, int64_t dim) {
  if (isFloatCast(op))
    return dim;
  ArrayRef<int64_t> from = nn::shapeOf(op->getOperand(0)), to = nn::shapeOf(op->getResult(0));
  if (auto transpose = dyn_cast<nn::TransposeOp>(op))
    return llvm::find(transpose.getPermutation(), dim) - transpose.getPermutation().begin();
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    return from[dim] == to[dim] && slice.getSteps()[dim] == 1 ? std::optional(dim) : std::nullopt;
  if (!isa<nn::ReshapeOp>(op))
    return std::nullopt;
  // The dim of the same size with as many elements before it.
  int64_t before = 1, elements = 1;
  for (int64_t size : from.take_front(dim))
    before *= size;
  for (auto [i, size] : llvm::enumerate(to)) {
    if (elements == before && size == from[dim])
      return int64_t(i);
    elements *= size;
  }
  return std::nullopt;
}

std::optional<KeyConcat> findKeyConcat(Value operand) {
  KeyConcat found;
  Operation *op = operand.getDefiningOp();
  for (; op && op->getNumOperands() == 1 && !isa<nn::ConcatOp>(op); op = op->getOperand(0).getDefiningOp())
    found.behind.push_back(op);
  found.op = dyn_cast_or_null<nn::ConcatOp>(op);
  if (!found.op)
    return std::nullopt;
  std::reverse(found.behind.begin(), found.behind.end());
  int64_t dim = found.op.getAxis();
  for (Operation *step : found.behind) {
    std::optional<int64_t> next = followDim(step, dim);
    if (!next)
      return std::nullopt;
    found.keyDims.push_back(dim = *next);
  }
  constexpr int64_t keyDim = 2; // nn.attention
  return dim == keyDim ? std::optional(found) : std::nullopt;
}

bool KeyConcat::apply(StridedView &view, Value part) const {
  for (auto [step, dim] : llvm::zip_equal(behind, keyDims)) {
    SmallVector<int64_t> shape(nn::shapeOf(step->getResult(0)));
    shape[size_t(dim)] = countKeys(part);
    if (!isFloatCast(step) && !applyView(step, view, shape))
      return false;
  }
  return true;
}

} // namespace hpc::kernels
