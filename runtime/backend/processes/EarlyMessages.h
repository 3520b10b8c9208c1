// Messages that come before their receive is posted wait in memory of the engine, which no arena holds. A sender keeps a
// message until it is received (SendDone::Received), so what can wait is what senders can have under way at once.
#pragma once

#include "runtime/core/Backend.h"
#include "runtime/plan/Plan.h"

#include <map>

namespace hpc::processes {

/// By rank of `own`: the most bytes that ranks of other processes can have sent it, in messages that it has not asked for
/// yet. Collectives are not in it: their memory counts with each group's scratch. Ranks that nothing can come for are
/// left out.
std::map<int64_t, int64_t> earlyMessageBytes(const plan::Plan &plan, RankRange own);

} // namespace hpc::processes
