// When the buffers of one program live. The one definition that placing (passes/Place) and checking share: sharing
// the definition is safe since it is the executor's order of instructions, not a result of placing.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// First and last instruction of a program that use a buffer, both included. A buffer that is sent, received or in a
/// posted collective is in use until the Wait that completes it.
struct LiveRange {
  int32_t buffer = -1;
  int32_t first = 0, last = 0;
};

/// The live ranges of the program's buffers of lifetime Program, ordered by `first`, then buffer. Accesses of 0 bytes
/// do not count. Errors: one that is read where nothing wrote to it (a write that `when` skips somewhere serves reads
/// with the same `when` only), or that is still in flight when the program ends.
Expected<std::vector<LiveRange>> liveRanges(const Plan &plan, int64_t stage, int64_t program);

} // namespace hpc::plan
