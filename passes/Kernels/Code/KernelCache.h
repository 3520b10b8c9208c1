// A folder that keeps machine code of kernels from one compilation to the next. A key contains everything that
// determines the code, so an entry is never out of date (where that is impossible there is no cache:
// CompilerIdentity.h); found code is checked, and made again if it is damaged.
#pragma once

#include "compiler/MLIR.h"
#include "runtime/base/Status.h"

#include <array>

namespace hpc::kernels {

/// Any number of compilers may use one folder at the same time. Entries are never removed; the user may delete the
/// folder at any time. Anyone who can write to it decides the results of plans.
class KernelCache {
public:
  using Key = std::array<uint8_t, 32>;

  /// Makes the folder if it does not exist. `compiler`: the compiler's identity, part of every key. Errors: a folder
  /// that cannot be made or written to (Io), a name that LLVM would take for a pattern (Usage).
  static Expected<KernelCache> open(const std::string &folder, std::string compiler);

  /// Lists of texts that differ have keys that differ, and so have compilers.
  Key keyOf(ArrayRef<StringRef> texts) const;

  /// The code; nullopt if there is no whole entry.
  std::optional<SmallVector<char, 0>> find(const Key &key) const;
  /// Errors: the folder cannot be written to, or is full (Io); nothing is left in it then.
  Status keep(const Key &key, ArrayRef<char> code) const;

private:
  KernelCache(std::string folder, std::string compiler) : folder(std::move(folder)), compiler(std::move(compiler)) {}
  std::string path(const Key &key) const;

  std::string folder, compiler;
};

} // namespace hpc::kernels
