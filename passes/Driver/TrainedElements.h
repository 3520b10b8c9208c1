// The elements of a trained tensor in the type and orientation that a file wants them in, a piece at a time.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/core/NamedTensor.h"

#include <functional>

namespace hpc {

/// A tensor of a checkpoint, perhaps turned: rank 2, its dims exchanged.
struct TrainedTensor {
  std::string name; ///< in the checkpoint
  const NamedTensor *tensor = nullptr;
  bool isTransposed = false;
  bool isMapped = false; ///< its bytes are in a mapped file: pages that have been written are dropped

  std::vector<int64_t> shape() const;
};

/// Whether elements of `from` can become elements of `to`: exactly, or f32 rounded to f16 or bf16, which training holds as f32.
bool canBecome(DType from, DType to);

/// Calls `write` with all elements as `to`, in pieces of a few MiB. Error (Usage): a number that is too large for `to`.
Status writeElements(const TrainedTensor &trained, DType to, const std::function<Status(const std::byte *data, int64_t bytes)> &write);

/// Whether two tensors of one type and shape have the same bits.
bool isSameTensor(const NamedTensor &a, const NamedTensor &b);

} // namespace hpc
