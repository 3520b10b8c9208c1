// Which build of the compiler this is: what it makes of the same program can differ only between two identities, or by
// LLVM's own flags, whose values nobody can ask for: whoever keeps code keeps none where one is given.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc::kernels {

/// The version of LLVM and the build ids of the executable and of every library that is loaded now; where one has none,
/// a hash of its bytes. Errors: neither can be had (Io).
Expected<std::string> identifyCompiler();

/// The names of the flags of LLVM's that have been given, wherever they came from: "--a, --b". Those of MLIR are not among
/// them, as none has a say in machine code.
std::string givenFlagsOfLLVM();

} // namespace hpc::kernels
