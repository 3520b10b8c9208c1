// Known integers that depend on their position in an affine way, and gathers by them, which are slices.
#pragma once

#include "compiler/Import/KnownTensor.h"

namespace hpc::onnx {

/// value[i] = start + step * i[dim], the same along all other dims; dim -1: one value.
struct AffineIndex {
  int dim = -1;
  int64_t start = 0, step = 0, size = 1;
};

/// Nothing when the (integer) tensor is not affine in at most one coordinate.
std::optional<AffineIndex> findAffine(const KnownTensor &known);

/// value[i] = start + sum of steps[d] * i[d].
struct AffineForm {
  int64_t start = 0;
  SmallVector<int64_t> steps; ///< one per dim, 0 for a dim held once
};
/// For integers, and floats that are whole numbers below 2^53. Nothing when it is not affine.
std::optional<AffineForm> findAffineForm(const Tensor &compact);

} // namespace hpc::onnx
