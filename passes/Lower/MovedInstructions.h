// Where values are known once instructions of a program have changed places.
#pragma once

#include "passes/Lower/Lower.h"
#include "runtime/plan/Access.h"

#include <set>

namespace hpc {

/// Of one program, by the numbers that its instructions had before.
struct MovedInstructions {
  std::vector<std::vector<plan::BufferAccess>> accesses;
  /// The number of each now; of a collective that has been posted, that of its wait.
  std::vector<int64_t> now;
  /// Those that others have passed, or that have passed others; the rest keep their order.
  std::set<size_t> moved;

  /// The last instruction up to this one that keeps its place.
  std::optional<size_t> lastKept(size_t instruction) const;
  /// The first instruction behind which `value` lies where it was noted, and nothing has written over it: that of the
  /// last instruction that wrote it there, or the last one before that has kept its place. A view was noted at whatever
  /// instruction came before it, which may be one that moves and has nothing to do with it.
  int64_t placeOf(const LoweredValue &value) const;
};

/// By stage, program, instruction and id.
void sortByPlace(std::vector<LoweredValue> &values);

} // namespace hpc
