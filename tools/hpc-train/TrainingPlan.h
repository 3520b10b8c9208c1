// The training plan that hpc-train's flags call for: --global-batch, --micro-batch and --seq become sizes of the model's dims and a number
// of micro-batches, and the driver does the rest.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"
#include "tools/flags/Arguments.h"

namespace hpc {

/// The number of ranks, before anything is compiled.
Expected<int64_t> ranksOfPlan(const Arguments &arguments);

/// `planFolder`: from where the plan names files of weights. `evaluates`: it gets the entry `evaluate`. Remarks and diagnostics are
/// printed to standard error, --explain and --verify to standard output. An error without a message has been printed.
Expected<plan::Plan> makeTrainingPlan(const Arguments &arguments, const std::string &planFolder, bool evaluates);

} // namespace hpc
