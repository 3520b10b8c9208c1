// The result of reshapes, transposes and slices of a contiguous buffer: an offset and a stride per dim, if there is
// one. Dims are kept as lists of pieces, so that splitting and merging heads again costs nothing.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

class StridedView {
public:
  /// A whole row-major buffer.
  explicit StridedView(ArrayRef<int64_t> shape);

  /// The same elements in row-major order of another shape; false if one of its dims needs two strides that no list of
  /// pieces represents.
  bool reshape(ArrayRef<int64_t> shape);
  /// Dim i becomes the old dim permutation[i].
  void transpose(ArrayRef<int64_t> permutation);
  /// Elements starts + i * steps; false where a dim has no single stride.
  bool slice(ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> shape);

  /// One stride per dim, in elements (0 for dims of size 1), or nullopt if a dim needs several.
  std::optional<SmallVector<int64_t>> strides() const;
  int64_t offset() const { return start; }

private:
  struct Piece {
    int64_t size, stride;
  };
  using Dim = SmallVector<Piece, 2>; ///< major to minor; neighbours that are one are merged, none has size 1
  static void append(Dim &dim, Piece piece);

  SmallVector<Dim> dims;
  int64_t start = 0;
  bool isEmpty = false; ///< no elements: every stride is 0
};

/// Applies `op` to its operand's view; false for ops whose result is no strided view.
bool applyView(Operation *op, StridedView &view);
/// The same where the op's result has `shape`, since its operand has fewer elements along a dim that it leaves whole.
bool applyView(Operation *op, StridedView &view, ArrayRef<int64_t> shape);
/// For a result that is written through views: the operand's view, given that of the result. False for ops that do not
/// give every element of the operand its one place.
bool applyInverse(Operation *op, StridedView &view);
/// Whether applyInverse supports the op.
bool isInvertibleView(Operation *op);

} // namespace hpc::kernels
