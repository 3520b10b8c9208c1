// Scaled dot-product attention; the definition is two matmuls round a masked softmax. Between them f16 and bf16 are
// computed in f32, the scores included: they are rounded nowhere.
#include "compiler/Dialect/NN/AttentionParts.h"
#include "compiler/Dialect/NN/DropoutDraw.h"

namespace hpc::nn {

ShardingRule AttentionOp::getShardingRule() {
  return buildRule(attentionRuleText(*this, "b(gr)qD,bgKD,bgKx", "->b(gr)qx"), *this);
}

Operation *AttentionOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes, ValueRange offsets) {
  return localizeAttention(*this, builder, operands, resultTypes, offsets);
}

int64_t AttentionOp::getFlops() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), value = shapeOf(getValue());
  return countScores(query, value, maskOf(*this)) * (2 * (query[3] + value[3]) + 5);
}

SmallVector<unsigned> AttentionOp::getNarrowOperands() { return {0, 1, 2}; }

LogicalResult AttentionOp::verify() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey()), value = shapeOf(getValue()),
                    result = shapeOf(getResult());
  if (query.size() != 4 || key.size() != 4 || value.size() != 4)
    return emitOpError("(C1) query, key and value need rank 4");
  if (query[0] != key[0] || query[3] != key[3] || key.take_front(3) != value.take_front(3) ||
      result != ArrayRef<int64_t>({query[0], query[1], query[2], value[3]}))
    return emitOpError("(C1) shapes do not fit [b, h, q, d], [b, g, k, d], [b, g, k, x] -> [b, h, q, x]");
  if (key[1] == 0 ? query[1] != 0 : query[1] % key[1] != 0)
    return emitOpError("(C2) ") << key[1] << " key groups do not divide " << query[1] << " heads";
  Type element = tensorType(getQuery()).getElementType();
  if (!isa<FloatType>(element) || tensorType(getKey()).getElementType() != element ||
      tensorType(getValue()).getElementType() != element || !isa<FloatType>(tensorType(getResult()).getElementType()))
    return emitOpError("(C4) query, key and value need one float element type and the result a float one, got ")
           << getQuery().getType() << ", " << getKey().getType() << ", " << getValue().getType() << " to "
           << getResult().getType();
  if (failed(verifyAttentionPositions(*this, operandsOf(*this), maskOf(*this))) || failed(verifyAttentionDropout(*this)))
    return failure();
  return verifyAttentionMask(*this, operandsOf(*this), getHidden().has_value());
}

SmallVector<Value> AttentionOp::decompose(OpBuilder &builder) {
  AttentionParts parts(builder, getLoc(), operandsOf(*this), maskOf(*this), dropoutOf(*this));
  Value weights = parts.converted(parts.dropped(parts.probabilities()), parts.narrow);
  Value result = parts.product(weights, parts.value, false, false, tensorType(getResult()).getElementType());
  return {parts.reshaped(result, shapeOf(getResult()))};
}

} // namespace hpc::nn
