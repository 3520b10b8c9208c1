// Shared libraries of ours that a program opens when it needs them. They stand beside the program, as a build folder and a copied folder have
// them, or in ../lib.
#pragma once

#include "runtime/base/Status.h"

namespace hpc {

/// The function `symbol` of the plugin `file`; the library stays open. `what`, as "the plugin of --backend=cuda", and `remedy` are for the error
/// (Usage) where the library cannot be opened.
Expected<void *> openPlugin(const std::string &file, const char *symbol, const std::string &what, const std::string &remedy);

} // namespace hpc
