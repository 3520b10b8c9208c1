// Reductions over ranks, element by element and always in the order of the ranks, so that all get the same bits.
// The 16-bit floats are added up in f32 and rounded once, at the end.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <cstddef>

namespace hpc::host {

/// How `count` elements of the ranks become one result, in a block that holds running values of `wideSize` bytes each.
struct Reduction {
  int64_t wideSize = 1;
  void (*begin)(std::byte *running, const std::byte *source, int64_t count) = nullptr;
  void (*add)(std::byte *running, const std::byte *source, int64_t count) = nullptr;
  /// Adds running values to running values: the sum of some ranks to that of others.
  void (*merge)(std::byte *running, const std::byte *other, int64_t count) = nullptr;
  /// Makes the block hold elements again, from its start on.
  void (*end)(std::byte *running, int64_t count) = nullptr;
};

/// An error for what has no meaning: a sum of bool.
Expected<Reduction> findReduction(ReduceKind kind, DType dtype);

} // namespace hpc::host
