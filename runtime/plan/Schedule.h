// Schedules as plain data: in which order a stage runs its programs for its micro-batches, and in which slot. They have
// a text form, one builder per kind, and one checker that knows nothing of the builders.
//
// Text: the first letter of a program's name in upper case and the micro-batch: R receive, F forward, D drain. `D`
// alone drains all that is in flight. Micro-batch i uses slot i mod slots. Three micro-batches, two slots, a middle
// stage:
//   R0 R1 F0 R2 F1 F2 D
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace hpc::plan {

/// One run of a program, the program being its letter.
struct ScheduleAction {
  char program = 'F';
  int32_t microBatch = 0;
  int32_t slot = 0;
  bool operator==(const ScheduleAction &other) const {
    return program == other.program && microBatch == other.microBatch && slot == other.slot;
  }
};
using StageSchedule = std::vector<ScheduleAction>;

/// The letter of a program.
char programLetter(ProgramKind program);

/// Slots that are of use: one beyond what F works on, for the receive that is posted ahead.
inline int64_t inferenceSlots(int64_t microBatches) { return microBatches < 2 ? microBatches : 2; }

/// Forward only. Receives are posted as early as a slot is free: those of the first `slots` micro-batches at once, that
/// of i + slots after F i. The first stage receives nothing, the last one has nothing to drain.
StageSchedule inferenceSchedule(int64_t stage, int64_t stages, int64_t microBatches, int64_t slots);

/// `R0 R1 F0 F1 D`
std::string formatSchedule(const StageSchedule &schedule);
Expected<StageSchedule> parseSchedule(const std::string &text, int64_t microBatches, int64_t slots);

/// To and from the plan's form. A letter must be that of one of the programs.
Expected<std::vector<ScheduleStep>> bindSchedule(const StageSchedule &schedule, const std::vector<Program> &programs);
StageSchedule scheduleOf(const Stage &stage);

/// What the checker counts: per stage, the most micro-batches that hold a slot at once.
struct ScheduleFacts {
  std::vector<int64_t> peakInFlight;
};

/// Checks the schedules of all stages of a forward pipeline, each stage feeding the next: every action once, a receive
/// before its forward and in its slot, no slot used again while its micro-batch is in it, micro-batches received in the
/// order in which they are sent, all sends drained, and no deadlock when a message moves only once both sides have
/// posted it.
Expected<ScheduleFacts> checkSchedules(const std::vector<StageSchedule> &stages, int64_t microBatches, int64_t slots);

} // namespace hpc::plan
