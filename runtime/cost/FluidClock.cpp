#include "runtime/cost/FluidClock.h"

#include <algorithm>

namespace hpc::cost {

void FluidClock::start(size_t activity, double seconds) { activities[activity] = {seconds, 0, time, activities[activity].version, true}; }

void FluidClock::setRate(size_t activity, double rate) {
  Activity &one = activities[activity];
  if (!one.isRunning || one.rate == rate)
    return;
  one.left = std::max(0.0, one.left - one.rate * (time - one.since));
  one.since = time;
  one.rate = rate;
  events.push({time + one.left / rate, uint32_t(activity), ++one.version});
}

bool FluidClock::dropStale() {
  while (!events.empty() && events.top().version != activities[events.top().activity].version)
    events.pop();
  return !events.empty();
}

size_t FluidClock::next() {
  dropStale();
  const Event event = events.top();
  events.pop();
  time = event.time;
  ++activities[event.activity].version;
  activities[event.activity].isRunning = false;
  return event.activity;
}

} // namespace hpc::cost
