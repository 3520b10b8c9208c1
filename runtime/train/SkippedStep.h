// Why a step changed nothing, by what is known of it: its labels, its data, its loss and the scale of that.
#pragma once

#include "runtime/train/Batches.h"
#include "runtime/train/RunState.h"
#include "runtime/train/TrainingRun.h"

namespace hpc {

/// A clause for people, of a step whose gradient norm is not finite: "input 'x' of its batch holds nan at [1, 2]; mend the
/// data". `state`: of the run, before or after the step. A cause is named where it is certain, else what is not the cause.
std::string whySkipped(const StepReport &report, const Batches &data, const RunState &state);

} // namespace hpc
