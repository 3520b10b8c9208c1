// Ops that make or read indices. Those that read global coordinates take the offset of what their rank holds.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

static bool isOfIntegers(Value value) { return isa<IntegerType>(tensorType(value).getElementType()); }

// ---- iota ---------------------------------------------------------------------------------------

ShardingRule IotaOp::getShardingRule() {
  ShardingRule rule;
  rule.text = "iota";
  if (getOffset())
    rule.operands.emplace_back();
  auto &dims = rule.results.emplace_back();
  for (auto [dim, size] : llvm::enumerate(shapeOf(getResult()))) {
    dims.emplace_back();
    if (size == 1)
      continue;
    dims.back().push_back(int(rule.factors.size()));
    rule.factors.push_back({size, true, std::nullopt, dim == getDim(), false});
  }
  return rule;
}

Operation *IotaOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes, ValueRange offsets) {
  Value offset = offsets.empty() ? (operands.empty() ? Value() : operands[0]) : offsets[0];
  auto local = IotaOp::create(builder, getLoc(), resultTypes[0], offset, getDim(), getStart(), getStep());
  local->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return local;
}

LogicalResult IotaOp::verify() {
  if (int64_t(getDim()) < 0 || int64_t(getDim()) >= tensorType(getResult()).getRank())
    return emitOpError("(C1) dim ") << getDim() << " of " << getResult().getType();
  return success();
}

// ---- embedding ----------------------------------------------------------------------------------

ShardingRule EmbeddingOp::getShardingRule() {
  return buildRule(getOffset() ? "ve,...,->...e; sum v; lookup v" : "ve,...->...e; sum v; lookup v", *this);
}

Operation *EmbeddingOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes, ValueRange offsets) {
  Value offset = offsets.empty() ? (operands.size() > 2 ? operands[2] : Value()) : offsets[0];
  auto local =
      EmbeddingOp::create(builder, getLoc(), resultTypes[0], operands[0], operands[1], offset, getVocabulary());
  local->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return local;
}

LogicalResult EmbeddingOp::verify() {
  ArrayRef<int64_t> table = shapeOf(getTable());
  SmallVector<int64_t> shape(shapeOf(getIds()));
  if (table.size() != 2 || !isOfIntegers(getIds()))
    return emitOpError("(C1) takes a [v, e] table and integer ids, got ")
           << getTable().getType() << " and " << getIds().getType();
  shape.push_back(table[1]);
  if (shapeOf(getResult()) != ArrayRef<int64_t>(shape))
    return emitOpError("(C1) result ") << getResult().getType() << " must be the ids' shape and " << table[1];
  return success();
}

// ---- embedding_grad -----------------------------------------------------------------------------

ShardingRule EmbeddingGradOp::getShardingRule() {
  ShardingRule rule = buildRule(getOffset() ? "...e,...,->ve; index v; linear 0" : "...e,...->ve; index v; linear 0", *this);
  for (const ShardingRule::DimFactors &dim : rule.operands[1])
    for (int factor : dim)
      rule.factors[factor].reduction = ReduceKind::Sum;
  return rule;
}

Operation *EmbeddingGradOp::localize(OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                                     ValueRange offsets) {
  Value offset = offsets.empty() ? (operands.size() > 2 ? operands[2] : Value()) : offsets[0];
  auto local =
      EmbeddingGradOp::create(builder, getLoc(), resultTypes[0], operands[0], operands[1], offset, getVocabulary());
  local->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  return local;
}

int64_t EmbeddingGradOp::getFlops() { return tensorType(getRows()).getNumElements(); }

LogicalResult EmbeddingGradOp::verify() {
  ArrayRef<int64_t> rows = shapeOf(getRows()), result = shapeOf(getResult());
  if (rows.empty() || rows.drop_back() != shapeOf(getIds()) || !isOfIntegers(getIds()))
    return emitOpError("(C1) takes integer ids and rows of their shape and e, got ")
           << getIds().getType() << " and " << getRows().getType();
  if (result.size() != 2 || result[1] != rows.back())
    return emitOpError("(C1) result ") << getResult().getType() << " must be [v, " << rows.back() << "]";
  return success();
}

// ---- gather -------------------------------------------------------------------------------------

ShardingRule GatherOp::getShardingRule() {
  ShardingRule rule;
  rule.text = "gather";
  rule.linear = {LinearClause::Sum, {0}};
  rule.operands.resize(2); // before references are taken
  rule.results.resize(1);
  auto &data = rule.operands[0], &indices = rule.operands[1], &result = rule.results[0];
  auto add = [&](int64_t size, bool canCut) {
    ShardingRule::DimFactors dim;
    if (size != 1) {
      dim.push_back(int(rule.factors.size()));
      rule.factors.push_back({size, canCut, std::nullopt, false, false});
    }
    return dim;
  };
  for (auto [dim, size] : llvm::enumerate(shapeOf(getData())))
    data.push_back(add(size, dim != getAxis()));
  for (int64_t size : shapeOf(getIndices()))
    indices.push_back(add(size, true));
  result.append(data.begin(), data.begin() + getAxis());
  result.append(indices.begin(), indices.end());
  result.append(data.begin() + getAxis() + 1, data.end());
  return rule;
}

/// Dim 0 of the result is the data's, or, along axis 0, the indices', which stand at `axis` however many they are.
std::optional<NamedAttrList> GatherOp::attributesForMoreDims(int64_t more) {
  if (getAxis() == 0)
    return NamedAttrList((*this)->getAttrDictionary());
  return attributesWithLaterAxis(*this, getAxisAttr(), getAxisAttrName(), more);
}

LogicalResult GatherOp::verify() {
  ArrayRef<int64_t> data = shapeOf(getData()), indices = shapeOf(getIndices());
  if (int64_t(getAxis()) < 0 || getAxis() >= data.size() || !isOfIntegers(getIndices()))
    return emitOpError("(C1) needs an axis of ") << getData().getType() << " and integer indices";
  SmallVector<int64_t> shape(data.take_front(getAxis()));
  llvm::append_range(shape, indices);
  llvm::append_range(shape, data.drop_front(getAxis() + 1));
  if (shapeOf(getResult()) != ArrayRef<int64_t>(shape))
    return emitOpError("(C1) result ") << getResult().getType() << " does not follow from data, indices and axis";
  return success();
}

ShardingRule GatherNdOp::getShardingRule() {
  ShardingRule rule;
  rule.text = "gather_nd";
  rule.linear = {LinearClause::Sum, {0}};
  rule.operands.resize(2); // before references are taken
  rule.results.resize(1);
  auto &data = rule.operands[0], &indices = rule.operands[1], &result = rule.results[0];
  data.resize(shapeOf(getData()).size());
  indices.resize(shapeOf(getIndices()).size());
  result.resize(shapeOf(getResult()).size());
  auto add = [&](ShardingRule::DimFactors &dim, int64_t size, bool canCut) {
    if (size == 1)
      return;
    dim.push_back(int(rule.factors.size()));
    rule.factors.push_back({size, canCut, std::nullopt, false, false});
  };
  size_t batch = getBatchDims(), depth = shapeOf(getIndices()).back(), positions = indices.size() - 1;
  for (size_t dim = 0; dim < data.size(); ++dim)
    add(data[dim], shapeOf(getData())[dim], dim < batch || dim >= batch + depth);
  for (size_t dim = 0; dim < batch; ++dim)
    indices[dim] = data[dim];
  for (size_t dim = batch; dim < indices.size(); ++dim)
    add(indices[dim], shapeOf(getIndices())[dim], dim < positions);
  for (size_t dim = 0; dim < result.size(); ++dim)
    result[dim] = dim < positions ? indices[dim] : data[batch + depth + dim - positions];
  return rule;
}

std::optional<NamedAttrList> GatherNdOp::attributesForMoreDims(int64_t more) {
  return attributesWithLaterAxis(*this, getBatchDimsAttr(), getBatchDimsAttrName(), more); // all batch dims lead
}

LogicalResult GatherNdOp::verify() {
  ArrayRef<int64_t> data = shapeOf(getData()), indices = shapeOf(getIndices());
  int64_t batch = getBatchDims(), depth = indices.empty() ? 0 : indices.back();
  if (!isOfIntegers(getIndices()) || indices.empty() || batch < 0 || batch >= int64_t(indices.size()) ||
      batch + depth > int64_t(data.size()) || data.take_front(batch) != indices.take_front(batch))
    return emitOpError("(C1) indices ") << getIndices().getType() << " with " << batch << " batch dims do not fit "
                                        << getData().getType();
  SmallVector<int64_t> shape(indices.drop_back());
  llvm::append_range(shape, data.drop_front(batch + depth));
  if (shapeOf(getResult()) != ArrayRef<int64_t>(shape))
    return emitOpError("(C1) result ") << getResult().getType() << " does not follow from data and indices";
  return success();
}

// ---- update_slice -------------------------------------------------------------------------------

ShardingRule UpdateSliceOp::getShardingRule() {
  ShardingRule rule;
  rule.text = "update_slice";
  rule.operands.resize(3);
  ArrayRef<int64_t> state = shapeOf(getState()), rows = shapeOf(getRows());
  auto add = [&](int64_t size, bool canCut) {
    ShardingRule::DimFactors dim;
    if (size != 1) {
      dim.push_back(int(rule.factors.size()));
      rule.factors.push_back({size, canCut, std::nullopt, false, false});
    }
    return dim;
  };
  for (size_t dim = 0; dim < state.size(); ++dim) {
    const bool isShared = dim != getDim();
    rule.operands[0].push_back(add(state[dim], isShared));
    rule.operands[1].push_back(isShared ? rule.operands[0].back() : add(rows[dim], false));
  }
  rule.results = {rule.operands[0]};
  return rule;
}

std::optional<NamedAttrList> UpdateSliceOp::attributesForMoreDims(int64_t more) {
  return attributesWithLaterAxis(*this, getDimAttr(), getDimAttrName(), more);
}

/// A position along `dim` has the row of its own number less `position`, if there is one.
SmallVector<Value> UpdateSliceOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  const int64_t dim = getDim(), written = shapeOf(getRows())[size_t(dim)], length = shapeOf(getState())[size_t(dim)];
  auto number = [&](int64_t value) { return ConstantOp::create(builder, loc, builder.getI64TensorAttr({value})); };
  auto along = RankedTensorType::get({length}, builder.getI64Type());
  Value place = IotaOp::create(builder, loc, along, Value(), 0, 0, 1);
  Value row = SubOp::create(builder, loc, place, getPosition());
  if (getWraps())
    row = ModOp::create(builder, loc, row, number(length));
  Value isNew = AndOp::create(builder, loc, CompareOp::create(builder, loc, ComparePredicate::ge, row, number(0)),
                              CompareOp::create(builder, loc, ComparePredicate::lt, row, number(written)));
  row = MinOp::create(builder, loc, MaxOp::create(builder, loc, row, number(0)), number(written - 1));
  Value picked = GatherOp::create(builder, loc, getType(), getRows(), row, dim);
  SmallVector<int64_t> shape(shapeOf(getState()).size(), 1);
  shape[size_t(dim)] = length;
  isNew = ReshapeOp::create(builder, loc, RankedTensorType::get(shape, builder.getI1Type()), isNew);
  return {SelectOp::create(builder, loc, isNew, picked, getState())};
}

LogicalResult UpdateSliceOp::verify() {
  auto state = tensorType(getState()), rows = tensorType(getRows());
  const size_t dim = size_t(getDim());
  SmallVector<int64_t> shape(rows.getShape());
  if (dim >= shape.size() || shape.size() != size_t(state.getRank()))
    return emitOpError("(C1) needs rows of the state's rank and a dim of it, got ") << rows << " and dim " << dim;
  const int64_t written = std::exchange(shape[dim], state.getDimSize(unsigned(dim))), last = shape[dim] - written;
  if (ArrayRef<int64_t>(shape) != state.getShape() || last < 0 || rows.getElementType() != state.getElementType())
    return emitOpError("(C1) rows ") << rows << " must be as " << state << ", with at most " << shape[dim] << " along dim " << dim;
  auto position = tensorType(getPosition());
  if (position.getRank() != 0 || !position.getElementType().isInteger(64))
    return emitOpError("(C2) position must be a tensor<i64>, got ") << position;
  DenseIntElementsAttr constant;
  if (matchPattern(getPosition(), m_Constant(&constant)))
    if (int64_t at = *constant.value_begin<int64_t>(); at < 0 || (at > last && !getWraps()))
      return emitOpError("(C2) position ") << at << " is not in 0 to " << last;
  RankedTensorType result = tensorType(getResult()); // before reshards, each may be cut in its own way
  if (result.getShape() != state.getShape() || result.getElementType() != state.getElementType())
    return emitOpError("(C3) result ") << getResult().getType() << " must have the state's type " << state;
  return success();
}

ShardingRule CumsumOp::getShardingRule() { return axisLocalRule(*this, {static_cast<int64_t>(getAxis())}); }

std::optional<NamedAttrList> CumsumOp::attributesForMoreDims(int64_t more) {
  return attributesWithLaterAxis(*this, getAxisAttr(), getAxisAttrName(), more);
}

} // namespace hpc::nn
