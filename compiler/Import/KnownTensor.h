// A tensor whose value is known while importing, kept small: a dim along which all elements are equal is held once.
// So a mask over [batch, query, key] that is the same for the whole batch costs query x key, and a filled tensor one
// element.
#pragma once

#include "compiler/Interpreter/Tensor.h"

namespace hpc::onnx {

struct KnownTensor {
  SmallVector<int64_t> shape; ///< what the graph sees
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
constexpr int64_t maxFoldedElements = int64_t(1) << 28;

/// An error above that.
Status checkFolded(int64_t elements);

/// All elements. Error: more than maxFoldedElements.
Expected<Tensor> expanded(const KnownTensor &known);
/// Elements of the compact form, repeated to `shape`, which it broadcasts to.
Tensor broadcastTo(const Tensor &tensor, ArrayRef<int64_t> shape);

} // namespace hpc::onnx
