// Coordinates as digits, one an axis, the last axis fastest.
#include "runtime/plan/Groups.h"

#include "runtime/plan/CheckedMath.h"

#include <algorithm>

namespace hpc::plan {

GroupSeat seatOf(const std::vector<Axis> &axes, int64_t coordinate, const std::vector<std::string> &over) {
  std::vector<int64_t> digits(axes.size());
  for (size_t a = axes.size(); a-- > 0; coordinate /= axes[a].size)
    digits[a] = coordinate % axes[a].size;
  GroupSeat seat;
  for (const std::string &listed : over)
    for (size_t a = 0; a < axes.size(); ++a)
      if (axes[a].name == listed) {
        seat.position = seat.position * axes[a].size + digits[a];
        seat.size *= axes[a].size;
      }
  for (size_t a = 0; a < axes.size(); ++a)
    if (std::find(over.begin(), over.end(), axes[a].name) == over.end())
      seat.group = seat.group * axes[a].size + digits[a];
  return seat;
}

int64_t groupSize(const Plan &plan, const std::vector<std::string> &over) {
  int64_t size = 1;
  for (const std::string &listed : over)
    for (const Axis &axis : plan.axes)
      if (axis.name == listed)
        size = multiplySizes(size, axis.size);
  return size;
}

} // namespace hpc::plan
