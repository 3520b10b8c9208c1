// Which rule decides about which parameter.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Sidecar/Sidecar.h"

namespace hpc {

/// Rules are of the sidecar that was asked.
struct ParamDecision {
  nn::ParameterOp parameter;
  const ParamRule *cut = nullptr;       ///< decides how it is cut; null: none does
  bool isTransposed = false;            ///< that one matched a name whose bytes are this parameter's, transposed
  const ParamRule *trainable = nullptr; ///< decides whether it is trained; null: none does
};

/// One entry for every parameter that a rule matches by any of its names, in program order. Of the rules that match, the
/// first that says how to cut decides that, and the first that says whether to train decides that.
/// Errors (sidecar): a rule that decides nothing, unless all that it matches is decided in the same words.
Expected<std::vector<ParamDecision>> decideParams(const Sidecar &sidecar, func::FuncOp function);

} // namespace hpc
