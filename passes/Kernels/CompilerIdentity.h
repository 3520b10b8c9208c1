// Which build of the compiler this is: what it makes of the same program can differ only between two identities.
#pragma once

#include <string>

namespace hpc::kernels {

/// The version of LLVM and the build ids of the executable and of every library that it has loaded; where one has none,
/// a hash of its bytes.
const std::string &compilerIdentity();

} // namespace hpc::kernels
