// Schedules as plain data: in which order each stage runs its programs for its micro-batches. Builders
// (ScheduleKinds.h) and users write them; one checker that knows none of the builders (ScheduleCheck.h) decides what
// may run.
//
// Text: one token an action, one line a stage.
//   F0 B0 W0   forward, backward, weight gradient of micro-batch 0 (of chunk 0)
//   B0.1       of chunk 1
//   U          the update, once a step
//   RF0 DF0    posts the receives that F0 waits for; completes the sends that F0 posted. RB0 and DB0: the same of B0
// Two stages, two micro-batches, forward only: "F0 F1 DF0 DF1" and "RF0 RF1 F0 F1". Who writes a schedule need not
// write R and D: addTransfers puts them in by one rule.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <tuple>
#include <vector>

namespace hpc::plan {

/// One run of a program of a stage.
struct ScheduleAction {
  ProgramKind kind = ProgramKind::Forward;
  int32_t microBatch = 0; ///< 0 for Update
  int32_t chunk = 0;

  bool operator==(const ScheduleAction &other) const {
    return kind == other.kind && microBatch == other.microBatch && chunk == other.chunk;
  }
  bool operator!=(const ScheduleAction &other) const { return !(*this == other); }
};
using StageSchedule = std::vector<ScheduleAction>;
using PipelineSchedule = std::vector<StageSchedule>; ///< by stage

/// F, B, W and U; the others move what these read and write.
bool computes(ProgramKind kind);
/// Runs once a step, not once a micro-batch: Update.
inline bool isPerStep(ProgramKind kind) { return kind == ProgramKind::Update; }
/// The program that posts the receives of a computing one, and the one that completes its sends. Forward and Backward
/// have them; Update exchanges what it needs by itself, WeightGradient nothing.
ProgramKind receiveOf(ProgramKind kind);
ProgramKind drainOf(ProgramKind kind);

/// "F", "RB", ...
std::string kindText(ProgramKind kind);
/// "F0", "B0.1", "U"
std::string actionText(const ScheduleAction &action);

/// `RF0 RF1 F0 F1`
std::string formatSchedule(const StageSchedule &schedule);
/// Errors name the word and what would be one. Which micro-batches, chunks and programs there are is the checker's to
/// say.
Expected<StageSchedule> parseSchedule(const std::string &text);
/// A user's file: a line a stage, first to last; empty lines and what follows a '#' are left out.
Expected<PipelineSchedule> parseScheduleFile(const std::string &text);

/// To and from the plan's form. Each action must be of one of the stage's programs.
Expected<std::vector<ScheduleStep>> bindSchedule(const StageSchedule &schedule, const std::vector<Program> &programs);
StageSchedule scheduleOf(const Stage &stage);

} // namespace hpc::plan
