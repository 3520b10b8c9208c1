// Where a value of the program lies in the plan: lower notes it, rewrites of the plan keep it true, --verify reads it.
#pragma once

#include "runtime/plan/Plan.h"

namespace hpc {

struct NotedValue {
  int64_t stage = 0, program = 0;
  /// plan::Instruction::id of the instruction that completes it there: a write, or the wait for what was received. From then on
  /// it lies in `place`, until something else is written over it. -1: it is there when the program begins.
  int32_t completedBy = -1;
  plan::Ref place;
};

} // namespace hpc
