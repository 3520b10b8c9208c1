// The threads of one rank: its own, and helpers that take pieces of its work beside it. Each begins with its own share,
// the same part of every job, so that what it wrote is in its core's cache for the next; who is done takes from the
// others. So which thread does which piece is chance after all, and their number is the user's: what a piece computes
// may depend on its items alone.
#pragma once

#include "runtime/base/Futex.h"
#include "runtime/base/Status.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hpc {

class ThreadPool {
public:
  /// One thread, the caller's own: run() does all by itself.
  ThreadPool() = default;
  /// The caller's thread and `threads` - 1 helpers. `spins`: who waits looks at memory for some 100 us before it
  /// sleeps; wise when each thread has a core.
  static Expected<std::unique_ptr<ThreadPool>> create(int64_t threads, bool spins);
  ThreadPool(const ThreadPool &) = delete;
  ~ThreadPool();

  int64_t threads() const { return int64_t(helpers.size()) + 1; }

  /// Calls `Status work(thread, first, last)` for ranges that cover the items 0 .. items-1 and begin at multiples of
  /// `grain` >= 1; returns when all are done. `thread`, 0 .. threads()-1, is the caller's number: no two calls have it
  /// at once, so it may choose scratch memory. After an error or an exception no range is begun; the first is returned
  /// or thrown. Allocates nothing. Used by the rank's thread; from within `work` it does all on the thread it is on.
  template <typename Work> Status run(int64_t items, int64_t grain, const Work &work) {
    Job given{[](const void *function, int64_t thread, int64_t first, int64_t last) -> Status {
                return (*static_cast<const Work *>(function))(thread, first, last);
              },
              &work, items, grain};
    return run(given);
  }

private:
  struct Job {
    Status (*call)(const void *work, int64_t thread, int64_t first, int64_t last) = nullptr;
    const void *work = nullptr;
    int64_t items = 0, grain = 1;
  };
  /// Of a thread: items next .. end-1 are still to be taken, by whoever comes.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  static constexpr uint32_t open = 1u << 31;

  Status run(const Job &given);
  int64_t threadHere() const;
  void help(int64_t thread);
  void share();
  void doPieces(int64_t thread);
  bool enter();
  void leave();
  void waitForHelpers();

  std::vector<std::thread> helpers;
  std::unique_ptr<Share[]> shares; ///< one for each thread
  int spins = 0;
  Job job;
  bool running = false; ///< written while no helper is inside

  alignas(64) WaitWord generation; ///< helpers wait for it; each job is one more
  std::atomic<bool> leaving{false};
  alignas(64) std::atomic<uint32_t> state{0}; ///< helpers inside the job, and `open` while more may enter
  std::atomic<bool> callerSleeps{false};
  alignas(64) std::atomic<bool> failed{false};
  std::mutex mutex; ///< of the two below
  Status error;
  std::exception_ptr exception;
};

} // namespace hpc
