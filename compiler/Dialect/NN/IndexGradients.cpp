// Gradients of look-ups: every one of them adds rows to a table, so nn.embedding_grad serves all.
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

/// Batch and indexed dims become one: position b * (d0 * d1 ..) + i0 * (d1 ..) + i1 .. of a table.
void GatherNdOp::buildGradients(GradientBuilder &b) {
  ArrayRef<int64_t> data = shapeOf(getData()), ids = shapeOf(getIndices());
  int64_t batchDims = getBatchDims(), depth = ids.back();
  Type i64 = b.builder.getI64Type();
  Value indices = b.cast(getIndices(), i64), position;
  SmallVector<int64_t> places(ids.drop_back());
  SmallVector<int64_t> starts(ids.size(), 0), steps(ids.size(), 1), one(ids);
  one.back() = 1;
  int64_t stride = 1, positions = product(data.slice(batchDims, depth));
  Value isKnown;
  auto both = [&](Value other) {
    isKnown = isKnown ? Value(AndOp::create(b.builder, b.loc, isKnown, other)) : other;
  };
  for (int64_t d = depth; d-- > 0;) {
    starts.back() = d;
    int64_t size = data[size_t(batchDims + d)];
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
    position = b.broadcast(b.number(indices, 0), places);
  for (int64_t d = batchDims; d-- > 0;) {
    SmallVector<int64_t> along(places.size(), 1);
    along[size_t(d)] = places[size_t(d)];
    Value index = b.iota(along, d, i64);
    Value part = stride == 1 ? index
                             : Value(MulOp::create(b.builder, b.loc, index, b.number(index, double(stride))));
    position = AddOp::create(b.builder, b.loc, position, part);
    stride *= data[size_t(d)];
  }
  int64_t rows = product(data.take_front(batchDims)) * positions;
  if (isKnown) // an index outside its dim names no element, though the whole position may
    position = b.select(isKnown, position, b.number(position, double(rows)));
  SmallVector<int64_t> shape = places;
  shape.push_back(product(data.drop_front(batchDims + depth)));
  b.give(0, b.reshape(addRows(b, b.reshape(b.cotangent(), shape), position, rows), data));
}

/// What an element was added to is on its other side.
void CumsumOp::buildGradients(GradientBuilder &b) {
  auto op = CumsumOp::create(b.builder, b.loc, b.cotangent(), int64_t(getAxis()));
  op.setExclusive(getExclusive());
  op.setReverse(!getReverse());
  b.give(0, op);
}

} // namespace hpc::nn
