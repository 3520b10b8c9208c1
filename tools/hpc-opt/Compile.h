// The compiler's command line: from a model to a plan.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// Parses the arguments, compiles, verifies and explains as requested. Returns the process's exit code: 0, 1 for errors
/// that a user can cause, 2 for a defect of this program.
int compileMain(int argc, char **argv, DialectRegistry &registry);

} // namespace hpc
