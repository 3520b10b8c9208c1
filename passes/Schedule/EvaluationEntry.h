// The entry `evaluate` of a training plan.
#pragma once

#include "runtime/plan/Plan.h"

#include <set>
#include <string>

namespace hpc {

/// Gives a placed plan of a training step the entries `train`, which is the step as it is, and `evaluate`: the instructions
/// that the outputs of these names depend on (the loss, the number of valid tokens), in their programs and at their places. Programs that are all of one
/// of the step's are that one. It adds no buffer and no code.
///
/// Each rank does a part of what it does in the step, in the same order, and messages keep both ends, so whatever holds of the
/// step holds of its part: nothing waits for ever, no slot is too few, no buffer overlaps another.
void addEvaluation(plan::Plan &plan, const std::set<std::string> &outputs);

} // namespace hpc
