// Ops that take 16-bit operands and compute in f32: what hpc-narrow-products asks an op.
#pragma once

#include "compiler/MLIR.h"

#include "compiler/Interfaces/MixedPrecision.h.inc"
