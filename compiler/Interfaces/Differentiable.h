// How gradients flow back through an op: the question that hpc-build-gradients asks.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {
class GradientBuilder; // compiler/Dialect/NN/GradientBuilder.h
}

#include "compiler/Interfaces/Differentiable.h.inc"
