// Gives every buffer of a plan its offset, so that buffers that live at the same time do not overlap, and checks the
// peak.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

struct PlaceOptions {
  int64_t deviceMemory = 0; ///< bytes that a rank may take; 0 = unlimited
};

/// Sets offsets and arena sizes of all stages. Weights and states are packed one after the other; slots come first in
/// the work arena, temporaries share what follows: the largest first, each at the lowest place that is free for all of
/// its life (a greedy best fit). Errors: Plan (a buffer that is read before it is written), Capacity.
Status placeBuffers(plan::Plan &plan, const PlaceOptions &options = {});

} // namespace hpc
