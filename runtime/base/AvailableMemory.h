// How much memory this process may still take: for refusing what cannot fit before it is begun.
#pragma once

#include <cstdint>

namespace hpc {

/// Bytes that could be allocated now without swapping: the least of what the kernel says is available, what the control
/// group (version 2) leaves, and what the limit of the address space (ulimit -v) leaves. INT64_MAX where nothing is known.
int64_t availableMemory();

} // namespace hpc
