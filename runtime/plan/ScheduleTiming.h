// All stages of a schedule side by side: each goes on as soon as it can. Internal to the checker, which has shown
// before that everything that is waited for is there.
#pragma once

#include "runtime/plan/ScheduleCheck.h"

#include <unordered_map>

namespace hpc::plan {

/// Where each action stands in its stage's list; of one that is there twice, the first place.
class Positions {
public:
  Positions(const Pipeline &pipeline, const PipelineSchedule &schedule);
  /// -1: not there.
  int64_t at(int64_t stage, const ScheduleAction &action) const;

private:
  static int64_t key(const ScheduleAction &action);
  std::vector<std::unordered_map<int64_t, int64_t>> byStage;
};

/// Starts, length and busy times, or the deadlock: who waits for whom, round the circle.
Expected<ScheduleFacts> timeSchedule(const Pipeline &pipeline, const PipelineSchedule &schedule,
                                     const Positions &positions, const ScheduleCosts &costs);

} // namespace hpc::plan
