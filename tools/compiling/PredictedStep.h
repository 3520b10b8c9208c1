// The time of a step, predicted for --explain.
#pragma once

#include "passes/Options.h"
#include "runtime/plan/PlanExplain.h"

namespace hpc {

/// A step of the plan's first entry on the machine of the options; none where they name no machine.
Expected<std::optional<plan::PredictedStep>> predictedStep(const plan::Plan &plan, const Options &options);

/// The line of --explain.
std::string stepText(const plan::Plan &plan, const plan::PredictedStep &step);

} // namespace hpc
