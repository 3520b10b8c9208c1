// Finds the first result of a step that is not finite.
#pragma once

#include "runtime/core/Executor.h"

namespace hpc {

/// Fails at an instruction that writes NaN or +infinity into a buffer of floats: "writes nan into 'logits' (f32 2x33x257) at [0, 3, 17]", which the
/// executor precedes with rank, program and node. -infinity alone is no fault, since masks have it. What a receive or a collective in flight
/// brings is not looked at; it has been, where it was computed. Needs device memory that the host reads, of which nothing holds NaN at the start.
/// `plan` has no entries and outlives the observer.
Observer firstNotFinite(const plan::Plan &plan);

} // namespace hpc
