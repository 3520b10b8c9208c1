// The passes of phase partition.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/MLIR.h"

namespace hpc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Partition/Passes.h.inc"
} // namespace hpc
