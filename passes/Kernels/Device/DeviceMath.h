// Functions of libm as code of our own, for targets without a libm.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

/// Replaces every call of libm in `kernels`, and every math op that would become one, by functions that it adds. The
/// remaining ops are instructions on every target: + - * / sqrt, fma, rounding, comparisons.
void replaceLibm(ModuleOp kernels);

} // namespace hpc::kernels
