// --dropout: another rate for the dropouts that a model has. Where a model shall have some is a matter of the model: none are
// made up.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"

namespace hpc {

/// Of every nn.dropout of an imported module; 0 takes them out. An error where there is none.
Status setDropoutRate(ModuleOp module, double rate);

} // namespace hpc
