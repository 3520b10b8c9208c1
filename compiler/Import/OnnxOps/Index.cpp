// Gathers, running sums and products, reversed sequences.
#include "compiler/Import/OnnxOps/Dims.h"

namespace hpc::onnx {
namespace {

/// The row of a table that PyTorch does not train: the third of (weight, indices, padding_idx), -1 for none.
std::optional<int64_t> paddingRow(NodeImport &n) {
  SmallVector<StringRef> arguments = n.torchArguments("aten.embedding");
  int64_t row = -1;
  if (!n.mode.training || arguments.size() < 3 || arguments[2].getAsInteger(10, row) || row < 0)
    return std::nullopt;
  return row;
}

Results gather(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1);
  int64_t axis = n.axis(n.integer("axis", 0), n.b.rank(data));
  if (!n.b.status().ok())
    return {data};
  Value rows = n.b.gather(data, indices, axis);
  std::optional<int64_t> padding = paddingRow(n);
  if (!padding || n.b.rank(data) != 2 || axis != 0 || !isFloat(n.b.dtype(data)))
    return {rows};
  SmallVector<int64_t> places = n.b.shape(indices);
  places.push_back(1);
  Value isPadding =
      n.b.compare(nn::ComparePredicate::eq, n.b.reshape(indices, places), n.b.scalar(double(*padding), indices));
  return {n.b.select(isPadding, n.b.unary<nn::DetachOp>(rows), rows)};
}

Results gatherNd(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1);
  return {n.b.gatherNd(data, indices, n.integer("batch_dims", 0))};
}

/// result[i, j] = data[i, indices[i, j]] along any axis; off it the indices may reach less far than data.
Results gatherElements(NodeImport &n) {
  Value data = n.in(0), indices = indexInput(n, 1);
  SmallVector<int64_t> from = n.b.shape(data), to = n.b.shape(indices);
  size_t rank = from.size();
  int64_t axis = n.axis(n.integer("axis", 0), int64_t(rank));
  if (rank == 0 || rank != to.size())
    return {n.b.fail("data and indices differ in rank")};
  to[size_t(axis)] = from[size_t(axis)];
  for (size_t dim = 0; dim < rank; ++dim)
    if (to[dim] > from[dim])
      return {n.b.fail("its indices reach further than data along dim " + std::to_string(dim))};
  if (!n.b.status().ok())
    return {data};
  Value reached = n.b.slice(data, SmallVector<int64_t>(rank, 0), SmallVector<int64_t>(rank, 1), to);
  return {moveLastTo(n, pickAlong(n, moveToLast(n, reached, axis), moveToLast(n, indices, axis)), axis)};
}

Results cumsum(NodeImport &n) {
  SmallVector<int64_t> axis = n.b.integers(n.in(1), "axis");
  if (axis.size() != 1)
    return {n.b.fail("its axis must be one number")};
  int64_t dim = n.axis(axis[0], n.b.rank(n.in(0)));
  return {n.b.cumsum(n.in(0), dim, n.integer("exclusive", 0), n.integer("reverse", 0))};
}

/// Each element is the product of the axis' elements that a triangular mask keeps for it.
Results cumprod(NodeImport &n) {
  SmallVector<int64_t> given = n.b.integers(n.in(1), "axis");
  if (given.size() != 1)
    return {n.b.fail("its axis must be one number")};
  int64_t rank = n.b.rank(n.in(0)), axis = n.axis(given[0], rank);
  if (!n.b.status().ok())
    return {n.in(0)};
  Value x = moveToLast(n, n.in(0), axis);
  int64_t size = n.b.shape(x).back();
  bool exclusive = n.integer("exclusive", 0), reverse = n.integer("reverse", 0);
  auto predicate = exclusive ? nn::ComparePredicate::gt : nn::ComparePredicate::ge;
  Value own = countAlong(n, 2, 0, size), other = countAlong(n, 2, 1, size);
  Value counts = n.b.compare(predicate, reverse ? other : own, reverse ? own : other);
  Value factors = n.b.select(counts, insertDim(n, x, rank - 1), n.b.scalar(1, x));
  return {moveLastTo(n, reduceLast(n, ReduceKind::Prod, factors), axis)};
}

/// The first lengths[b] elements of sequence b in reverse, the rest as they stand.
Results reverseSequence(NodeImport &n) {
  Value x = n.in(0), lengths = indexInput(n, 1);
  int64_t rank = n.b.rank(x), batch = n.axis(n.integer("batch_axis", 1), rank), time = n.axis(n.integer("time_axis", 0), rank);
  if (!n.b.status().ok())
    return {x};
  if (batch == time || n.b.shape(lengths) != SmallVector<int64_t>{n.b.shape(x)[size_t(batch)]})
    return {n.b.fail("it needs a batch axis, another time axis and one length for each sequence")};
  SmallVector<int64_t> order = {batch, time}, inverse(size_t(rank), 0);
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != batch && dim != time)
      order.push_back(dim);
  for (auto [to, from] : llvm::enumerate(order))
    inverse[size_t(from)] = int64_t(to);
  Value length = insertDim(n, lengths, 1), at = countAlong(n, 2, 1, n.b.shape(x)[size_t(time)]);
  Value mirrored = n.b.sub(n.b.sub(length, n.b.scalar(1, length)), at);
  Value source = n.b.select(n.b.compare(nn::ComparePredicate::lt, at, length), mirrored, at);
  return {n.b.transpose(pickAlong(n, n.b.transpose(x, order), source), inverse)};
}

const OnnxOp indexTable[] = {
    {"Gather", 1, gather},
    {"GatherND", 11, gatherNd},
    {"GatherElements", 11, gatherElements},
    {"CumSum", 11, cumsum},
    {"CumProd", 26, cumprod},
    {"ReverseSequence", 10, reverseSequence},
};

} // namespace

ArrayRef<OnnxOp> indexOps() { return indexTable; }

} // namespace hpc::onnx
