// Threads of one process that sleep until a 32-bit word changes: futex(2).
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hpc {

/// Sleeps while the word is `seen`. May return early: look again.
inline void futexWait(const std::atomic<uint32_t> &word, uint32_t seen) {
  static_assert(sizeof(word) == 4);
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

/// Wakes at most `count` of those who sleep on the word.
inline void futexWake(const std::atomic<uint32_t> &word, int count = INT_MAX) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

} // namespace hpc
