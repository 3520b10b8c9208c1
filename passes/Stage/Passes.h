// The passes of phase stage.
#pragma once

#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/MLIR.h"

namespace hpc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Stage/Passes.h.inc"
} // namespace hpc
