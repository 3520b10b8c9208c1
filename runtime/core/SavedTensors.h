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
  /// A slice, and the ranks that hold it, in ascending order: they have the same bits.
  struct Piece {
    std::vector<int64_t> holders;
    int32_t buffer = 0; ///< of the holders' stage
    SliceCopy slice;

    /// The holder that gives the slice to `rank`: the nearest one, which most likely is in its process.
    int64_t sourceFor(int64_t rank) const;
  };
  std::string name; ///< plan::Binding::saved: "transformer.wte.weight", "adam.m/transformer.wte.weight"
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<Piece> pieces; ///< disjoint, by first holder; together the whole tensor
  /// The rank whose process writes the tensor into a checkpoint. Owners are holders, and share the bytes of all tensors evenly.
  int64_t owner = 0;
};

/// By name. A tensor that two stages hold comes from the first. All processes get the same owners.
std::vector<SavedTensor> savedTensors(const plan::Plan &plan);

} // namespace hpc
