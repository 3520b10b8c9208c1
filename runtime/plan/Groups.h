// Who is in whose group: the ranks of a stage that a collective over some axes brings together.
#pragma once

#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// Where a coordinate sits: in which of the stage's groups over `over`, and at which position of it. Groups are
/// numbered row-major over the other axes, positions row-major over `over` as listed.
struct GroupSeat {
  int64_t group = 0, position = 0, size = 1;
};
GroupSeat seatOf(const std::vector<Axis> &axes, int64_t coordinate, const std::vector<std::string> &over);

/// Members of each group. Unknown axes count as 1.
int64_t groupSize(const Plan &plan, const std::vector<std::string> &over);

} // namespace hpc::plan
