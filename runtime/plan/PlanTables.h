// What a plan communicates and holds, as tables: the same in hpc-opt --explain and in hpc-plan.
// Lines that differ in numbers alone are one row: a model has as many rows as its blocks have kinds of collectives,
// however many blocks it has.
#pragma once

#include "runtime/plan/PlanFacts.h"

#include <string>

namespace hpc::plan {

/// A row per collective or transfer, under it the reason and what would avoid it; the sum of their bytes in a step.
std::string trafficTable(const Plan &plan, const PlanFacts &facts);
/// A row per kind of stage.
std::string memoryTable(const PlanFacts &facts);
/// What waits for gradients and what is computed again for them; "" of a plan without gradients.
std::string keptTable(const PlanFacts &facts);

} // namespace hpc::plan
