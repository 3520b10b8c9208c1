// The definition of attention up to its probabilities.
#include "compiler/Dialect/NN/AttentionParts.h"

namespace hpc::nn {

int64_t countScores(ArrayRef<int64_t> query, ArrayRef<int64_t> value, const AttentionMask &mask) {
  int64_t queries = query[2], keys = value[2];
  if (!mask.causalOffset || !mask.queryStart.empty() || !mask.keyStart.empty())
    return query[0] * query[1] * queries * keys;
  if (mask.queryPositions) // spread over those of the keys: the mean of the ranks that share them
    return query[0] * query[1] * ((queries * (keys + 1) + 1) / 2);
  // Query i sees i + offset + 1 keys from `first` on, all of them from `last` on.
  int64_t offset = std::clamp<int64_t>(int64_t(*mask.causalOffset), -queries, keys);
  int64_t first = std::max<int64_t>(0, -offset), last = std::clamp<int64_t>(keys - offset - 1, first, std::max(first, queries));
  int64_t seen = (last - first) * (first + last + 2 * offset + 1) / 2 + (queries - last) * keys;
  return query[0] * query[1] * seen;
}

LogicalResult verifyAttentionMask(Operation *attention, const AttentionOperands &operands, bool hasHidden) {
  ArrayRef<int64_t> query = shapeOf(operands.query);
  int64_t scores[] = {query[0], query[1], query[2], shapeOf(operands.key)[2]};
  for (auto [name, value] : {std::pair("bias", operands.bias), std::pair("visible", operands.visible)}) {
    if (!value)
      continue;
    ArrayRef<int64_t> shape = shapeOf(value);
    if (shape.size() != 4 || llvm::any_of(llvm::zip(shape, scores), [](auto pair) {
          return std::get<0>(pair) != 1 && std::get<0>(pair) != std::get<1>(pair);
        }))
      return attention->emitOpError("(C3) ") << name << " " << value.getType() << " must have rank 4 and broadcast to the scores";
  }
  if (operands.visible ? !tensorType(operands.visible).getElementType().isInteger(1) : hasHidden)
    return attention->emitOpError("(C3) 'hidden' needs `visible`, of bools");
  return success();
}

LogicalResult verifyAttentionPositions(Operation *attention, const AttentionOperands &operands, const AttentionMask &mask) {
  for (auto [name, starts] : {std::pair("query_start", ArrayRef<Value>(mask.queryStart)),
                              std::pair("key_start", ArrayRef<Value>(mask.keyStart))})
    for (Value start : starts) {
      if (!mask.causalOffset)
        return attention->emitOpError("(C6) '") << name << "' needs 'causal_offset': nothing else reads positions";
      if (tensorType(start).getRank() != 0 || tensorType(start).getElementType().isInteger(1))
        return attention->emitOpError("(C6) '") << name << "' takes numbers of rank 0, got " << start.getType();
    }
  if (!mask.queryPositions)
    return success();
  RankedTensorType type = tensorType(mask.queryPositions);
  ArrayRef<int64_t> query = shapeOf(operands.query);
  const bool drops = dropoutOf(attention).has_value();
  if (!mask.causalOffset && !drops)
    return attention->emitOpError("(C7) 'query_positions' needs 'causal_offset' or `dropout`: nothing else reads positions");
  const bool isOfEach = type.getShape() == ArrayRef<int64_t>({query[0], query[2]}) && !drops;
  if (!type.getElementType().isInteger() || type.getElementType().isInteger(1) || (type.getShape() != query.slice(2, 1) && !isOfEach))
    return attention->emitOpError("(C7) 'query_positions' must be integers [") << query[2] << "] or, without dropout, [" << query[0]
                                                                               << ", " << query[2] << "], got " << type;
  return success();
}

static Type typeOfScores(Type element) {
  return element.isF16() || element.isBF16() ? Type(Float32Type::get(element.getContext())) : element;
}

LogicalResult verifyOfQueries(Operation *attention, Value value, ArrayRef<int64_t> shape, Type element) {
  if (shapeOf(value) == shape && tensorType(value).getElementType() == typeOfScores(element))
    return success();
  return attention->emitOpError("(C8) a tensor of queries must be ")
         << RankedTensorType::get(shape, typeOfScores(element)) << ", got " << value.getType();
}

AttentionParts::AttentionParts(OpBuilder &builder, Location loc, AttentionOperands operands, AttentionMask mask,
                               std::optional<DropoutDraw> draw)
    : builder(builder), loc(loc), mask(std::move(mask)), draw(std::move(draw)), query(operands.query), key(operands.key), value(operands.value),
      bias(operands.bias), visible(operands.visible), narrow(tensorType(query).getElementType()),
      wide(typeOfScores(narrow)) {
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key), v = shapeOf(value);
  int64_t groups = k[1], heads = q[1];
  isGrouped = groups != heads && groups > 0;
  if (!isGrouped)
    return;
  int64_t repeat = heads / groups;
  key = reshaped(key, {k[0], groups, 1, k[2], k[3]});
  value = reshaped(value, {v[0], groups, 1, v[2], v[3]});
  for (Value *ofScores : {&bias, &visible})
    if (*ofScores) {
      ArrayRef<int64_t> shape = shapeOf(*ofScores);
      *ofScores =
          reshaped(*ofScores, {shape[0], shape[1] == 1 ? 1 : groups, shape[1] == 1 ? 1 : repeat, shape[2], shape[3]});
    }
  query = reshaped(query, {q[0], groups, repeat, q[2], q[3]});
}

Value AttentionParts::likeQuery(Value other) {
  if (!isGrouped)
    return other;
  SmallVector<int64_t> shape(shapeOf(query));
  shape.back() = shapeOf(other).back();
  return reshaped(other, shape);
}

Value AttentionParts::product(Value lhs, Value rhs, bool transposeLhs, bool transposeRhs, Type element) {
  auto op = MatmulOp::create(builder, loc, lhs, rhs, transposeLhs, transposeRhs);
  op.getResult().setType(RankedTensorType::get(shapeOf(op.getResult()), element));
  return op;
}

Value AttentionParts::converted(Value value, Type element) {
  if (tensorType(value).getElementType() == element)
    return value;
  return CastOp::create(builder, loc, RankedTensorType::get(shapeOf(value), element), value);
}

Value AttentionParts::reshaped(Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, tensorType(value).getElementType()), value);
}

Value AttentionParts::number(double value) {
  return ConstantOp::create(
      builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, wide), builder.getFloatAttr(wide, value)));
}

Value AttentionParts::sumOf(ArrayRef<Value> starts) {
  Value sum;
  for (Value start : starts) {
    Value whole = converted(start, builder.getI64Type());
    sum = sum ? Value(AddOp::create(builder, loc, sum, whole)) : whole;
  }
  return sum;
}

Value AttentionParts::lastKeys() {
  Type i64 = builder.getI64Type();
  const int64_t queries = shapeOf(query).drop_back().back(), offset = std::clamp(int64_t(*mask.causalOffset), -farthestOffset, farthestOffset);
  Value start = sumOf(mask.queryStart);
  if (!mask.queryPositions)
    return IotaOp::create(builder, loc, RankedTensorType::get({queries, 1}, i64), start, 0, offset, 1);
  // As a column for each query, of each sequence where they differ.
  SmallVector<int64_t> shape = {queries, 1};
  if (ArrayRef<int64_t> given = shapeOf(mask.queryPositions); given.size() == 2) {
    shape.insert(shape.begin(), isGrouped ? 2 : 1, 1);
    shape.insert(shape.begin(), given[0]);
  }
  Value last = reshaped(converted(mask.queryPositions, i64), shape);
  if (offset != 0) {
    auto type = RankedTensorType::get({}, i64);
    last = AddOp::create(builder, loc, last, ConstantOp::create(builder, loc, DenseElementsAttr::get(type, builder.getI64IntegerAttr(offset))));
  }
  return start ? Value(AddOp::create(builder, loc, last, start)) : last;
}

Value AttentionParts::maskedScores() {
  Value scores = product(query, key, /*transposeLhs=*/false, /*transposeRhs=*/true, wide);
  scores = MulOp::create(builder, loc, scores, number(mask.scale));
  if (visible)
    scores = SelectOp::create(builder, loc, visible, scores, number(mask.hidden));
  if (bias)
    scores = AddOp::create(builder, loc, scores, converted(bias, wide));
  if (mask.causalOffset) {
    Type i64 = builder.getI64Type();
    int64_t keys = shapeOf(scores).back();
    Value row = lastKeys();
    Value column = IotaOp::create(builder, loc, RankedTensorType::get({1, keys}, i64), sumOf(mask.keyStart), 1, 0, 1);
    Value visible = CompareOp::create(builder, loc, ComparePredicate::ge, row, column);
    scores = SelectOp::create(builder, loc, visible, scores, number(-std::numeric_limits<double>::infinity()));
  }
  return scores;
}

Value AttentionParts::finite(Value shift) {
  Value lowest = number(-std::numeric_limits<double>::infinity());
  return SelectOp::create(builder, loc, CompareOp::create(builder, loc, ComparePredicate::eq, shift, lowest), number(0), shift);
}

Value AttentionParts::exponentials(Value scores, Value shift) {
  return ExpOp::create(builder, loc, SubOp::create(builder, loc, scores, finite(shift)));
}

Value AttentionParts::probabilities() {
  Value weights = SoftmaxOp::create(builder, loc, maskedScores());
  if (mask.guarded)
    weights = SelectOp::create(builder, loc, IsNanOp::create(builder, loc, weights), number(0), weights);
  return weights;
}

Value AttentionParts::probabilitiesForGradient() {
  const bool isAtStart = mask.queryStart.empty() && mask.keyStart.empty() && !mask.queryPositions;
  const bool seesAlways =
      !bias && !visible && (!mask.causalOffset || (isAtStart && int64_t(*mask.causalOffset) >= 0));
  if (mask.guarded || seesAlways)
    return probabilities();
  Value scores = maskedScores();
  Value highest = ReduceOp::create(builder, loc, ReduceKind::Max, scores, {int64_t(shapeOf(scores).size()) - 1});
  Value unseen = CompareOp::create(builder, loc, ComparePredicate::eq, highest, number(-std::numeric_limits<double>::infinity()));
  return SelectOp::create(builder, loc, unseen, number(0), SoftmaxOp::create(builder, loc, scores));
}

Value AttentionParts::columnOf(Value logSum, int64_t which) {
  logSum = likeQuery(logSum);
  SmallVector<int64_t> shape(shapeOf(logSum)), starts(shape.size(), 0), steps(shape.size(), 1);
  shape.back() = 1;
  starts.back() = which;
  return SliceOp::create(builder, loc, RankedTensorType::get(shape, wide), logSum, starts, steps);
}

Value AttentionParts::meanOfPart(Value logSum, Value sums) {
  Value isSeen = CompareOp::create(builder, loc, ComparePredicate::gt, columnOf(logSum, 1), number(0));
  return SelectOp::create(builder, loc, isSeen, likeQuery(sums), number(0));
}

Value AttentionParts::probabilitiesOfPart(Value logSum) {
  Value total = columnOf(logSum, 1), unseen = CompareOp::create(builder, loc, ComparePredicate::eq, total, number(0));
  Value weights = DivOp::create(builder, loc, exponentials(maskedScores(), columnOf(logSum, 0)), total);
  weights = SelectOp::create(builder, loc, unseen, number(0), weights);
  return mask.guarded ? Value(SelectOp::create(builder, loc, IsNanOp::create(builder, loc, weights), number(0), weights)) : weights;
}

Value AttentionParts::dropped(Value weights) {
  if (!draw)
    return weights;
  // Offsets are of the dims with groups and heads apart; this rank may have but one head of each group.
  SmallVector<int64_t> shape(shapeOf(weights)), apart(shape);
  if (!draw->offsets.empty() && !isGrouped)
    apart = {shape[0], shape[1], 1, shape[2], shape[3]};
  Value kept = applyDropout(builder, loc, reshaped(weights, apart), *draw);
  return reshaped(kept, shape);
}

} // namespace hpc::nn
