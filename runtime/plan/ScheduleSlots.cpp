// Lifetimes as intervals of positions in a stage's list.
#include "runtime/plan/ScheduleSlots.h"

#include <algorithm>

namespace hpc::plan {

namespace {

struct Stay {
  int32_t microBatch = 0;
  int64_t begin = -1, end = -1; ///< positions in the list
};

bool runs(const ScheduleAction &action, const StageProgram &program) {
  return action.kind == program.kind && action.chunk == program.chunk;
}

/// In the order in which they begin. What never ends is the checker's to find.
std::vector<Stay> staysOf(const StageSchedule &schedule, const SlotSpan &span) {
  std::vector<Stay> stays(schedule.size()); // each micro-batch has an action, so there are no more of them
  for (size_t i = 0; i < schedule.size(); ++i) {
    const int32_t microBatch = schedule[i].microBatch;
    if (microBatch < 0 || size_t(microBatch) >= stays.size())
      continue;
    Stay &stay = stays[size_t(microBatch)];
    stay.microBatch = microBatch;
    if (runs(schedule[i], span.first))
      stay.begin = int64_t(i);
    for (const StageProgram &last : span.last)
      if (runs(schedule[i], last))
        stay.end = int64_t(i);
  }
  stays.erase(std::remove_if(stays.begin(), stays.end(), [](const Stay &stay) { return stay.begin < 0 || stay.end < stay.begin; }), stays.end());
  std::sort(stays.begin(), stays.end(), [](const Stay &a, const Stay &b) { return a.begin < b.begin; });
  return stays;
}

/// Two stays that meet in a slot, the one that was there first as .first.
bool findMeeting(const std::vector<Stay> &byBegin, int64_t slots, std::pair<Stay, Stay> &meeting) {
  std::vector<const Stay *> holder(slots, nullptr);
  for (const Stay &stay : byBegin) {
    const Stay *&held = holder[stay.microBatch % slots];
    if (held && held->end > stay.begin) {
      meeting = {*held, stay};
      return true;
    }
    held = &stay;
  }
  return false;
}

} // namespace

int64_t slotsNeeded(const StageSchedule &schedule, const SlotSpan &span) {
  std::vector<Stay> stays = staysOf(schedule, span);
  std::pair<Stay, Stay> meeting;
  int64_t slots = 1;
  while (findMeeting(stays, slots, meeting))
    ++slots;
  return slots;
}

Status checkSlots(const StageSchedule &schedule, const SlotSpan &span, int64_t slots) {
  std::pair<Stay, Stay> meeting;
  if (slots >= 1 && !findMeeting(staysOf(schedule, span), slots, meeting))
    return Status::success();
  const std::string needed = std::to_string(slotsNeeded(schedule, span));
  if (slots < 1)
    return Status::error(ErrorKind::Plan,
                         "a buffer has " + std::to_string(slots) + " slots; " + needed + " are needed");
  const auto &[held, taken] = meeting;
  return Status::error(ErrorKind::Plan, actionText({span.first.kind, taken.microBatch, span.first.chunk}) + ": slot " +
                                            std::to_string(taken.microBatch % slots) + " of " + std::to_string(slots) +
                                            " still holds micro-batch " + std::to_string(held.microBatch) + " for " +
                                            actionText(schedule[held.end]) + "; " + needed + " slots are needed");
}

int64_t peakInFlight(const StageSchedule &schedule, ProgramKind first, ProgramKind last) {
  int64_t live = 0, peak = 0;
  for (const ScheduleAction &action : schedule) {
    live += action.kind == first;
    peak = std::max(peak, live);
    live -= action.kind == last;
  }
  return peak;
}

std::vector<int64_t> keptCopies(const PipelineSchedule &schedule, int64_t chunks) {
  const int64_t stages = int64_t(schedule.size());
  std::vector<int64_t> copies(size_t(stages * chunks), 1);
  for (int64_t part = 0; part < stages * chunks; ++part) {
    const StageSchedule &stage = schedule[size_t(part % stages)];
    const int32_t chunk = int32_t(part / stages);
    SlotSpan span{{ProgramKind::Forward, chunk}, {}};
    for (const ScheduleAction &action : stage)
      if (action.microBatch == 0 && action.chunk == chunk && (action.kind == ProgramKind::Backward || action.kind == ProgramKind::WeightGradient))
        span.last.push_back({action.kind, chunk});
    if (!span.last.empty())
      copies[size_t(part)] = slotsNeeded(stage, span);
  }
  return copies;
}

} // namespace hpc::plan
