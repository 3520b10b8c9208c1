// The reason why a step changed nothing, from its labels, its data, its loss and the loss scale.
#pragma once

#include "runtime/train/RunState.h"
#include "runtime/train/StepData.h"
#include "runtime/train/TrainingRun.h"

namespace hpc {

/// A clause for people, of a step whose gradient norm is not finite: "input 'x' of its batch holds nan at [1, 2]; mend
/// the data". `state`: of the run, before or after the step. Names a certain cause, else causes that are ruled out.
std::string whySkipped(const StepReport &report, const StepData &data, const RunState &state);

} // namespace hpc
