// The passes of phase kernels; Passes.td describes them.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/MLIR.h"

namespace hpc {
#define GEN_PASS_DECL
#include "passes/Kernels/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Kernels/Passes.h.inc"
} // namespace hpc
