// Which rule decides about which input or computed value.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Sidecar/ModuleSidecar.h"

namespace hpc {

/// Of a program that no phase has changed: notes the shapes of all tensors that a rule of `sidecar` matches, in the module
/// attribute `hpc.sidecar_tensors`. Dims of rules are dims of these shapes, whatever raise makes of them.
void noteTensors(ModuleOp module, const Sidecar &sidecar);

/// The name by which a rule names each value that one can name.
llvm::DenseMap<Value, std::string> tensorNames(func::FuncOp function);

struct TensorDecision {
  Value value;
  const TensorRule *rule = nullptr; ///< of the sidecar that was asked
  std::vector<int64_t> shape;       ///< that the rule's dims are dims of
};

/// One entry for every value that a rule matches by any of its names (ONNX value, node, input of the graph; a module's path
/// is its last value), in program order. Errors (sidecar): a rule that decides nothing, with what has become of what it
/// names.
Expected<std::vector<TensorDecision>> decideTensors(const Sidecar &sidecar, func::FuncOp function);

} // namespace hpc
