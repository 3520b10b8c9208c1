// --explain: what a plan communicates and why, what it holds and when its stages work.
// For people equal rows are joined (PlanTables.h), for programs every instruction stands alone.
#pragma once

#include "runtime/plan/PlanFacts.h"

#include <optional>
#include <string>

namespace hpc::plan {

/// Three tables: communication (a row, and under it the reason and what would avoid it), memory of a rank, schedule.
std::string explainPlan(const Plan &plan, const PlanFacts &facts);

/// The time and memory of a step on a machine, as runtime/cost predicts them.
struct PredictedStep {
  std::string machine;
  double seconds = 0;
  double mfu = 0, exposed = 0, bubble = 0; ///< shares of all ranks' time
  int64_t memory = 0;                      ///< bytes of the fullest rank
  std::string binds;                       ///< "memory" where a rank has less of it, else what takes most of the time
};

/// The same for programs, with one entry per instruction, and `step` as "prediction". The other keys are a part of those of
/// printPlanJson; runtime/plan/README.md describes them.
std::string explainPlanJson(const Plan &plan, const PlanFacts &facts, const std::optional<PredictedStep> &step = std::nullopt);

} // namespace hpc::plan
