// The rewrites in their order, with the reason for each one's place.
#include "passes/Schedule/Schedule.h"

#include "passes/Schedule/Rewrites.h"

#include <algorithm>

namespace hpc {

namespace {
struct Rewrite {
  const char *name;
  bool onlyOfSteps; ///< only of plans that write parameters or states
  void (*apply)(plan::Plan &plan, int64_t stage, std::vector<NotedValue> &values);
};

const Rewrite rewrites[] = {
    // What is skipped where nobody asks for it holds nothing up.
    {"requested-outputs", false, markRequested},
    {"packed-weights", false, markPacked},
    // A sum that goes with others is posted once, so sums are joined before the others are posted one by one.
    {"gradient-buckets", true, [](plan::Plan &plan, int64_t stage, std::vector<NotedValue> &values) { bucketGradients(plan, stage, values); }},
    {"overlap-collectives", false, overlapCollectives},
};

bool writesState(const plan::Plan &plan) {
  return std::any_of(plan.stages.begin(), plan.stages.end(), [](const plan::Stage &stage) {
    return std::any_of(stage.bindings.begin(), stage.bindings.end(),
                       [](const plan::Binding &binding) { return !binding.saved.empty(); });
  });
}
} // namespace

Status schedulePlan(plan::Plan &plan, std::vector<NotedValue> &values, const RewriteCheck &check) {
  if (check)
    HPC_RETURN_IF_ERROR(check(plan).at("before the first rewrite"));
  const bool isStep = writesState(plan);
  for (const Rewrite &rewrite : rewrites) {
    if (rewrite.onlyOfSteps && !isStep)
      continue;
    for (int64_t stage = 0; stage < int64_t(plan.stages.size()); ++stage)
      rewrite.apply(plan, stage, values);
    if (check)
      HPC_RETURN_IF_ERROR(check(plan).at(std::string("after the rewrite '") + rewrite.name + "'"));
  }
  return Status::success();
}

} // namespace hpc
