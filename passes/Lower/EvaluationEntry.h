// The entry `evaluate` of a training plan.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// Gives a placed plan of a training step the entries `train`, which is the step as it is, and `evaluate`: the instructions
/// that the loss and the number of valid tokens depend on, in their programs and at their places. Programs that are all of one
/// of the step's are that one. It adds no buffer and no code.
///
/// Each rank does a part of what it does in the step, in the same order, and messages keep both ends, so whatever holds of the
/// step holds of its part: nothing waits for ever, no slot is too few, no buffer overlaps another.
void addEvaluation(plan::Plan &plan);

} // namespace hpc
