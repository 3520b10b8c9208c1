// The time that each stage of a plan computes in a micro-batch and in a step when it never waits for another stage: the costs by which
// stages are balanced and schedules are timed. What the whole step takes says Predict.h.
#pragma once

#include "runtime/cost/Machine.h"
#include "runtime/plan/Plan.h"

#include <vector>

namespace hpc::cost {

/// Seconds of one rank; collectives count while the rank stands at them.
struct StageSeconds {
  // In one micro-batch, neither the first nor the last where there are others.
  double forward = 0;
  double backward = 0;       ///< gradients, and what is computed again for them
  double weightGradient = 0; ///< in programs of their own
  double sending = 0;        ///< messages to other stages, which run beside all else
  // In one step.
  double update = 0; ///< updates, and what the last micro-batch does beside
  double computing() const { return forward + backward + weightGradient; }
};

struct StageCosts {
  StageSeconds seconds;
  int64_t microBatchBytes = 0; ///< memory of one copy of what lasts from one program of a micro-batch to another
  int64_t sentBytes = 0;       ///< to other stages, for one micro-batch
};

/// By stage, of its first rank. The plan has no entries.
std::vector<StageCosts> stageCosts(const plan::Plan &plan, const Machine &machine);

} // namespace hpc::cost
