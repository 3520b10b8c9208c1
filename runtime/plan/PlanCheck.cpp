// The order of the plan's checks. Each one may rely on those before it.
#include "runtime/plan/PlanCheck.h"

#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanStructure.h"

#include <optional>

namespace hpc::plan {

namespace {

/// The plan as it runs where nobody asks for outputs on request: what serves them is skipped everywhere. Nothing where
/// it has none.
std::optional<Plan> ordinaryStep(const Plan &plan) {
  bool any = false;
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        any = any || instruction.onRequest;
  if (!any)
    return std::nullopt;
  Plan ordinary = plan;
  for (Stage &stage : ordinary.stages)
    for (Program &program : stage.programs)
      for (Instruction &instruction : program.instructions)
        if (instruction.onRequest)
          instruction.when = 0;
  return ordinary;
}

Status runChecks(const Plan &plan, Timeline *timeline) {
  HPC_RETURN_IF_ERROR(checkStructure(plan));
  HPC_RETURN_IF_ERROR(checkRanges(plan));
  HPC_RETURN_IF_ERROR(checkMemory(plan));
  HPC_RETURN_IF_ERROR(checkWeights(plan));
  HPC_RETURN_IF_ERROR(simulatePlan(plan, timeline));
  HPC_RETURN_IF_ERROR(checkOutputs(plan));
  if (std::optional<Plan> ordinary = ordinaryStep(plan)) {
    HPC_RETURN_IF_ERROR(checkMemory(*ordinary).at("without what is on request"));
    return simulatePlan(*ordinary, nullptr).at("without what is on request");
  }
  return Status::success();
}

Status runChecks(const Plan &plan, std::vector<Timeline> &timelines) {
  if (plan.entries.empty())
    return runChecks(plan, &timelines.emplace_back());
  HPC_RETURN_IF_ERROR(checkStructure(plan));
  HPC_RETURN_IF_ERROR(checkSharedMemory(plan));
  for (size_t i = 0; i < plan.entries.size(); ++i)
    HPC_RETURN_IF_ERROR(runChecks(planOf(plan, i), &timelines.emplace_back()).at("entry '" + plan.entries[i].name + "'"));
  return Status::success();
}

} // namespace

Status checkPlan(const Plan &plan) {
  std::vector<Timeline> timelines;
  return runChecks(plan, timelines);
}

Expected<PlanFacts> analysePlan(const Plan &plan) {
  std::vector<Timeline> timelines;
  HPC_RETURN_IF_ERROR(runChecks(plan, timelines));
  PlanFacts facts = staticFacts(plan);
  facts.timeline = timelines.front();
  for (size_t i = 0; i < facts.entries.size(); ++i)
    facts.entries[i].timeline = std::move(timelines[i]);
  return facts;
}

} // namespace hpc::plan
