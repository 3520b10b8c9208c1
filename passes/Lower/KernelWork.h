// How many operations on elements an op takes inside a kernel, for predictions of time (plan::Kernel::operations).
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// By local shapes, as vector code of a CPU computes the op: a cheap op is one an element, an expensive one (exp, tanh, a division) 24; sums
/// and composites along rows are 8 for each of their flops. An attention computes blocks of scores, also those that the mask hides: a
/// multiply-add of its products counts 5/3 of an operation, in its gradient 10/3, and each query takes 7,600 more, or 14,700. These numbers
/// are fitted to measured kernels, with machines' speed as hpc-calibrate measures it.
int64_t elementOperations(mlir::Operation *op);

} // namespace hpc
