// The passes of phase annotate, and the attribute in which they leave their seeds.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/MLIR.h"

namespace hpc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Annotate/Passes.h.inc"
} // namespace hpc
