// Memory for copies of tensors, in huge pages where there are any. A page that was never written costs more than its copy, so memory that
// is used again is kept, and may be touched beforehand.
#pragma once

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hpc {

class CopyMemory {
public:
  /// Errors: this machine does not have so much.
  static Expected<std::unique_ptr<CopyMemory>> create(int64_t bytes);
  CopyMemory(const CopyMemory &) = delete;
  ~CopyMemory();

  std::byte *data() const { return start; }
  /// Makes all pages.
  void touch();

private:
  CopyMemory(std::byte *start, int64_t bytes) : start(start), bytes(bytes) {}

  std::byte *start;
  int64_t bytes;
};

} // namespace hpc
