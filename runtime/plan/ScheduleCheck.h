// The one checker of schedules. It knows a pipeline's dependencies (Pipeline.h) and nothing of who wrote the schedule.
//
// What it shows: every program runs once for each micro-batch, behind what it needs; receives are posted before and
// drains after the program that they serve; two stages agree on the order of the messages between them; and all stages
// come to their end when a message moves only once both sides have posted it, without any buffering.
#pragma once

#include "runtime/plan/Pipeline.h"

namespace hpc::plan {

/// Units of time of one run, for one chunk. Receives and drains cost nothing.
struct ScheduleCosts {
  int64_t forward = 1, backward = 2, weightGradient = 1, update = 0;
  int64_t of(ProgramKind kind) const;
};

/// When everything runs, if each stage goes on as soon as it can.
struct ScheduleFacts {
  std::vector<std::vector<int64_t>> start; ///< by stage and action
  std::vector<int64_t> busy;               ///< by stage: units of computing
  int64_t length = 0;                      ///< until the last stage is done
  /// Share of stages * length in which a stage computes nothing.
  double bubble() const;
};

/// Errors are of kind plan and name the stage, the action and what is wrong with it; a deadlock names who waits for
/// whom.
Expected<ScheduleFacts> checkSchedule(const Pipeline &pipeline, const PipelineSchedule &schedule,
                                      const ScheduleCosts &costs = {});

} // namespace hpc::plan
