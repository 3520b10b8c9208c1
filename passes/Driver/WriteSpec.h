// --write-spec: what was chosen, as a sidecar that leads to the same plan.
#pragma once

#include "compiler/MLIR.h"
#include "compiler/Sidecar/Sidecar.h"
#include "passes/Options.h"

namespace hpc {

/// A rule for every parameter that has a seed (`annotated`: a program after that phase), the rules for tensors of its own
/// sidecar, and the degrees.
Expected<Sidecar> chosenSpec(ModuleOp annotated, const Options &options);

/// Adds a rule for every other parameter: the cut that follows from the seeds (`propagated`: after that phase).
void addPropagatedParams(ModuleOp propagated, Sidecar &sidecar);

/// Adds the rules that cut the program where it is cut (`staged`: a program after phase stage).
void addStageRules(ModuleOp staged, Sidecar &sidecar);

} // namespace hpc
