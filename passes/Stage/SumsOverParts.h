// Sums whose terms are made in several stages: the gradient of a parameter that two stages use, a norm over all
// gradients. Each stage adds up its own terms; the subtotals are exchanged once a step and added in the order of the
// stages wherever the sum is read, so that all of them hold the same bits.
#pragma once

#include "passes/Stage/StepParts.h"

#include "llvm/ADT/SmallBitVector.h"

namespace hpc {

/// Moves sums over micro-batches in front of the additions of gradients of different parts: accumulate(a + b) becomes
/// accumulate(a) + accumulate(b), through collectives of the sum. Otherwise b would travel in every micro-batch.
/// True where something changed; then `parts` is out of date.
bool accumulateByPart(func::FuncOp function, const StepParts &parts);

/// The stages that compute a value of the step themselves. Cheap values have none.
using Homes = llvm::SmallBitVector;

/// The stages in which each op that runs once a step is computed: those where its largest operands are, or, where no
/// stage has all of them, all the stages that have one. Additions of terms from several stages are put in order on the
/// way, which makes and erases ops.
llvm::DenseMap<Operation *, Homes> placeUpdates(func::FuncOp function, StepParts &parts);

} // namespace hpc
