// From one element type to another that has all its numbers.
#pragma once

#include "runtime/base/DType.h"

#include <cstddef>
#include <cstdint>

namespace hpc {

/// Whether every number of `from` is one of `to`.
bool isExactIn(DType from, DType to);

/// `count` elements of a pair that isExactIn takes; neither side need be aligned.
void widen(DType from, const std::byte *source, DType to, std::byte *target, int64_t count);

} // namespace hpc
