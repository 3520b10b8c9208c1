// A folder that keeps machine code of kernels from one compilation to the next. A key names all that the code follows
// from, so an entry is never out of date (where that cannot be named there is no cache: CompilerIdentity.h); what is found
// is checked, and made again where it is damaged.
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

  /// Makes the folder where there is none. `compiler`: whose code it is, part of every key. Errors: a folder that cannot be
  /// made or written to (Io), a name that LLVM would take for a pattern (Usage).
  static Expected<KernelCache> open(const std::string &folder, std::string compiler);

  /// Lists of texts that differ have keys that differ, and so have compilers.
  Key keyOf(ArrayRef<StringRef> texts) const;

  /// The code; nothing where there is no whole entry.
  std::optional<SmallVector<char, 0>> find(const Key &key) const;
  /// Errors: the folder cannot be written to, or is full (Io); nothing is left in it then.
  Status keep(const Key &key, ArrayRef<char> code) const;

private:
  KernelCache(std::string folder, std::string compiler) : folder(std::move(folder)), compiler(std::move(compiler)) {}
  std::string path(const Key &key) const;

  std::string folder, compiler;
};

} // namespace hpc::kernels
