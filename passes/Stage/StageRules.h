// Where the sidecar's rules of stages cut a program.
#pragma once

#include "compiler/Sidecar/Sidecar.h"
#include "passes/Stage/Blocks.h"

namespace hpc {

/// One block for each of the stages * chunks parts: what a rule names stands where it says, and where rules leave a choice
/// the cut is one of `blocks`, taken so that the largest part costs as little as possible.
/// A rule speaks of ops by their module's path, node or value; of an op that none names so, by the names of its weights.
/// Errors (sidecar): a stage that there is not, stages out of the program's order, a rule that matches nothing.
Expected<Blocks> cutByRules(func::FuncOp function, const Blocks &blocks, int64_t stages, int64_t chunks,
                            const Sidecar &sidecar);

} // namespace hpc
