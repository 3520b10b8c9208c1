// NumPy's .npz files: a zip archive with one .npy per array.
// The same arrays give the same bytes; members that are not .npy are passed over on reading.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/Npy.h"
#include "runtime/base/Status.h"

#include <string_view>

namespace hpc {

Expected<NamedArrays> readNpz(const std::string &path);
/// An archive in memory; `name` is what errors call it.
Expected<NamedArrays> parseNpz(std::string_view bytes, const std::string &name);
Status writeNpz(const std::string &path, const NamedArrays &arrays);

} // namespace hpc
