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
  return rule;
}

/// Factors are the dims in their order, and a dim that is cut is smaller than it was.
Operation *DropoutOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes, ValueRange offsets) {
  SmallVector<int64_t> cutDims, whole(getWholeShape());
  ArrayRef<int64_t> local = cast<RankedTensorType>(resultTypes[0]).getShape();
  for (auto [dim, size] : llvm::enumerate(shapeOf(getResult())))
    if (size != local[dim])
      cutDims.push_back(int64_t(dim));
  assert(cutDims.size() == offsets.size() && "an offset for every dim that is cut");
  auto op = DropoutOp::create(builder, getLoc(), resultTypes[0], operands[0], operands[1], operands[2], offsets,
                              getSiteAttr(), getRateAttr(), DenseI64ArrayAttr(), DenseI64ArrayAttr());
  op->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  if (!offsets.empty()) {
    op.setGlobalShape(whole);
    op.setOffsetDims(cutDims);
  }
  return op;
}

LogicalResult DropoutOp::verify() {
  // Until reshards are there an operand may be cut otherwise than the result.
  RankedTensorType type = tensorType(getOperand());
  if (shapeOf(getResult()) != type.getShape() || tensorType(getResult()).getElementType() != type.getElementType() ||
      !isa<FloatType>(type.getElementType()))
    return emitOpError("(C1) operand ") << type << " and result " << getResult().getType() << " must be one type of floats";
  return verifyDropout(*this, *dropoutOf(*this), type.getRank(), {"(C2)", "(C3)", "(C4)"});
}

/// A dropped element gets no gradient, a kept one is scaled as in forward.
void DropoutOp::buildGradients(GradientBuilder &b) {
  b.give(0, DropoutOp::create(b.builder, b.loc, b.cotangent(), getStep(), getSeed(), int64_t(getSite()),
                              getRate().convertToDouble()));
}

} // namespace hpc::nn
