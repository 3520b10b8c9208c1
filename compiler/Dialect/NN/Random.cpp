// Dropout: elementwise, but for the global position of each element, which a rank knows by its offsets.
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
  RankedTensorType type = tensorType(getOperand());
  if (getResult().getType() != type || !isa<FloatType>(type.getElementType()))
    return emitOpError("(C1) operand ") << type << " and result " << getResult().getType() << " must be one type of floats";
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1) || getSite() > UINT32_MAX)
    return emitOpError("(C2) rate ") << rate << " must be at least 0 and less than 1, site " << int64_t(getSite())
                                     << " from 0 to 2^32 - 1";
  for (Value scalar : {getStep(), getSeed()})
    if (tensorType(scalar).getRank() != 0)
      return emitOpError("(C3) step and seed are one number each, got ") << scalar.getType();
  ArrayRef<int64_t> dims = getOffsetDims() ? *getOffsetDims() : ArrayRef<int64_t>();
  bool fits = dims.size() == getOffsets().size() && int64_t(getWholeShape().size()) == type.getRank() &&
              (getGlobalShape() || dims.empty()) &&
              llvm::all_of(dims, [&](int64_t dim) { return dim >= 0 && dim < type.getRank(); });
  if (!fits)
    return emitOpError("(C4) ") << getOffsets().size() << " offsets, of dims [" << dims
                                << "] of a whole tensor [" << getWholeShape() << "], do not fit " << type;
  return success();
}

/// What was dropped gets nothing, what was kept is scaled as it was.
void DropoutOp::buildGradients(GradientBuilder &b) {
  b.give(0, DropoutOp::create(b.builder, b.loc, b.cotangent(), getStep(), getSeed(), int64_t(getSite()),
                              getRate().convertToDouble()));
}

} // namespace hpc::nn
