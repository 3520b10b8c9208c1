// The entry `reorder` of a plan for generation: the rows of its states change places, as beams do.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// A plan, to be placed, that holds the states of `step` as that holds them and has one step: row i of each state becomes what row number
/// `rows/i` was. These are step scalars from 0 to the number of rows less 1, one for each row of the first dim of the states, which is
/// the same for all of them. There are no outputs.
///
/// Where ranks hold different rows, they gather all of them. It holds the rows of one state at a time beside the states.
///
/// Errors: Internal, of states whose first dims are of different sizes or within a view; Unsupported, of states with a slot for each micro-batch.
Expected<plan::Plan> reorderPlan(const plan::Plan &step);

} // namespace hpc
