// What of forward is kept for backward and what is computed again: one minimum cut for all of it.
//
// An op lies on the source's side where forward alone runs it, on the sink's where backward runs it again. An edge from
// the source to an op costs what the repetition costs; an edge from an op to its result costs what keeping that costs; a
// result that is needed on the sink's side is there in one of the two ways. So for each price of a byte the cut is the
// best choice there is, and values that backward does not read itself may be what is kept.
#pragma once

#include "passes/Recompute/ForwardPart.h"

namespace hpc {

enum class RecomputePolicy { None, Attention, Full, Auto };

struct KeptValues {
  llvm::DenseSet<Operation *> again; ///< ops that backward runs again
  int64_t bytes = 0;                 ///< of what is kept, all slots
  double cost = 0;                   ///< of running them again: see repetitionCost
};

/// Operations that an op's repetition is worth: its arithmetic, and what a device could do while it moves its operands
/// and results through its memory, or over a network.
double repetitionCost(Operation *op);

/// A price of a byte, in operations, above which nothing that may be computed again is kept.
constexpr double highestPrice = double(1 << 20);

/// The best choice of a part where a byte that is kept costs `priceOfBlock(block)`; values of no block have block -1.
/// Policies other than Auto pay `highestPrice` for what they may compute again.
KeptValues chooseKept(const ForwardPart &part, RecomputePolicy policy,
                      llvm::function_ref<double(int64_t block)> priceOfBlock);

/// Auto: the cheapest choice for the parts of one stage that keeps no more than `budget` bytes: a price for all blocks,
/// and for the last blocks, whose values wait the shortest, a lower one. Where nothing keeps so little, what keeps the
/// least.
SmallVector<KeptValues> chooseWithin(ArrayRef<const ForwardPart *> parts, int64_t budget);

} // namespace hpc
