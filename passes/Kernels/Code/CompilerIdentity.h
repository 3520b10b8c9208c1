// The identity of this build of the compiler. The code of one program can differ only between two identities, or by
// LLVM's own flags, whose values cannot be read: so no cache is used where one of them is given.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc::kernels {

/// The version of LLVM and the build ids of the executable and of every library that is loaded now; where one has none,
/// a hash of its bytes. Errors: neither can be had (Io).
Expected<std::string> identifyCompiler();

/// The names of LLVM's flags that have been given, wherever they came from: "--a, --b". Flags of MLIR are not among
/// them, since none affects machine code.
std::string givenFlagsOfLLVM();

} // namespace hpc::kernels
