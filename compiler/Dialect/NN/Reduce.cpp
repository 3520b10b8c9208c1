// Reductions.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

void ReduceOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind, Value operand,
                     ArrayRef<int64_t> axes) {
  SmallVector<int64_t> shape(shapeOf(operand)), sorted(axes);
  llvm::sort(sorted);
  for (int64_t axis : sorted)
    shape[axis] = 1;
  build(builder, state, RankedTensorType::get(shape, tensorType(operand).getElementType()), kind, operand, sorted);
}

ShardingRule ReduceOp::getShardingRule() { return reduceRule(shapeOf(getOperand()), getAxes(), getKind()); }

std::optional<NamedAttrList> ReduceOp::attributesForMoreDims(int64_t more) {
  if (llvm::is_contained(getAxes(), 0))
    return std::nullopt;
  NamedAttrList attributes((*this)->getAttrDictionary());
  SmallVector<int64_t> axes = llvm::map_to_vector(getAxes(), [&](int64_t axis) { return axis + more; });
  attributes.set(getAxesAttrName(), DenseI64ArrayAttr::get(getContext(), axes));
  return attributes;
}

int64_t ReduceOp::getFlops() { return tensorType(getOperand()).getNumElements(); }

LogicalResult ReduceOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), axes = getAxes();
  SmallVector<int64_t> expected(from);
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (axis < 0 || axis >= int64_t(from.size()) || (index > 0 && axes[index - 1] >= axis))
      return emitOpError("(C1) axes ") << getAxesAttr() << " must be sorted dims of " << getOperand().getType();
    expected[axis] = 1;
  }
  if (shapeOf(getResult()) != ArrayRef<int64_t>(expected))
    return emitOpError("(C1) result ") << getResult().getType() << " must be the operand with size 1 at the axes";
  return success();
}

} // namespace hpc::nn
