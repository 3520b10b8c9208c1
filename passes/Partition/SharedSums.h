// Sums over ranks that the program computes twice: statistics of a norm in its definition and in its gradient.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// Readers of a partial sum take an earlier one that is computed alike, from the same values: it is all-reduced once, and its
/// few numbers are kept for backward. Nothing else is merged: whole activations are cheaper to compute again than to keep.
void shareSums(func::FuncOp function);

} // namespace hpc
