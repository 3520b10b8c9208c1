// The memory that this process may still take, so that work which cannot fit is refused before it begins.
#pragma once

#include <cstdint>
#include <string>

namespace hpc {

/// Bytes that could be allocated now without swapping: the least of the kernel's available memory, the rest of the
/// control group (version 2), and the rest of the address space's limit (ulimit -v). INT64_MAX if none is known.
int64_t availableMemory();

/// The size of /dev/shm, where message engines keep memory that processes share; containers make it small.
struct SharedMemory {
  int64_t bytes = 0, free = 0;

  /// "/dev/shm has 64 MiB", with `needed` bytes "/dev/shm has 16 MiB, 34 are needed"
  std::string text(int64_t needed = 0) const;
};
SharedMemory sharedMemory();

} // namespace hpc
