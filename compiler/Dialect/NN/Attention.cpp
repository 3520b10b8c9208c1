// Scaled dot-product attention; the definition is two matmuls round a masked softmax. Between them f16 and bf16 are
// computed in f32, the scores included: they are rounded nowhere.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

ShardingRule AttentionOp::getShardingRule() {
  // A causal query reads its own position, so q stays whole then.
  std::string q = getCausalOffset() ? "Q" : "q";
  std::string text = "b(gr)" + q + "D,bgKD,bgKx";
  if (getBias())
    text += ",b(gr)" + q + "K";
  return buildRule(text + "->b(gr)" + q + "x", *this);
}

int64_t AttentionOp::getFlops() {
  ArrayRef<int64_t> query = shapeOf(getQuery()), value = shapeOf(getValue());
  return 2 * query[0] * query[1] * query[2] * value[2] * (query[3] + value[3]) +
         5 * query[0] * query[1] * query[2] * value[2];
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
  if (!getBias())
    return success();
  ArrayRef<int64_t> bias = shapeOf(getBias());
  int64_t scores[] = {query[0], query[1], query[2], key[2]};
  if (bias.size() != 4 || llvm::any_of(llvm::zip(bias, scores), [](auto pair) {
        return std::get<0>(pair) != 1 && std::get<0>(pair) != std::get<1>(pair);
      }))
    return emitOpError("(C3) bias ") << getBias().getType() << " must have rank 4 and broadcast to the scores";
  return success();
}

SmallVector<Value> AttentionOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  Type narrow = tensorType(getQuery()).getElementType();
  Type element = narrow.isF16() || narrow.isBF16() ? builder.getF32Type() : narrow;
  auto converted = [&](Value value, Type to) -> Value {
    if (tensorType(value).getElementType() == to)
      return value;
    return CastOp::create(builder, loc, RankedTensorType::get(shapeOf(value), to), value);
  };
  auto constant = [&](double value) -> Value {
    return ConstantOp::create(
        builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, element), builder.getFloatAttr(element, value)));
  };
  auto reshape = [&](Value value, ArrayRef<int64_t> shape) -> Value {
    return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, tensorType(value).getElementType()), value);
  };
  ArrayRef<int64_t> query = shapeOf(getQuery()), key = shapeOf(getKey()), value = shapeOf(getValue());
  int64_t groups = key[1], heads = query[1];
  // Grouped heads get a dim of their own, along which keys and values broadcast: [b, g, r, q, d] and [b, g, 1, k, d].
  bool grouped = groups != heads && groups > 0;
  Value q = getQuery(), k = getKey(), v = getValue(), bias = getBias();
  if (grouped) {
    int64_t repeat = heads / groups;
    q = reshape(q, {query[0], groups, repeat, query[2], query[3]});
    k = reshape(k, {key[0], groups, 1, key[2], key[3]});
    v = reshape(v, {value[0], groups, 1, value[2], value[3]});
    if (bias) {
      ArrayRef<int64_t> shape = shapeOf(bias);
      bias = reshape(bias, {shape[0], shape[1] == 1 ? 1 : groups, shape[1] == 1 ? 1 : repeat, shape[2], shape[3]});
    }
  }
  auto product = [&](Value lhs, Value rhs, bool transposeRhs, Type sum) -> Value {
    auto op = MatmulOp::create(builder, loc, lhs, rhs, /*transposeLhs=*/false, transposeRhs);
    op.getResult().setType(RankedTensorType::get(shapeOf(op.getResult()), sum));
    return op;
  };
  Value scores = product(q, k, /*transposeRhs=*/true, element);
  scores = MulOp::create(builder, loc, scores, constant(getScale().convertToDouble()));
  if (bias)
    scores = AddOp::create(builder, loc, scores, converted(bias, element));
  if (std::optional<uint64_t> offset = getCausalOffset()) {
    Type i64 = builder.getI64Type();
    Value row =
        IotaOp::create(builder, loc, RankedTensorType::get({query[2], 1}, i64), Value(), 0, int64_t(*offset), 1);
    Value column = IotaOp::create(builder, loc, RankedTensorType::get({1, key[2]}, i64), Value(), 1, 0, 1);
    Value visible = CompareOp::create(builder, loc, ComparePredicate::ge, row, column);
    scores = SelectOp::create(builder, loc, visible, scores, constant(-std::numeric_limits<double>::infinity()));
  }
  Value weights = SoftmaxOp::create(builder, loc, scores);
  if (getGuarded())
    weights = SelectOp::create(builder, loc, IsNanOp::create(builder, loc, weights), constant(0), weights);
  weights = converted(weights, narrow);
  Value result = product(weights, v, /*transposeRhs=*/false, tensorType(getResult()).getElementType());
  if (grouped)
    result = reshape(result, shapeOf(getResult()));
  return {result};
}

} // namespace hpc::nn
