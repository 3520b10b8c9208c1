// Tables and the picture of the schedule.
#include "runtime/plan/PlanExplain.h"

#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanPrinter.h"
#include "runtime/plan/PlanTables.h"

#include <cstdio>

namespace hpc::plan {

std::string explainPlan(const Plan &plan, const PlanFacts &facts) {
  if (!plan.entries.empty()) {
    std::string text;
    for (size_t entry = 0; entry < plan.entries.size(); ++entry)
      text += "entry " + plan.entries[entry].name + ":\n" + explainPlan(planOf(plan, entry), facts.entries[entry]);
    return text;
  }
  std::string text = trafficTable(plan, facts) + memoryTable(facts) + keptTable(facts);
  char bubble[64];
  std::snprintf(bubble, sizeof(bubble), "%.1f%%", 100 * facts.timeline.bubble());
  return text + "schedule, every program taken as equally long, " + bubble + " idle:\n" +
         timelinePicture(plan, facts.timeline);
}

} // namespace hpc::plan
