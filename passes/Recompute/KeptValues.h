// Chooses the values of forward to keep for backward and those to compute again, by one minimum cut.
//
// An op lies on the source's side where forward alone runs it, on the sink's where backward runs it again. An edge from
// the source to an op costs the op's repetition; an edge from an op to its result costs the memory of the result; a
// result that the sink's side needs is there in one of the two ways. So for each price of a byte the cut is the best
// choice, and backward may keep values that it does not read itself.
#pragma once

#include "compiler/ModuleMachine.h"
#include "passes/Recompute/ForwardPart.h"

namespace hpc {

enum class RecomputePolicy { None, Attention, Full, Auto };

struct KeptValues {
  llvm::DenseSet<Operation *> again; ///< ops that backward runs again
  int64_t bytes = 0;                 ///< memory of the kept values, all slots
  double cost = 0;                   ///< of running them again: see repetitionCost
};

/// The cost of an op's repetition in operations: its arithmetic, and what a device could compute while it moves the
/// op's operands and results through its memory, or over a network.
double repetitionCost(Operation *op, const Prices &prices);

/// A price of a byte, in operations, above which nothing that may be computed again is kept.
constexpr double highestPrice = double(1 << 20);

/// The best choice for a part where a kept byte costs `priceOfBlock(block)`; values of no block have block -1. Policies
/// other than Auto pay `highestPrice` for values that they may compute again.
KeptValues chooseKept(const ForwardPart &part, RecomputePolicy policy, const Prices &prices,
                      llvm::function_ref<double(int64_t block)> priceOfBlock);

/// Auto: the cheapest choice for the parts of one stage that keeps no more than `budget` bytes: a price for all blocks,
/// and a lower one for the last blocks, whose values wait the shortest. Where no choice fits, the one that keeps the
/// least.
SmallVector<KeptValues> chooseWithin(ArrayRef<const ForwardPart *> parts, int64_t budget, const Prices &prices);

} // namespace hpc
