// Threads of one process that wait until a 32-bit word changes: futex(2).
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

/// A word that threads wait for.
class WaitWord {
public:
  /// How often a thread that has a core of its own looks at the word before it sleeps: some 100 us.
  static constexpr int spinsOfOwnCore = 4000;

  uint32_t value() const { return word.load(std::memory_order_acquire); }
  /// Changes the word by `change(atomic)` and wakes at most `count` sleepers, which see the caller's earlier writes.
  template <typename Change> void change(const Change &change, int count = INT_MAX) {
    // Sequentially consistent on both sides: either the sleeper is seen here, or it sees the new word there.
    change(word);
    if (sleepers.load() > 0)
      futexWake(word, count);
  }
  void set(uint32_t value, int count = INT_MAX) {
    change([&](std::atomic<uint32_t> &word) { word.store(value); }, count);
  }
  void add(uint32_t value, int count = INT_MAX) {
    change([&](std::atomic<uint32_t> &word) { word.fetch_add(value); }, count);
  }
  /// Returns the word when it is no longer `seen`. Looks at it `spins` times before it sleeps.
  uint32_t waitWhile(uint32_t seen, int spins) const {
    while (true) {
      if (uint32_t now = value(); now != seen)
        return now;
      if (spins > 0) {
        --spins;
        __builtin_ia32_pause();
      } else {
        sleepers.fetch_add(1);
        futexWait(word, seen);
        sleepers.fetch_sub(1);
      }
    }
  }

private:
  std::atomic<uint32_t> word{0};
  mutable std::atomic<int> sleepers{0};
};

} // namespace hpc
