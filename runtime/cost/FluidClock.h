// The time of a simulation, and what is under way in it: activities that each have so many seconds left and pass through them at a
// rate. A rate may change whenever others begin or end that share something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace hpc::cost {

class FluidClock {
public:
  explicit FluidClock(size_t activities) : activities(activities) {}
  double now() const { return time; }
  /// An activity of `seconds` at rate 1. It begins with its first rate.
  void start(size_t activity, double seconds);
  bool isRunning(size_t activity) const { return activities[activity].isRunning; }
  /// Only a rate that is another one changes when the activity ends, to the last bit.
  void setRate(size_t activity, double rate);
  void grow(size_t count) {
    if (count > activities.size())
      activities.resize(count);
  }
  /// Whether some activity ends now.
  bool isDue() { return dropStale() && events.top().time <= time; }
  bool isIdle() { return !dropStale(); }
  /// Goes on to the next end of an activity, and ends it.
  size_t next();

private:
  struct Activity {
    double left = 0, rate = 0, since = 0;
    uint32_t version = 0;
    bool isRunning = false;
  };
  struct Event {
    double time;
    uint32_t activity, version;
    /// The earliest is on top of the queue.
    bool operator<(const Event &other) const { return time > other.time; }
  };
  /// Whether an event is left.
  bool dropStale();

  double time = 0;
  std::vector<Activity> activities;
  std::priority_queue<Event> events;
};

} // namespace hpc::cost
