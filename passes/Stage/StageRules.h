// Where the sidecar's rules of stages cut a program.
#pragma once

#include "compiler/Sidecar/Sidecar.h"
#include "passes/Stage/Blocks.h"

namespace hpc {

/// One block for each of the stages * chunks parts. An op that a rule names is in the rule's stage; where rules leave a
/// choice, the cut is one of `blocks`, taken so that the largest part costs as little as possible. A rule names ops by
/// their module's path, node or value; an op without such a match, by the names of its weights.
/// Errors (sidecar): a stage that does not exist, stages out of the program's order, a rule that matches nothing.
Expected<Blocks> cutByRules(func::FuncOp function, const Blocks &blocks, int64_t stages, int64_t chunks,
                            const Sidecar &sidecar);

} // namespace hpc
