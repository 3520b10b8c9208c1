// Which rule decides about which parameter.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Sidecar/Sidecar.h"

namespace hpc {

struct ParamDecision {
  nn::ParameterOp parameter;
  const ParamRule *rule = nullptr; ///< of the sidecar that was asked
  bool isTransposed = false;       ///< it matched a name whose bytes are this parameter's, transposed
};

/// One entry for every parameter that a rule matches by any of its names, in program order; the first rule that does
/// decides. Errors (sidecar): a rule that decides nothing, unless all that it matches is decided in the same words.
Expected<std::vector<ParamDecision>> decideParams(const Sidecar &sidecar, func::FuncOp function);

} // namespace hpc
