// Dropout: elementwise, but for the global position of each element, which a rank knows by its offsets.
#include "compiler/Dialect/NN/DropoutDraw.h"
#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::nn {

ArrayRef<int64_t> DropoutOp::getWholeShape() {
  return getGlobalShape() ? ArrayRef<int64_t>(*getGlobalShape()) : shapeOf(getResult());
}

ShardingRule DropoutOp::getShardingRule() {
  ShardingRule rule = elementwiseRule(*this, {LinearClause::Product, {0}});
  for (ShardingFactor &factor : rule.factors)
    factor.isIndex = true;
  for (auto [number, offset] : llvm::enumerate(getOffsets()))
    if (!shapeOf(offset).empty()) {
      const auto &dim = rule.results[0][size_t((*getOffsetDims())[number])];
      rule.operands[3 + number] = {dim};
      for (int factor : dim)
        rule.factors[factor].isIndex = false;
    }
  return rule;
}

/// Factors are the dims in their order, and a dim that is cut is smaller than it was.
Operation *DropoutOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes, ValueRange offsets) {
  const DropoutDraw draw = *dropoutOf(*this);
  SmallVector<int64_t> dims;
  SmallVector<Value> all;
  for (auto [offset, dim] : llvm::zip(operands.drop_front(3), draw.offsetDims))
    if (draw.positionsOf(dim)) {
      all.push_back(offset);
      dims.push_back(dim);
    }
  ArrayRef<int64_t> local = cast<RankedTensorType>(resultTypes[0]).getShape();
  for (auto [dim, size] : llvm::enumerate(shapeOf(getResult())))
    if (size != local[dim] && !draw.positionsOf(int64_t(dim)))
      dims.push_back(int64_t(dim));
  llvm::append_range(all, offsets);
  assert(dims.size() == all.size() && "an offset for every dim that is cut");
  auto op = DropoutOp::create(builder, getLoc(), resultTypes[0], operands[0], operands[1], operands[2], all,
                              getSiteAttr(), getRateAttr(), DenseI64ArrayAttr(), DenseI64ArrayAttr());
  op->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  if (!all.empty()) {
    op.setGlobalShape(draw.wholeShape);
    op.setOffsetDims(dims);
  }
  return op;
}

LogicalResult DropoutOp::verify() {
  // Until reshards are there an operand may be cut otherwise than the result.
  RankedTensorType type = tensorType(getOperand());
  if (shapeOf(getResult()) != type.getShape() || tensorType(getResult()).getElementType() != type.getElementType() ||
      !isa<FloatType>(type.getElementType()))
    return emitOpError("(C1) operand ") << type << " and result " << getResult().getType() << " must be one type of floats";
  return verifyDropout(*this, *dropoutOf(*this), type.getShape(), {"(C2)", "(C3)", "(C4)"});
}

/// A dropped element gets no gradient, a kept one is scaled as in forward.
void DropoutOp::buildGradients(GradientBuilder &b) {
  b.give(0, DropoutOp::create(b.builder, b.loc, b.cotangent().getType(), b.cotangent(), getStep(), getSeed(), getOffsets(), getSiteAttr(),
                              getRateAttr(), getGlobalShapeAttr(), getOffsetDimsAttr()));
}

} // namespace hpc::nn
