// The bytes of a file in order, unpacked where the file is gzip or Zstandard, which its content says.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hpc::text {

class ByteSource {
public:
  /// Errors (Io): a file that cannot be opened, a folder.
  static Expected<ByteSource> open(const std::string &path);
  ByteSource(ByteSource &&) noexcept;
  ByteSource &operator=(ByteSource &&) noexcept;
  ~ByteSource();

  /// Reads up to `bytes` bytes; 0 at the end of the file. Errors (Io): damaged or incomplete compressed data.
  Expected<int64_t> read(char *to, int64_t bytes);

private:
  struct Stream;
  explicit ByteSource(std::unique_ptr<Stream> stream);
  std::unique_ptr<Stream> stream;
};

} // namespace hpc::text
