// The passes of phase generate.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/MLIR.h"

namespace hpc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Generate/Passes.h.inc"
} // namespace hpc
