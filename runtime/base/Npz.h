// NumPy's .npz files: a zip archive with one .npy per array.
// The same arrays give the same bytes; members that are not .npy are passed over on reading.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/Npy.h"
#include "runtime/base/Status.h"

#include <functional>
#include <optional>
#include <string_view>

namespace hpc {

/// The arrays of an archive to read: the most bytes of one, as .npy; nullopt: it is skipped.
using WantedArrays = std::function<std::optional<int64_t>(const std::string &name)>;

/// visit(name, array, storage) for every array that is wanted, in file order: the array lies in the archive, or in `storage` where it
/// had to be unpacked. Ends with the first error.
using VisitArray = std::function<Status(const std::string &name, const NpyView &array, std::string &storage)>;
Status visitNpz(std::string_view bytes, const std::string &name, const WantedArrays &wanted, const VisitArray &visit);
/// Unwanted and too large arrays are not unpacked; the latter are an error.
Expected<NamedArrays> readNpz(const std::string &path, const WantedArrays &wanted = {});
/// An archive in memory; `name` is its name in errors.
Expected<NamedArrays> parseNpz(std::string_view bytes, const std::string &name, const WantedArrays &wanted = {});
Status writeNpz(const std::string &path, const NamedArrays &arrays);

} // namespace hpc
