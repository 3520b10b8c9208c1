// The passes of phase propagate.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/MLIR.h"

namespace hpc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Propagate/Passes.h.inc"
} // namespace hpc
