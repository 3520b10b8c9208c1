// Ops about which elements are the largest, as comparisons with numbers that count along the axis: so the axis of an
// ArgMax, and of a TopK of few, may be cut. Only a TopK of many needs an order, of an axis that is held whole.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

/// The first (or last) position of the largest or smallest element along `axis`, which stays with size 1. NaN counts as
/// the extreme one, as in numpy.
Value extremePosition(NodeImport &n, Value x, int64_t axis, bool isMax, bool takesLast) {
  int64_t size = n.b.shape(x)[size_t(axis)];
  if (size == 0)
    return n.b.fail("axis " + std::to_string(axis) + " of its data has no elements, so none is the largest");
  Value extreme = n.b.reduce(isMax ? ReduceKind::Max : ReduceKind::Min, x, {axis});
  Value isExtreme = n.b.compare(nn::ComparePredicate::eq, x, extreme);
  if (isFloat(n.b.dtype(x))) // an extreme that is NaN equals nothing
    isExtreme = n.b.binary<nn::OrOp>(isExtreme, n.b.unary<nn::IsNanOp>(x));
  Value position = countAlong(n, n.b.rank(x), axis, size);
  Value candidate = n.b.select(isExtreme, position, n.b.scalar(takesLast ? -1 : double(size), position));
  return n.b.reduce(takesLast ? ReduceKind::Max : ReduceKind::Min, candidate, {axis});
}

template <bool isMax> Results argExtreme(NodeImport &n) {
  Value x = n.in(0);
  int64_t axis = n.axis(n.integer("axis", 0), n.b.rank(x));
  if (!n.b.status().ok())
    return {x};
  Value position = extremePosition(n, x, axis, isMax, n.integer("select_last_index", 0));
  if (n.integer("keepdims", 1) || !n.b.status().ok())
    return {position};
  SmallVector<int64_t> shape = n.b.shape(position);
  shape.erase(shape.begin() + axis);
  return {n.b.reshape(position, shape)};
}

/// 1 at the first of the largest elements along the axis, else 0.
Value hardmaxAlong(NodeImport &n, Value x, int64_t axis) {
  Value position = extremePosition(n, x, axis, true, false);
  if (!n.b.status().ok())
    return x;
  Value count = countAlong(n, n.b.rank(x), axis, n.b.shape(x)[size_t(axis)]);
  return n.b.cast(n.b.compare(nn::ComparePredicate::eq, count, position), n.b.dtype(x));
}

Results hardmax(NodeImport &n) {
  int64_t axis = n.axis(n.integer("axis", -1), n.b.rank(n.in(0)));
  return {n.b.status().ok() ? hardmaxAlong(n, n.in(0), axis) : n.in(0)};
}

/// Before opset 13: over all dims from `axis` on, flattened.
Results flatHardmax(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> shape = n.b.shape(x);
  int64_t axis = n.axis(n.integer("axis", 1), n.b.rank(x));
  if (!n.b.status().ok())
    return {x};
  ArrayRef<int64_t> dims(shape);
  Value flat =
      n.b.reshape(x, {elementCount(dims.take_front(size_t(axis))), elementCount(dims.drop_front(size_t(axis)))});
  return {n.b.reshape(hardmaxAlong(n, flat, 1), shape)};
}

/// Values and positions of the k first of x in descending order (ascending where not `largest`), along `axis`.
struct Ordered {
  Value values, positions;
};

/// Removes the extreme element k times: k passes over the axis. NaN is above all numbers and equal elements keep their
/// order, as in nn.sort_position.
Ordered selectInOrder(NodeImport &n, Value x, int64_t axis, int64_t k, bool largest) {
  int64_t size = n.b.shape(x)[size_t(axis)];
  Value count = countAlong(n, n.b.rank(x), axis, size), rankOfTies = count, ordered = x;
  Value isNan = isFloat(n.b.dtype(x)) ? n.b.unary<nn::IsNanOp>(x) : Value();
  if (isNan && !largest) { // beside the infinities, but after them
    ordered = n.b.select(isNan, highest(n, x), x);
    rankOfTies = n.b.select(isNan, n.b.add(count, n.b.scalar(double(size), count)), count);
  }
  Value isLeft;
  SmallVector<Value> values, positions;
  for (int64_t place = 0; place < k; ++place) {
    Value candidate = isLeft ? n.b.select(isLeft, ordered, largest ? lowest(n, x) : highest(n, x)) : ordered;
    Value extreme = n.b.reduce(largest ? ReduceKind::Max : ReduceKind::Min, candidate, {axis});
    Value isExtreme = n.b.compare(nn::ComparePredicate::eq, candidate, extreme);
    if (isNan && largest) // an extreme that is NaN equals nothing
      isExtreme = n.b.binary<nn::OrOp>(isExtreme, isNan);
    if (isLeft) // an element that was taken may equal the extreme
      isExtreme = n.b.binary<nn::AndOp>(isExtreme, isLeft);
    Value tie = n.b.select(isExtreme, rankOfTies, n.b.scalar(2.0 * double(size), count));
    Value position = n.b.binary<nn::ModOp>(n.b.reduce(ReduceKind::Min, tie, {axis}), n.b.scalar(double(size), count));
    Value isOther = n.b.compare(nn::ComparePredicate::ne, count, position);
    values.push_back(n.b.reduce(ReduceKind::Max, n.b.select(isOther, lowest(n, x), x), {axis}));
    positions.push_back(position);
    isLeft = isLeft ? n.b.binary<nn::AndOp>(isLeft, isOther) : isOther;
  }
  return {n.b.concat(values, axis), n.b.concat(positions, axis)};
}

/// Each of the k places takes its element of the sorted row: a row of n costs n * n.
Ordered takeSorted(NodeImport &n, Value x, int64_t axis, int64_t k, bool largest) {
  int64_t size = n.b.shape(x)[size_t(axis)], last = n.b.rank(x) - 1;
  Value row = moveToLast(n, x, axis);
  Value position = n.b.sortPosition(row, last, largest);
  // [..., k, size]: whether an element takes a place.
  Value takes = n.b.compare(nn::ComparePredicate::eq, insertDim(n, position, last), countAlong(n, 2, 0, k));
  Value value = reduceLast(n, ReduceKind::Max, n.b.select(takes, insertDim(n, row, last), lowest(n, x)));
  Value count = countAlong(n, 1, 0, size);
  Value index = reduceLast(n, ReduceKind::Max, n.b.select(takes, count, n.b.scalar(-1, count)));
  return {moveLastTo(n, value, axis), moveLastTo(n, index, axis)};
}

/// A pass of selectInOrder costs about as much as comparing each element with so many others.
constexpr int64_t costOfPass = 8;
/// Each pass is a dozen ops of the program.
constexpr int64_t maxPasses = 256;

Results topK(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> k = n.has(1) ? n.b.integers(n.in(1), "k") : SmallVector<int64_t>{n.integer("k", -1)};
  int64_t axis = n.axis(n.integer("axis", -1), n.b.rank(x));
  if (!n.b.status().ok())
    return {x, x};
  int64_t size = n.b.shape(x)[size_t(axis)];
  if (k.size() != 1 || k[0] < 0 || k[0] > size)
    return {n.b.fail("its k" + (k.size() == 1 ? " of " + std::to_string(k[0]) : std::string()) +
                     " must be one number from 0 to the axis's " + countText(size, "element")),
            x};
  bool selects = k[0] > 0 && k[0] <= maxPasses && k[0] * costOfPass <= size;
  Ordered ordered = (selects ? selectInOrder : takeSorted)(n, x, axis, k[0], n.integer("largest", 1));
  return {ordered.values, ordered.positions};
}

/// `on` where the new dim's position is the index, else `off`; an index out of range is on nowhere.
Results oneHot(NodeImport &n) {
  Tensor depthNumber = n.b.element(n.in(1), "depth");
  Value indices = n.b.cast(n.in(0), DType::I64), values = n.in(2);
  int64_t rank = n.b.rank(indices), axis = n.axis(n.integer("axis", -1), rank + 1);
  if (n.b.shape(values) != SmallVector<int64_t>{2})
    return {n.b.fail("its values must be two, [off, on]")};
  int64_t depth = depthNumber.isFloat() ? convertToInteger(DType::I64, depthNumber.number(0)) : depthNumber.ints[0];
  if (!n.b.status().ok())
    return {indices};
  if (depth < 1)
    return {n.b.fail("a depth of " + std::to_string(depth) + "; it must be 1 or more")};
  Value position = countAlong(n, rank + 1, axis, depth);
  Value isOn = n.b.compare(nn::ComparePredicate::eq, insertDim(n, nonNegative(n, indices, depth), axis), position);
  auto value = [&](int64_t which) { return n.b.reshape(n.b.slice(values, {which}, {1}, {1}), {}); };
  return {n.b.select(isOn, value(1), value(0))};
}

const OnnxOp orderTable[] = {
    {"ArgMax", 1, argExtreme<true>},
    {"ArgMin", 1, argExtreme<false>},
    {"Hardmax", 1, flatHardmax},
    {"Hardmax", 13, hardmax},
    {"TopK", 1, topK},
    {"OneHot", 9, oneHot},
};

} // namespace

ArrayRef<OnnxOp> orderOps() { return orderTable; }

} // namespace hpc::onnx
