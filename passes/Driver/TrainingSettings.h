// What a checkpoint names of how its training step was compiled.
#pragma once

#include "passes/Options.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// What decides the numbers of a step and is no layout: loss, optimizer, what is trained and in which type. `module`: past
/// phase train. `dropout`: the rate in place of the model's own.
std::vector<plan::Setting> trainingSettings(ModuleOp module, const Options &options, std::optional<double> dropout);

} // namespace hpc
