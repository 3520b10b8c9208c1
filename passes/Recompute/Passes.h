// The passes of phase recompute.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Recompute/Passes.h.inc"
} // namespace hpc
