// What of a plan's Session buffers is saved: every name once, with the ranks that hold pieces of it. A checkpoint is the
// same whatever layout wrote it, because whole tensors go into it and slices are taken out.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/core/Backend.h"

#include <string>
#include <vector>

namespace hpc {

/// A parameter that is trained, or a state.
struct SavedTensor {
  /// One rank's slice. Ranks that hold the same elements have the same bits, and the lowest speaks for them.
  struct Piece {
    int64_t rank = 0;
    int32_t buffer = 0; ///< of the rank's stage
    SliceCopy slice;
  };
  std::string name; ///< plan::Binding::saved: "transformer.wte.weight", "adam.m/transformer.wte.weight"
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<Piece> pieces; ///< disjoint, by rank; together the whole tensor
};

/// By name. A tensor that two stages hold comes from the first.
std::vector<SavedTensor> savedTensors(const plan::Plan &plan);

} // namespace hpc
