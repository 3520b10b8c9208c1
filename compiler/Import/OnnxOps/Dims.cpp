// Dims moved and added, numbers that count along a dim, indices made non-negative.
#include "compiler/Import/OnnxOps/Dims.h"

#include <limits>

namespace hpc::onnx {

static constexpr double beyondAll = std::numeric_limits<double>::infinity();

Value moveToLast(NodeImport &n, Value x, int64_t axis) {
  SmallVector<int64_t> permutation;
  for (int64_t dim = 0; dim < n.b.rank(x); ++dim)
    if (dim != axis)
      permutation.push_back(dim);
  if (int64_t(permutation.size()) < n.b.rank(x))
    permutation.push_back(axis);
  return n.b.transpose(x, permutation);
}

Value moveLastTo(NodeImport &n, Value x, int64_t axis) {
  int64_t rank = n.b.rank(x);
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (axis < rank) {
    permutation.pop_back();
    permutation.insert(permutation.begin() + axis, rank - 1);
  }
  return n.b.transpose(x, permutation);
}

Value insertDim(NodeImport &n, Value x, int64_t at) {
  SmallVector<int64_t> shape = n.b.shape(x);
  shape.insert(shape.begin() + std::min<int64_t>(at, int64_t(shape.size())), 1);
  return n.b.reshape(x, shape);
}

Value dropLast(NodeImport &n, Value x) {
  SmallVector<int64_t> shape = n.b.shape(x);
  if (!shape.empty())
    shape.pop_back();
  return n.b.reshape(x, shape);
}

Value countAlong(NodeImport &n, int64_t rank, int64_t dim, int64_t size) {
  if (Status status = checkFolded(size); !status.ok())
    return n.unsupported(status.message());
  SmallVector<int64_t> shape(size_t(rank), 1);
  shape[size_t(dim)] = size;
  Tensor count(DType::I64, shape);
  for (int64_t i = 0; i < size; ++i)
    count.ints[size_t(i)] = i;
  return n.b.known(std::move(count));
}

Value nonNegative(NodeImport &n, Value indices, int64_t size) {
  Value isNegative = n.b.compare(nn::ComparePredicate::lt, indices, n.b.scalar(0, indices));
  return n.b.select(isNegative, n.b.add(indices, n.b.scalar(double(size), indices)), indices);
}

Value indexInput(NodeImport &n, size_t index) {
  Value value = n.in(index);
  if (isFloat(n.b.dtype(value)) || n.b.dtype(value) == DType::Bool)
    return n.b.fail("its indices are " + std::string(name(n.b.dtype(value))) + ", not integers");
  return n.b.cast(value, DType::I64);
}

/// Bool has two numbers; an infinity would be true.
Value lowest(NodeImport &n, Value like) { return n.b.scalar(n.b.dtype(like) == DType::Bool ? 0 : -beyondAll, like); }
Value highest(NodeImport &n, Value like) { return n.b.scalar(beyondAll, like); }

Value reduceLast(NodeImport &n, ReduceKind kind, Value x) {
  if (n.b.rank(x) == 0)
    return x;
  return dropLast(n, n.b.reduce(kind, x, {n.b.rank(x) - 1}));
}

Value pickAlong(NodeImport &n, Value data, Value indices) {
  return n.b.gatherNd(data, insertDim(n, indices, n.b.rank(indices)), n.b.rank(indices) - 1);
}

} // namespace hpc::onnx
