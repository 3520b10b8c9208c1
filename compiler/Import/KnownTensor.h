// A tensor whose value is known while importing, kept small: a dim along which all elements are equal is held once.
// So a mask over [batch, query, key] that is the same for the whole batch costs query x key, and a filled tensor one
// element.
#pragma once

#include "compiler/Interpreter/Tensor.h"

namespace hpc::onnx {

struct KnownTensor {
  SmallVector<int64_t> shape; ///< the shape in the graph
  Tensor compact;             ///< same rank; each dim has the size of `shape` or 1

  KnownTensor() = default;
  explicit KnownTensor(Tensor tensor);
  /// From a compact form that may be smaller still.
  KnownTensor(SmallVector<int64_t> shape, Tensor compact);

  DType dtype() const { return compact.dtype; }
  int64_t elements() const { return elementCount(shape); }
  /// All elements are equal (or there is but one).
  bool isSplat() const { return compact.size() == 1; }
  /// Dims of the compact form with more than one element.
  SmallVector<int> variedDims() const;
};

/// The largest tensor that folding writes out.
constexpr int64_t maxFoldedElements = int64_t(1) << 26;

/// An error for more than maxFoldedElements.
Status checkFolded(int64_t elements);

/// All elements. Error: more than maxFoldedElements.
Expected<Tensor> expanded(const KnownTensor &known);
/// Elements of the compact form, repeated to `shape`, which it broadcasts to.
Tensor broadcastTo(const Tensor &tensor, ArrayRef<int64_t> shape);

// ---- affine integers ----------------------------------------------------------------------------

/// value[i] = start + step * i[dim], the same along all other dims; dim -1: one value.
struct AffineIndex {
  int dim = -1;
  int64_t start = 0, step = 0, size = 1;
};

/// nullopt if the (integer) tensor is not affine in at most one coordinate.
std::optional<AffineIndex> findAffine(const KnownTensor &known);

/// value[i] = start + sum of steps[d] * i[d].
struct AffineForm {
  int64_t start = 0;
  SmallVector<int64_t> steps; ///< one per dim, 0 for a dim held once
};
/// For integers, and floats that are whole numbers below 2^53. nullopt if it is not affine.
std::optional<AffineForm> findAffineForm(const Tensor &compact);

} // namespace hpc::onnx
