// How much memory this process may still take: for refusing what cannot fit before it is begun.
#pragma once

#include <cstdint>
#include <string>

namespace hpc {

/// Bytes that could be allocated now without swapping: the least of what the kernel says is available, what the control
/// group (version 2) leaves, and what the limit of the address space (ulimit -v) leaves. INT64_MAX where nothing is known.
int64_t availableMemory();

/// The size of /dev/shm, where message engines keep what processes share; containers make it small.
struct SharedMemory {
  int64_t bytes = 0, free = 0;

  /// "/dev/shm has 64 MiB", with `needed` bytes "/dev/shm has 16 MiB, 34 are needed"
  std::string text(int64_t needed = 0) const;
};
SharedMemory sharedMemory();

} // namespace hpc
