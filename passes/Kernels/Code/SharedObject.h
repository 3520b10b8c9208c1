// Object files become an ELF shared object, in process.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

/// The name of an object's own function before it is linked.
constexpr const char *objectFunctionName = "kernel";

/// An object file, and the name in the shared object for its function `objectFunctionName`, if it has one.
struct LinkedObject {
  StringRef symbol;
  ArrayRef<char> bytes;
};

/// The bytes of the shared object, which has the objects in their order. Functions of libm and libc stay undefined: the
/// process that loads it has them.
FailureOr<std::string> linkSharedObject(ArrayRef<LinkedObject> objects, Location loc);

} // namespace hpc::kernels
