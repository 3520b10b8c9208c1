// Products of a recurrent layer: each reads columns of one before it with the same weight, so no layout by columns and
// rows fits. Its weights are cut by the columns of their gates, and each step gathers the state, or they stay whole.
#pragma once

#include "compiler/ModuleMachine.h"
#include "passes/Annotate/DimTrace.h"

namespace hpc {

struct Recurrence {
  std::vector<std::pair<WeightMatmul, Piece>> products; ///< of all steps, and those of the input
  bool pays = false; ///< the saved computation and reads of weights outweigh the gathers
};

/// The recurrent layers of a program, cut over `degree` ranks.
std::vector<Recurrence> findRecurrences(func::FuncOp function, OpFacts &facts, int64_t degree, const Prices &prices);

} // namespace hpc
