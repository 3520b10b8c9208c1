// Strides through views of a buffer.
#include "passes/Kernels/Regions/StridedView.h"

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

void StridedView::append(Dim &dim, Piece piece) {
  if (piece.size == 1)
    return;
  if (!dim.empty() && dim.back().stride == piece.size * piece.stride)
    dim.back() = {dim.back().size * piece.size, piece.stride};
  else
    dim.push_back(piece);
}

StridedView::StridedView(ArrayRef<int64_t> shape) : dims(shape.size()), isEmpty(llvm::is_contained(shape, 0)) {
  if (isEmpty)
    return;
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
    append(dims[dim], {shape[dim], stride});
}

bool StridedView::reshape(ArrayRef<int64_t> shape) {
  SmallVector<Piece> pieces;
  for (const Dim &dim : dims)
    pieces.append(dim.begin(), dim.end());
  dims.assign(shape.size(), {});
  if (isEmpty)
    return true;
  size_t next = 0;
  for (auto [dim, size] : llvm::zip_equal(dims, shape))
    for (int64_t rest = size; rest > 1;) {
      Piece &piece = pieces[next];
      if (rest % piece.size == 0) {
        append(dim, piece);
        rest /= piece.size;
        ++next;
      } else if (piece.size % rest == 0) { // the major part; the minor one is left
        append(dim, {rest, piece.size / rest * piece.stride});
        piece.size /= rest;
        rest = 1;
      } else {
        return false;
      }
    }
  return true;
}

void StridedView::transpose(ArrayRef<int64_t> permutation) {
  SmallVector<Dim> moved;
  for (int64_t from : permutation)
    moved.push_back(dims[size_t(from)]);
  dims = std::move(moved);
}

bool StridedView::slice(ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> shape) {
  if (isEmpty || llvm::is_contained(shape, 0)) {
    isEmpty = true;
    dims.assign(shape.size(), {});
    return true;
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (starts[i] == 0 && steps[i] == 1 && dims[i].size() > 1) {
      int64_t whole = 1;
      for (const Piece &piece : dims[i])
        whole *= piece.size;
      if (whole == shape[i])
        continue; // nothing is cut off
    }
    if (dims[i].size() > 1)
      return false;
    int64_t stride = dims[i].empty() ? 0 : dims[i][0].stride;
    start += starts[i] * stride;
    dims[i].clear();
    append(dims[i], {shape[i], steps[i] * stride});
  }
  return true;
}

std::optional<SmallVector<int64_t>> StridedView::strides() const {
  SmallVector<int64_t> strides;
  for (const Dim &dim : dims) {
    if (dim.size() > 1)
      return std::nullopt;
    strides.push_back(dim.empty() ? 0 : dim[0].stride);
  }
  return strides;
}

bool applyView(Operation *op, StridedView &view) { return applyView(op, view, nn::shapeOf(op->getResult(0))); }

bool applyView(Operation *op, StridedView &view, ArrayRef<int64_t> shape) {
  if (isa<nn::ReshapeOp>(op))
    return view.reshape(shape);
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    view.transpose(transpose.getPermutation());
    return true;
  }
  if (auto slice = dyn_cast<nn::SliceOp>(op))
    return view.slice(slice.getStarts(), slice.getSteps(), shape);
  return false;
}

bool isInvertibleView(Operation *op) { return isa<nn::ReshapeOp, nn::TransposeOp>(op); }

bool applyInverse(Operation *op, StridedView &view) {
  if (isa<nn::ReshapeOp>(op))
    return view.reshape(nn::shapeOf(op->getOperand(0)));
  auto transpose = dyn_cast<nn::TransposeOp>(op);
  if (!transpose)
    return false;
  SmallVector<int64_t> inverse(transpose.getPermutation().size());
  for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
    inverse[size_t(from)] = int64_t(to);
  view.transpose(inverse);
  return true;
}

} // namespace hpc::kernels
