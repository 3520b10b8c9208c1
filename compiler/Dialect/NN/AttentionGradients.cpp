// The gradient of attention. With P the probabilities and dP = dout v^T: dS = P (dP - sum(dP P)), dq = scale dS k,
// dk = scale dS^T q, dv = P^T dout, dbias = dS. What is masked has P = 0, so its dS is 0 and no mask is asked again; but for
// what is not `visible`, whose score is a number and whose dS is the bias's alone. With
// dropout, D of it, dv = D(P)^T dout and dP = D(dout v^T).
#include "compiler/Dialect/NN/AttentionParts.h"
#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::nn {

// ---- the gradient of scores and what follows from it --------------------------------------------

namespace {
struct AttentionGradients {
  Value query, key, value, scores; ///< scores: of the bias, in the scores' shape
};
struct ResultTypes {
  Type query, key, value;
};
} // namespace

/// Grouped heads share keys and values: [b, g, r, k, d] is summed to [b, g, k, d].
static Value ofGroup(AttentionParts &parts, Value gradient, ArrayRef<int64_t> shape) {
  if (parts.isGrouped && shapeOf(gradient)[2] != 1)
    gradient = ReduceOp::create(parts.builder, parts.loc, ReduceKind::Sum, gradient, {2});
  return parts.reshaped(gradient, shape);
}

static AttentionGradients gradientsOf(AttentionParts &parts, AttentionOperands operands, Value gradient,
                                      ResultTypes types, ValueRange whole = {}) {
  OpBuilder &builder = parts.builder;
  Location loc = parts.loc;
  Type narrow = parts.narrow, wide = parts.wide;
  gradient = parts.likeQuery(parts.converted(gradient, narrow));
  Value weights = whole.empty() ? parts.probabilitiesForGradient() : parts.probabilitiesOfPart(whole[0]);
  Value kept = parts.converted(parts.dropped(weights), narrow);
  Value value = parts.product(kept, gradient, /*transposeLhs=*/true, false, types.value);
  Value ofWeights = parts.dropped(parts.product(gradient, parts.value, false, /*transposeRhs=*/true, wide));
  int64_t last = int64_t(shapeOf(weights).size()) - 1;
  Value mean = !whole.empty() ? parts.meanOfPart(whole[0], whole[1])
                              : Value(ReduceOp::create(builder, loc, ReduceKind::Sum, MulOp::create(builder, loc, ofWeights, weights), {last}));
  Value scores = MulOp::create(builder, loc, weights, SubOp::create(builder, loc, ofWeights, mean));
  Value ofProduct = MulOp::create(builder, loc, scores, parts.number(parts.mask.scale));
  if (parts.visible)
    ofProduct = SelectOp::create(builder, loc, parts.visible, ofProduct, parts.number(0));
  Value scaled = parts.converted(ofProduct, narrow);
  Value query = parts.product(scaled, parts.key, false, false, types.query);
  Value key = parts.product(scaled, parts.query, /*transposeLhs=*/true, false, types.key);
  return {parts.reshaped(query, shapeOf(operands.query)), ofGroup(parts, key, shapeOf(operands.key)),
          ofGroup(parts, value, shapeOf(operands.value)), scores};
}

void AttentionOp::buildGradients(GradientBuilder &b) {
  if (!getBias() || !b.wants(3)) {
    Value gradient = b.cast(b.cotangent(), tensorType(getQuery()).getElementType()); // products take one type
    auto op = AttentionGradOp::create(b.builder, b.loc, getQuery().getType(), getKey().getType(), getValue().getType(),
                                      getQuery(), getKey(), getValue(), gradient, getBias(), getScaleAttr(),
                                      getCausalOffsetAttr(), getGuardedAttr());
    if (getVisible())
      op.getVisibleMutable().assign(getVisible());
    op.setHiddenAttr(getHiddenAttr());
    op.getQueryStartMutable().assign(getQueryStart());
    op.getKeyStartMutable().assign(getKeyStart());
    if (getQueryPositions())
      op.getQueryPositionsMutable().assign(getQueryPositions());
    if (std::optional<DropoutDraw> draw = dropoutOf(*this))
      addDropout(op, *draw);
    for (unsigned i = 0; i < 3; ++i)
      b.give(i, op.getResult(i));
    return;
  }
  // A bias that is learned is of the scores' size itself, or a sum over it: spelled out.
  AttentionOperands operands = operandsOf(*this);
  AttentionParts parts(b.builder, b.loc, operands, maskOf(*this), dropoutOf(*this));
  AttentionGradients gradients = gradientsOf(parts, operands, b.cotangent(), {parts.narrow, parts.narrow, parts.narrow});
  b.give(0, gradients.query);
  b.give(1, gradients.key);
  b.give(2, gradients.value);
  ArrayRef<int64_t> query = shapeOf(getQuery());
  b.give(3, b.reshape(gradients.scores, {query[0], query[1], query[2], shapeOf(getKey())[2]}));
}

// ---- nn.attention_grad --------------------------------------------------------------------------

SmallVector<unsigned> AttentionGradOp::getNarrowOperands() { return {0, 1, 2, 3}; }

ShardingRule AttentionGradOp::getShardingRule() {
  // Keys and values are read by every query of their group; the gradient of scores sums over the features of values.
  ShardingRule rule = buildRule(
      attentionRuleText(*this, "b(gr)qD,bgKD,bgKx,b(gr)qx", "->b(gr)qD,bgKD,bgKx; sum rqx; linear 3"), *this);
  if (getWholeSums())
    for (ShardingFactor &factor : rule.factors)
      factor.canCut &= !factor.reduction;
  return rule;
}

Operation *AttentionGradOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes, ValueRange offsets) {
  return localizeAttention(*this, builder, operands, resultTypes, offsets);
}

/// Scores, their gradient, and a product for each result.
int64_t AttentionGradOp::getFlops() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), value = shapeOf(getValue());
  return countScores(query, value, maskOf(*this)) * (2 * (3 * query[3] + 2 * value[3]) + 10);
}

LogicalResult AttentionGradOp::verify() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey()), value = shapeOf(getValue());
  if (query.size() != 4 || key.size() != 4 || value.size() != 4)
    return emitOpError("(C1) query, key and value need rank 4");
  if (query[0] != key[0] || query[3] != key[3] || key.take_front(3) != value.take_front(3) ||
      shapeOf(getGradient()) != ArrayRef<int64_t>({query[0], query[1], query[2], value[3]}))
    return emitOpError("(C1) shapes do not fit [b, h, q, d], [b, g, k, d], [b, g, k, x], [b, h, q, x]");
  if (key[1] == 0 ? query[1] != 0 : query[1] % key[1] != 0)
    return emitOpError("(C2) ") << key[1] << " key groups do not divide " << query[1] << " heads";
  if (failed(verifyAttentionPositions(*this, operandsOf(*this), maskOf(*this))) || failed(verifyAttentionDropout(*this)))
    return failure();
  if (failed(verifyAttentionMask(*this, operandsOf(*this), getHidden().has_value())))
    return failure();
  for (auto [operand, result] : llvm::zip(getOperands().take_front(3), getResults()))
    if (shapeOf(operand) != shapeOf(result))
      return emitOpError("(C4) ") << result.getType() << " is no gradient of " << operand.getType();
  Type element = tensorType(getQuery()).getElementType();
  bool isOneType = llvm::all_of(getOperands().take_front(4), [&](Value operand) {
    return tensorType(operand).getElementType() == element;
  });
  if (!isOneType || !isa<FloatType>(element) ||
      llvm::any_of(getResults(), [](Value result) { return !isa<FloatType>(tensorType(result).getElementType()); }))
    return emitOpError("(C4) query, key, value and gradient need one float type, the results float types");
  SmallVector<int64_t> logSum(query), sums(query);
  logSum[3] = 2;
  sums[3] = 1;
  if (getWhole().size() != 0 && getWhole().size() != 2)
    return emitOpError("(C8) `whole` is a log_sum and sums of rows, got ") << getWhole().size() << " values";
  if (!getWhole().empty() && (failed(verifyOfQueries(*this, getWhole()[0], logSum, element)) ||
                              failed(verifyOfQueries(*this, getWhole()[1], sums, element))))
    return failure();
  return success();
}

SmallVector<Value> AttentionGradOp::decompose(OpBuilder &builder) {
  AttentionOperands operands = operandsOf(*this);
  AttentionParts parts(builder, getLoc(), operands, maskOf(*this), dropoutOf(*this));
  auto element = [](Value result) { return tensorType(result).getElementType(); };
  ResultTypes types{element(getQueryGradient()), element(getKeyGradient()), element(getValueGradient())};
  AttentionGradients gradients = gradientsOf(parts, operands, getGradient(), types, getWhole());
  return {gradients.query, gradients.key, gradients.value};
}

} // namespace hpc::nn
