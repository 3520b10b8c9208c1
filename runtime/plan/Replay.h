// A plan with a clock: how long a step takes if each run of an instruction takes as long as is said, on which rank it computes
// meanwhile, and what it waits for. The plan check's simulation, over all ranks.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <vector>

namespace hpc::plan {

/// One run of an instruction.
struct InstructionRun {
  const Plan &plan;
  const Instruction &instruction;
  int64_t coordinate = 0, microBatch = 0;
  int64_t stage = 0;
};

/// In seconds. Of a collective or a Send: from when all of its ranks have come to it, and the collectives of its group before it
/// are done, until it is done. Recv and Wait take nothing of their own.
using Durations = std::function<double(const InstructionRun &)>;

/// Seconds of a step of one rank; the rest of the step it waits for others.
struct RankTime {
  double computing = 0;
  double communicating = 0; ///< of its collectives and messages, sent and received
  double exposed = 0;       ///< of these, while the rank stands at them
  double hidden() const { return communicating - exposed; }
};

struct Replay {
  double length = 0; ///< until the last rank is done
  std::vector<RankTime> ranks;
  /// Share of ranks * length in which a rank neither computes nor stands at a transfer that is under way.
  double bubble() const;
};

/// The ordinary step, without what is on request. The plan has passed its check and has no entries.
Expected<Replay> replayPlan(const Plan &plan, const Durations &durations);

} // namespace hpc::plan
