// When a step counts as stalled: nothing has gone on for the timeout, and longer than it ever did before in this run.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace hpc::launch {

class StallClock {
public:
  using Clock = std::chrono::steady_clock;

  /// 0: no step ever counts as stalled.
  explicit StallClock(std::chrono::milliseconds timeout) : timeout(timeout) {}

  /// To be called again and again. `progress`: RankWatch's, of all processes; nothing between two steps. A wait for a device may last a whole
  /// step, so it has `firstOnDevice` times the timeout until a step has ended.
  bool isStalled(Clock::time_point now, std::optional<uint64_t> progress, bool onDevice) {
    constexpr int firstOnDevice = 10;
    if (!progress || progress != last) {
      if (progress && last && now - since > longest)
        longest = now - since;
      hasEnded |= last && !progress;
      last = progress;
      since = now;
      return false;
    }
    return timeout.count() > 0 && now - since > timeout * (onDevice && !hasEnded ? firstOnDevice : 1) + longest;
  }
  /// This process itself was stopped for `time`, which does not count.
  void skip(Clock::duration time) { since += time; }
  Clock::duration pause(Clock::time_point now) const { return now - since; }

private:
  const std::chrono::milliseconds timeout;
  std::optional<uint64_t> last;
  Clock::time_point since;
  bool hasEnded = false;      ///< a step
  Clock::duration longest{0}; ///< the longest pause that has ended in progress
};

} // namespace hpc::launch
