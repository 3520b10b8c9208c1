// An object file becomes an ELF shared object, in process.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

/// The bytes of the shared object. Functions of libm and libc stay undefined: the process that loads it has them.
FailureOr<std::string> linkSharedObject(ArrayRef<char> object, Location loc);

} // namespace hpc::kernels
