// --explain: what a plan communicates and why, what it holds and when its stages work.
// For people equal rows are joined (PlanTables.h), for programs every instruction stands alone.
#pragma once

#include "runtime/plan/PlanFacts.h"

#include <string>

namespace hpc::plan {

/// Three tables: communication (a row, and under it the reason and what would avoid it), memory of a rank, schedule.
std::string explainPlan(const Plan &plan, const PlanFacts &facts);

/// The same for programs, with one entry per instruction. The keys are a part of those of printPlanJson;
/// runtime/plan/README.md describes them.
std::string explainPlanJson(const Plan &plan, const PlanFacts &facts);

} // namespace hpc::plan
