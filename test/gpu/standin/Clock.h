// Vector clocks (Fidge and Mattern, 1988): what a stream or the host knows to have happened on each of the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace standin {

/// A moment of one timeline. Timeline 0 is the host, all of its threads together.
struct Moment {
  int timeline = 0;
  uint64_t time = 0;
};

class Clock {
public:
  void join(const Clock &other) {
    times.resize(std::max(times.size(), other.times.size()), 0);
    for (size_t i = 0; i < other.times.size(); ++i)
      times[i] = std::max(times[i], other.times[i]);
  }
  Moment tick(int timeline) {
    times.resize(std::max(times.size(), size_t(timeline) + 1), 0);
    return {timeline, ++times[size_t(timeline)]};
  }
  bool knows(const Moment &moment) const {
    return size_t(moment.timeline) < times.size() && moment.time <= times[size_t(moment.timeline)];
  }

private:
  std::vector<uint64_t> times;
};

} // namespace standin
