// Scatters, computed from the result: each element finds the updates whose index is its own. So every dim may be cut,
// several updates added to one element are a sum, and of several that replace it the last one counts.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

struct Reduction {
  std::string name;
  ReduceKind kind = ReduceKind::Sum;

  bool replaces() const { return name == "none"; }
  Value identity(NodeImport &n, Value like) const {
    switch (kind) {
    case ReduceKind::Sum:
      return n.b.scalar(0, like);
    case ReduceKind::Prod:
      return n.b.scalar(1, like);
    case ReduceKind::Max:
      return lowest(n, like);
    case ReduceKind::Min:
      return highest(n, like);
    }
    llvm_unreachable("a reduction without an identity");
  }
  Value combine(NodeImport &n, Value x, Value y) const {
    switch (kind) {
    case ReduceKind::Sum:
      return n.b.add(x, y);
    case ReduceKind::Prod:
      return n.b.mul(x, y);
    case ReduceKind::Max:
      return n.b.binary<nn::MaxOp>(x, y);
    case ReduceKind::Min:
      return n.b.binary<nn::MinOp>(x, y);
    }
    llvm_unreachable("a reduction without a meaning");
  }
};

Reduction reductionOf(NodeImport &n) {
  Reduction reduction{n.text("reduction", "none")};
  static const std::pair<const char *, ReduceKind> kinds[] = {{"none", ReduceKind::Sum},
                                                              {"add", ReduceKind::Sum},
                                                              {"mul", ReduceKind::Prod},
                                                              {"max", ReduceKind::Max},
                                                              {"min", ReduceKind::Min}};
  for (auto [name, kind] : kinds)
    if (reduction.name == name) {
      reduction.kind = kind;
      return reduction;
    }
  n.b.fail("reduction '" + reduction.name + "' is none of none, add, mul, max, min");
  return reduction;
}

/// The last update that names an element, or -1; `hits` is [..., elements, updates].
Value lastHit(NodeImport &n, Value hits) {
  Value count = countAlong(n, 1, 0, n.b.shape(hits).back());
  return reduceLast(n, ReduceKind::Max, n.b.select(hits, count, n.b.scalar(-1, count)));
}

/// `replaced` where some update names the element, else `data`; `last` lacks the trailing dims that an update covers.
Value replaceHit(NodeImport &n, Value last, Value replaced, Value data) {
  while (n.b.rank(last) < n.b.rank(data))
    last = insertDim(n, last, n.b.rank(last));
  return n.b.select(n.b.compare(nn::ComparePredicate::ge, last, n.b.scalar(0, last)), replaced, data);
}
Value atLeastZero(NodeImport &n, Value x) { return n.b.binary<nn::MaxOp>(x, n.b.scalar(0, x)); }

/// A part of `data` that begins at 0 along every dim, put back over it.
Value putBack(NodeImport &n, Value part, Value data) {
  SmallVector<int64_t> from = n.b.shape(part), to = n.b.shape(data), low(to.size(), 0), high;
  Value isPart;
  for (size_t dim = 0; dim < to.size(); ++dim) {
    high.push_back(to[dim] - from[dim]);
    if (from[dim] == to[dim])
      continue;
    Value position = countAlong(n, int64_t(to.size()), int64_t(dim), to[dim]);
    Value within = n.b.compare(nn::ComparePredicate::lt, position, n.b.scalar(double(from[dim]), position));
    isPart = isPart ? n.b.binary<nn::AndOp>(isPart, within) : within;
  }
  if (!isPart)
    return part;
  return n.b.select(isPart, n.b.pad(part, low, high, Tensor(n.b.dtype(data), {})), data);
}

/// result[i, indices[i, j]] takes updates[i, j]; off the axis indices may reach less far than data.
Results scatterElements(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1), updates = n.in(2);
  Reduction reduction = reductionOf(n);
  int64_t rank = n.b.rank(data), axis = n.axis(n.integer("axis", 0), rank);
  if (!n.b.status().ok())
    return {data};
  if (n.b.shape(indices) != n.b.shape(updates) || n.b.rank(indices) != rank)
    return {n.b.fail("indices and updates must have one shape, with as many dims as data")};
  if (n.b.dtype(data) != n.b.dtype(updates))
    return {n.b.fail("data and updates must have one element type")};
  SmallVector<int64_t> whole = n.b.shape(data), reached = n.b.shape(indices), zeros(size_t(rank), 0),
                       ones(size_t(rank), 1);
  reached[size_t(axis)] = whole[size_t(axis)];
  for (int64_t dim = 0; dim < rank; ++dim)
    if (reached[size_t(dim)] > whole[size_t(dim)])
      return {n.b.fail("its indices reach further than data along dim " + std::to_string(dim))};
  Value part = moveToLast(n, n.b.slice(data, zeros, ones, reached), axis);
  indices = moveToLast(n, nonNegative(n, indices, whole[size_t(axis)]), axis);
  updates = moveToLast(n, updates, axis);
  // [..., elements, updates] from here on.
  Value element = countAlong(n, 2, 0, whole[size_t(axis)]);
  Value hits = n.b.compare(nn::ComparePredicate::eq, insertDim(n, indices, rank - 1), element);
  Value result;
  if (reduction.replaces()) {
    if (n.b.shape(indices).back() == 0)
      return {data};
    Value last = lastHit(n, hits);
    result = replaceHit(n, last, pickAlong(n, updates, atLeastZero(n, last)), part);
  } else {
    Value named = n.b.select(hits, insertDim(n, updates, rank - 1), reduction.identity(n, data));
    result = reduction.combine(n, part, reduceLast(n, reduction.kind, named));
  }
  return {putBack(n, moveLastTo(n, result, axis), data)};
}

/// The row of data's first dims, flattened, that each index tuple selects; -1 if it is out of range.
Value rowsNamed(NodeImport &n, Value indices, ArrayRef<int64_t> dims) {
  int64_t tuples = n.b.shape(indices)[0];
  Value row = n.b.scalar(0, DType::I64), isValid;
  for (auto [place, size] : llvm::enumerate(dims)) {
    Value at = n.b.reshape(n.b.slice(indices, {0, int64_t(place)}, {1, 1}, {tuples, 1}), {tuples});
    at = nonNegative(n, at, size);
    Value within = n.b.binary<nn::AndOp>(n.b.compare(nn::ComparePredicate::ge, at, n.b.scalar(0, at)),
                                         n.b.compare(nn::ComparePredicate::lt, at, n.b.scalar(double(size), at)));
    isValid = isValid ? n.b.binary<nn::AndOp>(isValid, within) : within;
    row = n.b.add(n.b.mul(row, n.b.scalar(double(size), row)), at);
  }
  return isValid ? n.b.select(isValid, row, n.b.scalar(-1, row)) : n.b.broadcast(row, {tuples});
}

/// result[indices[q, :], ...] takes updates[q, ...].
Results scatterNd(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1), updates = n.in(2);
  Reduction reduction = reductionOf(n);
  SmallVector<int64_t> whole = n.b.shape(data), at = n.b.shape(indices);
  if (at.empty() || at.back() > int64_t(whole.size()))
    return {n.b.fail("its indices have tuples of more numbers than data has dims")};
  if (n.b.dtype(data) != n.b.dtype(updates))
    return {n.b.fail("data and updates must have one element type")};
  ArrayRef<int64_t> named = ArrayRef<int64_t>(whole).take_front(size_t(at.back()));
  ArrayRef<int64_t> inner = ArrayRef<int64_t>(whole).drop_front(size_t(at.back()));
  SmallVector<int64_t> expected(at.begin(), at.end() - 1);
  llvm::append_range(expected, inner);
  if (n.b.shape(updates) != expected)
    return {n.b.fail("its updates do not have the shape of its indices and the rest of data")};
  int64_t tuples = elementCount(ArrayRef<int64_t>(at).drop_back()), rows = elementCount(named);
  if (!n.b.status().ok() || tuples == 0)
    return {data};
  auto withRows = [&](int64_t count) {
    SmallVector<int64_t> shape = {count};
    llvm::append_range(shape, inner);
    return shape;
  };
  Value flat = n.b.reshape(data, withRows(rows));
  updates = n.b.reshape(updates, withRows(tuples));
  Value row = rowsNamed(n, n.b.reshape(indices, {tuples, at.back()}), named);
  Value hits = n.b.compare(nn::ComparePredicate::eq, row, countAlong(n, 2, 0, rows)); // [rows, tuples]
  Value result;
  if (reduction.replaces()) {
    Value last = lastHit(n, hits);
    result = replaceHit(n, last, n.b.gather(updates, atLeastZero(n, last), 0), flat);
  } else {
    for (size_t dim = 0; dim < inner.size(); ++dim)
      hits = insertDim(n, hits, n.b.rank(hits));
    Value chosen = n.b.select(hits, insertDim(n, updates, 0), reduction.identity(n, data));
    Value total = n.b.reshape(n.b.reduce(reduction.kind, chosen, {1}), withRows(rows));
    result = reduction.combine(n, flat, total);
  }
  return {n.b.reshape(result, whole)};
}

/// A KV cache with `update` written from write_indices[batch] on, wrapping round where it is circular.
Results tensorScatter(NodeImport &n) {
  Value cache = n.in(0), update = n.in(1);
  int64_t rank = n.b.rank(cache), axis = n.axis(n.integer("axis", -2), rank);
  std::string mode = n.text("mode", "linear");
  if (!n.b.status().ok())
    return {cache};
  if (axis == 0 || n.b.rank(update) != rank)
    return {n.b.fail("its axis must not be the batch's, and the update must have as many dims as the cache")};
  // [batch, sequence, rest]
  SmallVector<int64_t> order = {0, axis}, inverse(size_t(rank), 0);
  for (int64_t dim = 1; dim < rank; ++dim)
    if (dim != axis)
      order.push_back(dim);
  for (auto [to, from] : llvm::enumerate(order))
    inverse[size_t(from)] = int64_t(to);
  Value past = n.b.transpose(cache, order), news = n.b.transpose(update, order);
  if (!n.b.status().ok())
    return {cache};
  int64_t batch = n.b.shape(past)[0], length = n.b.shape(past)[1], written = n.b.shape(news)[1];
  SmallVector<int64_t> expected = n.b.shape(past);
  expected[1] = written;
  if (n.b.shape(news) != expected || written > length || written == 0)
    return {n.b.fail("its update must be as its cache, with 1 to " + countText(length, "place") + " along the axis")};
  Value from = n.has(2) ? n.b.reshape(indexInput(n, 2), {batch, 1}) : n.b.reshape(n.b.scalar(0, DType::I64), {1, 1});
  Value source = n.b.sub(countAlong(n, 2, 1, length), from);
  if (mode == "circular")
    source = n.b.binary<nn::ModOp>(source, n.b.scalar(double(length), source));
  source = n.b.broadcast(source, {batch, length});
  Value isNew =
      n.b.binary<nn::AndOp>(n.b.compare(nn::ComparePredicate::ge, source, n.b.scalar(0, source)),
                            n.b.compare(nn::ComparePredicate::lt, source, n.b.scalar(double(written), source)));
  Value place = n.b.binary<nn::MinOp>(atLeastZero(n, source), n.b.scalar(double(written - 1), source));
  Value picked = pickAlong(n, news, place);
  while (n.b.rank(isNew) < rank)
    isNew = insertDim(n, isNew, n.b.rank(isNew));
  return {n.b.transpose(n.b.select(isNew, picked, past), inverse)};
}

const OnnxOp scatterTable[] = {
    {"Scatter", 9, scatterElements},
    {"ScatterElements", 11, scatterElements},
    {"ScatterND", 11, scatterNd},
    {"TensorScatter", 24, tensorScatter},
};

} // namespace

ArrayRef<OnnxOp> scatterOps() { return scatterTable; }

} // namespace hpc::onnx
