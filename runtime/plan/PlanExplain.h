// --explain: what a plan communicates and why, what it holds and when its stages work.
// Lines that differ in numbers alone are one row: a model has as many rows as its blocks have kinds of collectives,
// however many blocks it has.
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
