// A folder that keeps machine code of kernels from one compilation to the next. A key names all that the code follows
// from, so an entry is never out of date; what is found is checked, and made again where it is damaged.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"

#include <array>

namespace hpc::kernels {

/// Any number of compilers may use one folder at a time. Entries are never removed: the folder may be, whenever its user
/// likes. Whoever can write to it decides what plans compute.
class KernelCache {
public:
  using Key = std::array<uint8_t, 32>;
  /// Lists of texts that differ have keys that differ.
  static Key keyOf(ArrayRef<StringRef> texts);

  /// Makes the folder where there is none. Errors: one that cannot be made or written to (Io).
  static Expected<KernelCache> open(const std::string &folder);

  /// The code; nothing where there is no whole entry.
  std::optional<SmallVector<char, 0>> find(const Key &key) const;
  /// Errors: the folder cannot be written to (Io).
  Status keep(const Key &key, ArrayRef<char> code) const;

private:
  explicit KernelCache(std::string folder) : folder(std::move(folder)) {}
  std::string path(const Key &key) const;

  std::string folder;
};

} // namespace hpc::kernels
