// Messages that arrive before their receive is posted wait in memory of the engine, outside of the arenas. A sender
// keeps a message until it is received (SendDone::Received), so no more can wait than senders have in flight.
#pragma once

#include "runtime/core/Backend.h"
#include "runtime/plan/Plan.h"

#include <map>

namespace hpc::processes {

/// By rank of `own`: the most bytes of messages that ranks of other processes can have sent it before it has posted the
/// receives. Collectives are not included: their memory counts with each group's scratch. Ranks without such messages
/// are left out.
std::map<int64_t, int64_t> earlyMessageBytes(const plan::Plan &plan, RankRange own);

} // namespace hpc::processes
