// The index maps of the ops that only move elements.
#include "passes/Kernels/Regions/IndexMap.h"

namespace hpc::kernels {

IndexExpr linearize(IndexBuilder &indices, ArrayRef<IndexExpr> index, ArrayRef<int64_t> shape) {
  IndexExpr linear;
  int64_t stride = 1;
  for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
    linear = indices.add(linear, IndexBuilder::mul(index[dim], stride));
    stride *= shape[dim];
  }
  return linear;
}

Index delinearize(IndexBuilder &indices, IndexExpr linear, ArrayRef<int64_t> shape) {
  Index index(shape.size());
  size_t major = 0;
  while (major < shape.size() && shape[major] == 1)
    ++major;
  for (int64_t dim = int64_t(shape.size()) - 1; dim > int64_t(major); --dim)
    // An empty dim is never reached.
    std::tie(linear, index[dim]) = indices.split(linear, std::max<int64_t>(shape[dim], 1));
  for (int64_t dim = int64_t(major); dim < int64_t(shape.size()); ++dim)
    if (shape[dim] == 1)
      index[dim] = 0;
  if (major < shape.size())
    index[major] = linear;
  return index;
}

/// The index into `from` of element `index` of `to`, the same elements in row-major order. Dims that both shapes share
/// pass unchanged.
static Index reshapeIndex(IndexBuilder &indices, ArrayRef<IndexExpr> index, ArrayRef<int64_t> to,
                          ArrayRef<int64_t> from) {
  Index source(from.size());
  if (llvm::is_contained(to, 0))
    return source;
  // Walk both shapes from the left in runs of equal products: [4, 33, 40] and [132, 5, 8] have the runs (4, 33 | 132)
  // and (40 | 5, 8).
  size_t i = 0, j = 0;
  while (i < to.size() || j < from.size()) {
    size_t firstTo = i, firstFrom = j;
    int64_t a = i < to.size() ? to[i++] : 1, b = j < from.size() ? from[j++] : 1;
    while (a != b)
      a < b ? a *= to[i++] : b *= from[j++];
    ArrayRef<int64_t> toRun = to.slice(firstTo, i - firstTo), fromRun = from.slice(firstFrom, j - firstFrom);
    Index part = delinearize(indices, linearize(indices, index.slice(firstTo, toRun.size()), toRun), fromRun);
    std::copy(part.begin(), part.end(), source.begin() + firstFrom);
  }
  return source;
}

Index broadcastIndex(ArrayRef<IndexExpr> index, ArrayRef<int64_t> from) {
  Index source(index.take_back(from.size()));
  for (auto [expression, size] : llvm::zip_equal(source, from))
    if (size == 1)
      expression = 0;
  return source;
}

bool mapThroughView(IndexBuilder &indices, Operation *op, ArrayRef<IndexExpr> index, Index &source) {
  if (op->getNumOperands() != 1)
    return false;
  ArrayRef<int64_t> from = nn::shapeOf(op->getOperand(0)), to = nn::shapeOf(op->getResult(0));
  if (isa<nn::ReshapeOp>(op)) {
    source = reshapeIndex(indices, index, to, from);
    return true;
  }
  if (isa<nn::BroadcastOp>(op)) {
    source = broadcastIndex(index, from);
    return true;
  }
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    source.assign(from.size(), IndexExpr());
    for (auto [dim, fromDim] : llvm::enumerate(transpose.getPermutation()))
      source[fromDim] = index[dim];
    return true;
  }
  if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    source.clear();
    for (auto [i, start, step] : llvm::zip_equal(index, slice.getStarts(), slice.getSteps()))
      source.push_back(indices.add(start, IndexBuilder::mul(i, step)));
    return true;
  }
  if (auto window = dyn_cast<nn::WindowOp>(op)) {
    size_t windowed = window.getStrides().size(), leading = from.size() - windowed;
    source.assign(index.begin(), index.begin() + leading);
    for (size_t i = 0; i < windowed; ++i)
      source.push_back(indices.add(IndexBuilder::mul(index[leading + i], window.getDilations()[i]),
                                   IndexBuilder::mul(index[leading + windowed + i], window.getStrides()[i])));
    return true;
  }
  return false;
}

} // namespace hpc::kernels
