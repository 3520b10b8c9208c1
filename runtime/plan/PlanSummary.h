// A plan in a few numbers, to compare it with others of the same model.
#pragma once

#include "runtime/plan/PlanFacts.h"

namespace hpc::plan {

struct PlanSummary {
  int64_t received = 0;    ///< bytes that a rank receives in a step, the mean over all ranks; collectives as rings
  int64_t collectives = 0; ///< instructions
  MemoryFacts memory;      ///< of the fullest stage
  int64_t kept = 0;        ///< bytes of this memory that forward keeps for gradients
};

/// Bytes that the ranks of a stage receive for one run, each as rings have it: (k - 1) / k of the array, for an all-reduce twice that. In a permute
/// only those that take from another rank.
int64_t receivedBytes(const Plan &plan, const Collective &collective);

/// `facts`: of the plan. Of a plan with entries the first.
PlanSummary summarize(const Plan &plan, const PlanFacts &facts);

} // namespace hpc::plan
