// The order of the plan's checks. Each one may rely on those before it.
#include "runtime/plan/PlanCheck.h"

#include "runtime/plan/PlanStructure.h"

namespace hpc::plan {

namespace {

Status runChecks(const Plan &plan, Timeline *timeline) {
  HPC_RETURN_IF_ERROR(checkStructure(plan));
  HPC_RETURN_IF_ERROR(checkRanges(plan));
  HPC_RETURN_IF_ERROR(checkMemory(plan));
  HPC_RETURN_IF_ERROR(checkWeights(plan));
  HPC_RETURN_IF_ERROR(simulatePlan(plan, timeline));
  return checkOutputs(plan);
}

} // namespace

Status checkPlan(const Plan &plan) { return runChecks(plan, nullptr); }

Expected<PlanFacts> analysePlan(const Plan &plan) {
  Timeline timeline;
  HPC_RETURN_IF_ERROR(runChecks(plan, &timeline));
  PlanFacts facts = staticFacts(plan);
  facts.timeline = std::move(timeline);
  return facts;
}

} // namespace hpc::plan
