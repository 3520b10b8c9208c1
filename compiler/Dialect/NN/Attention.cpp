// Scaled dot-product attention; the definition is two matmuls round a masked softmax. Between them f16 and bf16 are
// computed in f32, the scores included: they are rounded nowhere.
#include "compiler/Dialect/NN/AttentionParts.h"
#include "compiler/Dialect/NN/DropoutDraw.h"

namespace hpc::nn {

ShardingRule AttentionOp::getShardingRule() {
  return buildRule(attentionRuleText(*this, "b(gr)qD,bgKD,bgKx", getLogSum() ? "->b(gr)qx,b(gr)qS" : "->b(gr)qx"), *this);
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
  ArrayRef<int64_t> ofQueries[] = {result, {}};
  SmallVector<int64_t> column(query);
  column[3] = 2;
  ofQueries[1] = column;
  SmallVector<Value> carried(getCarried());
  if (carried.size() != 0 && carried.size() != 2)
    return emitOpError("(C8) `carried` is a result and its log_sum, got ") << carried.size() << " values";
  if (getLogSum())
    carried.append({Value(), getLogSum()});
  for (auto [index, value] : llvm::enumerate(carried))
    if (value && failed(verifyOfQueries(*this, value, ofQueries[index % 2], element)))
      return failure();
  return verifyAttentionMask(*this, operandsOf(*this), getHidden().has_value());
}

/// The largest score shifts all exponentials, those that are carried with their log_sum included: their sum and the
/// sum of weighted values are of all keys so far.
static SmallVector<Value> decomposePart(AttentionOp op, AttentionParts &parts) {
  OpBuilder &builder = parts.builder;
  Location loc = parts.loc;
  Value scores = parts.maskedScores();
  int64_t last = int64_t(shapeOf(scores).size()) - 1;
  Value top = ReduceOp::create(builder, loc, ReduceKind::Max, scores, {last}), topBefore, totalBefore;
  if (!op.getCarried().empty()) {
    topBefore = parts.columnOf(op.getCarried()[1], 0);
    totalBefore = parts.columnOf(op.getCarried()[1], 1);
    top = MaxOp::create(builder, loc, top, topBefore);
  }
  Value weights = parts.exponentials(scores, top);
  Value total = ReduceOp::create(builder, loc, ReduceKind::Sum, weights, {last});
  Value sum = parts.product(parts.converted(parts.dropped(weights), parts.narrow), parts.value, false, false, parts.wide);
  if (totalBefore) {
    Value isNothing = CompareOp::create(builder, loc, ComparePredicate::eq, totalBefore, parts.number(0));
    Value carried = SelectOp::create(builder, loc, isNothing, parts.number(0), parts.likeQuery(op.getCarried()[0]));
    Value share = MulOp::create(builder, loc, totalBefore, parts.exponentials(topBefore, top));
    total = AddOp::create(builder, loc, total, share);
    sum = AddOp::create(builder, loc, sum, MulOp::create(builder, loc, carried, share));
  }
  Value result = DivOp::create(builder, loc, sum, total);
  if (op.getGuarded())
    result = SelectOp::create(builder, loc, CompareOp::create(builder, loc, ComparePredicate::gt, total, parts.number(0)), result, parts.number(0));
  result = parts.converted(result, tensorType(op.getResult()).getElementType());
  SmallVector<Value> results = {parts.reshaped(result, shapeOf(op.getResult()))};
  if (op.getLogSum()) {
    SmallVector<int64_t> shape(shapeOf(top));
    shape.back() = 2;
    Value logSum = ConcatOp::create(builder, loc, RankedTensorType::get(shape, parts.wide), ValueRange{top, total}, last);
    results.push_back(parts.reshaped(logSum, shapeOf(op.getLogSum())));
  }
  return results;
}

SmallVector<Value> AttentionOp::decompose(OpBuilder &builder) {
  AttentionParts parts(builder, getLoc(), operandsOf(*this), maskOf(*this), dropoutOf(*this));
  if (getLogSum() || !getCarried().empty())
    return decomposePart(*this, parts);
  Value weights = parts.converted(parts.dropped(parts.probabilities()), parts.narrow);
  Value result = parts.product(weights, parts.value, false, false, tensorType(getResult()).getElementType());
  return {parts.reshaped(result, shapeOf(getResult()))};
}

} // namespace hpc::nn
