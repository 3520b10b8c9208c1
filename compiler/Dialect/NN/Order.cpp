// The order of elements along a dim, which is held whole.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

ShardingRule SortPositionOp::getShardingRule() { return axisLocalRule(*this, {int64_t(getAxis())}); }

std::optional<NamedAttrList> SortPositionOp::attributesForMoreDims(int64_t more) {
  return attributesWithLaterAxis(*this, getAxisAttr(), getAxisAttrName(), more);
}

int64_t SortPositionOp::getFlops() {
  auto type = tensorType(getOperand());
  return type.getNumElements() * type.getDimSize(getAxis());
}

LogicalResult SortPositionOp::verify() {
  if (int64_t(getAxis()) < 0 || int64_t(getAxis()) >= tensorType(getOperand()).getRank())
    return emitOpError("(C1) axis ") << getAxis() << " of " << getOperand().getType();
  if (shapeOf(getOperand()) != shapeOf(getResult()) || !tensorType(getResult()).getElementType().isSignlessInteger(64))
    return emitOpError("(C2) result ") << getResult().getType() << " must be i64 of the shape of "
                                       << getOperand().getType();
  return success();
}

} // namespace hpc::nn
