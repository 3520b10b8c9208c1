// Reductions over ranks, element by element and always in the order of the ranks, so that all get the same bits.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc::host {

/// target[i] = target[i] op source[i]. Max and Min give NaN if either is NaN. Integer sums wrap.
using Accumulate = void (*)(std::byte *target, const std::byte *source, int64_t count);

/// An error for what has no meaning here (a sum of bool) or no code yet (f16, bf16).
Expected<Accumulate> findAccumulate(plan::ReduceKind kind, DType dtype);

} // namespace hpc::host
