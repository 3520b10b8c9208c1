// Runs a step again and again: what it writes is what the next step reads (compiler/Dialect/NN/Ports.h).
#pragma once

#include "compiler/Interpreter/Interpreter.h"

namespace hpc {

/// States and written parameters between two steps, global tensors by name. Empty before the first step, where states
/// are their initial number and parameters what their file says.
using KeptTensors = std::map<std::string, Tensor>;

/// One step. `inputs` are the arguments that are no states, in order; returned are the results that write nothing.
/// Without a mesh the function runs serially, with one it is a function of local boxes.
Expected<std::vector<Tensor>> runStep(func::FuncOp function, ArrayRef<Tensor> inputs, KeptTensors &kept,
                                      const dist::Mesh *mesh, const RunOptions &options = {});

} // namespace hpc
