// Gradients of look-ups: they add rows to a table, which nn.embedding_grad does; look-ups of few elements ask within
// their batch instead.
#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::nn {

static int64_t product(ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); }

/// rows [ids.., e] added up into a table [v, e].
static Value addRows(GradientBuilder &b, Value rows, Value ids, int64_t vocabulary) {
  auto type = RankedTensorType::get({vocabulary, shapeOf(rows).back()}, tensorType(rows).getElementType());
  return EmbeddingGradOp::create(b.builder, b.loc, type, rows, ids, Value(), vocabulary);
}

void EmbeddingOp::buildGradients(GradientBuilder &b) {
  // Before partition there is no offset and the table is whole.
  b.give(0, addRows(b, b.cotangent(), getIds(), getVocabulary()));
}

void EmbeddingGradOp::buildGradients(GradientBuilder &b) {
  if (!b.wants(0))
    return;
  auto type = RankedTensorType::get(shapeOf(getRows()), tensorType(getRows()).getElementType());
  Value rows = EmbeddingOp::create(b.builder, b.loc, type, b.cotangent(), getIds(), Value(), getVocabulary());
  // A row that is added nowhere matters to nothing, where a look-up has NaN.
  SmallVector<int64_t> perRow(shapeOf(getIds()));
  perRow.push_back(1);
  Value ids = b.reshape(getIds(), perRow);
  double rowsOfTable = double(int64_t(getVocabulary()));
  Value isKnown = AndOp::create(b.builder, b.loc, b.compare(ComparePredicate::ge, ids, b.number(ids, -rowsOfTable)),
                                b.compare(ComparePredicate::lt, ids, b.number(ids, rowsOfTable)));
  b.give(0, b.select(isKnown, rows, b.zero(rows)));
}

/// [before.., ids.., after..]: the ids' dims go to the front, all others are a row.
void GatherOp::buildGradients(GradientBuilder &b) {
  ArrayRef<int64_t> data = shapeOf(getData()), ids = shapeOf(getIndices());
  size_t axis = getAxis(), rank = shapeOf(getResult()).size();
  SmallVector<int64_t> order, rows(ids), back(data.size());
  for (size_t dim = axis; dim < axis + ids.size(); ++dim)
    order.push_back(int64_t(dim));
  for (size_t dim = 0; dim < rank; ++dim)
    if (dim < axis || dim >= axis + ids.size())
      order.push_back(int64_t(dim));
  int64_t width = product(data.take_front(axis)) * product(data.drop_front(axis + 1));
  rows.push_back(width);
  Value table = addRows(b, b.reshape(b.transpose(b.cotangent(), order), rows), getIndices(), data[axis]);
  // [size, before.., after..] with the axis back in its place.
  SmallVector<int64_t> apart = {data[axis]};
  llvm::append_range(apart, data.take_front(axis));
  llvm::append_range(apart, data.drop_front(axis + 1));
  for (size_t dim = 0; dim < data.size(); ++dim)
    back[dim] = dim < axis ? int64_t(dim + 1) : dim == axis ? 0 : int64_t(dim);
  b.give(0, b.transpose(b.reshape(table, apart), back));
}

/// Which of the indexed dims' positions, i0 * (d1 ..) + i1 .., each look-up names: [batch.., look-ups..] of i64; the
/// number of positions where it names none.
static Value positionsOf(GradientBuilder &b, Value indices, ArrayRef<int64_t> indexed) {
  ArrayRef<int64_t> ids = shapeOf(indices);
  indices = b.cast(indices, b.builder.getI64Type());
  SmallVector<int64_t> places(ids.drop_back()), starts(ids.size(), 0), steps(ids.size(), 1), one(ids);
  one.back() = 1;
  int64_t stride = 1;
  Value position, isKnown;
  auto both = [&](Value other) {
    isKnown = isKnown ? Value(AndOp::create(b.builder, b.loc, isKnown, other)) : other;
  };
  for (int64_t d = int64_t(indexed.size()); d-- > 0;) {
    starts.back() = d;
    int64_t size = indexed[size_t(d)];
    Value index = b.reshape(b.slice(indices, starts, steps, one), places);
    Value isNegative = b.compare(ComparePredicate::lt, index, b.number(index, 0));
    index = b.select(isNegative, AddOp::create(b.builder, b.loc, index, b.number(index, double(size))), index);
    both(b.compare(ComparePredicate::ge, index, b.number(index, 0)));
    both(b.compare(ComparePredicate::lt, index, b.number(index, double(size))));
    Value part = stride == 1 ? index
                             : Value(MulOp::create(b.builder, b.loc, index, b.number(index, double(stride))));
    position = position ? Value(AddOp::create(b.builder, b.loc, position, part)) : part;
    stride *= size;
  }
  if (!position)
    return b.broadcast(b.number(indices, 0), places);
  // An index outside its dim names no element, though the whole position may.
  return b.select(isKnown, position, b.number(position, double(stride)));
}

/// Each position asks which of its own batch's look-ups name it, so that ranks and micro-batches keep to their own.
static Value addWithinBatches(GradientBuilder &b, Value rows, Value position, ArrayRef<int64_t> batch,
                              int64_t positions, ArrayRef<int64_t> inner) {
  // [batch.., positions, look-ups, inner..]
  int64_t lookups = product(shapeOf(position).drop_front(batch.size()));
  SmallVector<int64_t> terms(batch), names(batch), count = {positions, 1};
  terms.append({1, lookups});
  names.append({1, lookups});
  terms.append(inner.begin(), inner.end());
  names.append(inner.size(), 1);
  count.append(inner.size(), 1);
  rows = b.reshape(rows, terms);
  Value isNamed = b.compare(ComparePredicate::eq, b.reshape(position, names),
                            b.iota(count, 0, tensorType(position).getElementType()));
  return b.sum(b.select(isNamed, rows, b.zero(rows)), {int64_t(batch.size()) + 1});
}

/// Batches and positions are the rows of one table: (batch index) * positions + position.
static Value addOverBatches(GradientBuilder &b, Value rows, Value position, ArrayRef<int64_t> batch, int64_t positions,
                            int64_t width) {
  SmallVector<int64_t> places(shapeOf(position)), along(places.size(), 1);
  Value isKnown = b.compare(ComparePredicate::lt, position, b.number(position, double(positions)));
  int64_t stride = positions;
  for (size_t d = batch.size(); d-- > 0; stride *= batch[d]) {
    along[d] = batch[d];
    Value index = b.iota(along, int64_t(d), tensorType(position).getElementType());
    along[d] = 1;
    position = AddOp::create(b.builder, b.loc, position,
                             MulOp::create(b.builder, b.loc, index, b.number(index, double(stride))));
  }
  position = b.select(isKnown, position, b.number(position, double(stride)));
  places.push_back(width);
  return addRows(b, b.reshape(rows, places), position, stride);
}

void GatherNdOp::buildGradients(GradientBuilder &b) {
  ArrayRef<int64_t> data = shapeOf(getData());
  size_t batchDims = size_t(getBatchDims()), depth = size_t(shapeOf(getIndices()).back());
  ArrayRef<int64_t> batch = data.take_front(batchDims), inner = data.drop_front(batchDims + depth);
  int64_t positions = product(data.slice(batchDims, depth));
  Value position = positionsOf(b, getIndices(), data.slice(batchDims, depth));
  // A table of all batches compares every look-up with the positions of every batch, but a row's elements at once.
  bool isCheaperWithin = batchDims > 0 && product(inner) <= product(batch);
  Value sums = isCheaperWithin ? addWithinBatches(b, b.cotangent(), position, batch, positions, inner)
                               : addOverBatches(b, b.cotangent(), position, batch, positions, product(inner));
  b.give(0, b.reshape(sums, data));
}

/// What an element was added to is on its other side.
void CumsumOp::buildGradients(GradientBuilder &b) {
  auto op = CumsumOp::create(b.builder, b.loc, b.cotangent(), int64_t(getAxis()));
  op.setExclusive(getExclusive());
  op.setReverse(!getReverse());
  b.give(0, op);
}

} // namespace hpc::nn
