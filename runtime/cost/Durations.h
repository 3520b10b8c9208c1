// How long each instruction of a plan takes on a machine: the clock of its simulation (Predict.h).
#pragma once

#include "runtime/cost/Machine.h"
#include "runtime/plan/InstructionRun.h"

namespace hpc::cost {

/// By roofs: a product or kernel takes what its operations take, or its bytes where these take longer; all else on a rank takes
/// its bytes; collectives and messages what CollectiveTime.h gives. `machine` is copied. Not for several threads at a time.
plan::Durations durationsOf(const Machine &machine);

} // namespace hpc::cost
