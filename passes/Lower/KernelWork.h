// How many operations on elements an op takes inside a kernel, for predictions of time (plan::Kernel::operations).
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// By local shapes, as vector code of a CPU computes the op: a cheap op is one an element, an expensive one (exp, tanh, a division) 16, a
/// composite its own count of flops. An attention computes blocks of scores, also those behind the mask: each takes the multiply-adds of its
/// products, and 60 more for softmax and its sums, or 140 in the gradient. The numbers are fitted to measured kernels (docs/measured.md).
int64_t elementOperations(mlir::Operation *op);

} // namespace hpc
