// Inputs to verify a compilation on: a user's, or made-up ones that the model can read.
#pragma once

#include "compiler/Interpreter/Tensor.h"
#include "compiler/MLIR.h"

namespace hpc {

/// One tensor per argument of `serial` (global shapes). From an .npz by the arguments' names (others are ignored), or,
/// where `path` is empty, from a fixed stream of random numbers: floats from (-1, 1), integers from what the op that
/// they index allows, else 0 and 1. What neither gives of a training step: states as they begin, step scalars 1.
Expected<std::vector<Tensor>> inputsFor(func::FuncOp serial, const std::string &path);

} // namespace hpc
