// The text of --list-params: every weight with its names, shape, dtype and users.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// One paragraph per nn.parameter of the module, in program order.
std::string listParameters(ModuleOp module);

} // namespace hpc
