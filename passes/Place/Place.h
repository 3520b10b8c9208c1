// Gives every buffer of a plan its offset, so that buffers that live at the same time do not overlap, and checks the
// peak.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

struct PlaceOptions {
  int64_t memory = 0; ///< bytes that a rank may take; 0 = unlimited
};

/// Sets offsets and arena sizes of all stages. What lives longer than a program is packed one after the other; the
/// buffers of one program share what follows in the work arena (`placeTemporaries`). Errors: Plan (a buffer that is
/// read before it is written), Capacity.
Status placeBuffers(plan::Plan &plan, const PlaceOptions &options = {});

/// Whether a rank takes no more than `memory`, which an error of kind Capacity explains; 0 = unlimited.
Status checkPeak(const plan::Plan &plan, int64_t memory);

/// Places a copy of the plan and runs the plan's check on it: for plans that are still rewritten.
Status checkUnplaced(plan::Plan plan);

} // namespace hpc
