// Building, printing and parsing schedules.
#include "runtime/plan/Schedule.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace hpc::plan {

namespace {

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

/// The drains of the micro-batches that may still be in flight after the last forward, the oldest first.
StageSchedule drainAll(int64_t microBatches, int64_t slots) {
  StageSchedule drains;
  for (int64_t i = std::max<int64_t>(0, microBatches - slots); i < microBatches; ++i)
    drains.push_back({'D', int32_t(i), int32_t(i % slots)});
  return drains;
}

} // namespace

char programLetter(ProgramKind program) { return "RFDGBEWU"[int(program)]; }

StageSchedule inferenceSchedule(int64_t stage, int64_t stages, int64_t microBatches, int64_t slots) {
  StageSchedule schedule;
  auto add = [&](char program, int64_t microBatch) {
    if (microBatch < microBatches)
      schedule.push_back({program, int32_t(microBatch), int32_t(microBatch % slots)});
  };
  bool receives = stage > 0, sends = stage + 1 < stages;
  for (int64_t i = 0; receives && i < slots; ++i)
    add('R', i);
  for (int64_t i = 0; i < microBatches; ++i) {
    add('F', i);
    if (receives)
      add('R', i + slots);
  }
  if (sends)
    for (const ScheduleAction &drain : drainAll(microBatches, slots))
      schedule.push_back(drain);
  return schedule;
}

std::string formatSchedule(const StageSchedule &schedule) {
  // What `D` alone stands for can be told from the forwards.
  int64_t microBatches = 0, slots = 1;
  for (const ScheduleAction &action : schedule) {
    microBatches = std::max<int64_t>(microBatches, action.microBatch + 1);
    slots = std::max<int64_t>(slots, action.slot + 1);
  }
  StageSchedule drains = drainAll(microBatches, slots);
  bool shortDrain = !drains.empty() && schedule.size() >= drains.size() &&
                    std::equal(drains.begin(), drains.end(), schedule.end() - drains.size());
  size_t spelled = schedule.size() - (shortDrain ? drains.size() : 0);
  std::string text;
  for (size_t i = 0; i < spelled; ++i)
    text += (i ? " " : "") + std::string(1, schedule[i].program) + std::to_string(schedule[i].microBatch);
  if (shortDrain)
    text += text.empty() ? "D" : " D";
  return text;
}

Expected<StageSchedule> parseSchedule(const std::string &text, int64_t microBatches, int64_t slots) {
  StageSchedule schedule;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    if (word == "D") {
      for (const ScheduleAction &drain : drainAll(microBatches, slots))
        schedule.push_back(drain);
      continue;
    }
    bool isNumber = word.size() > 1 && word.size() < 8 &&
                    std::all_of(word.begin() + 1, word.end(), [](unsigned char c) { return std::isdigit(c); });
    if (!std::isupper(static_cast<unsigned char>(word[0])) || !isNumber)
      return fault("schedule: '" + word + "' is not a letter and a micro-batch such as F0");
    int64_t microBatch = std::stoll(word.substr(1));
    if (microBatch >= microBatches)
      return fault("schedule: '" + word + "' names a micro-batch beyond the last, " + std::to_string(microBatches - 1));
    schedule.push_back({word[0], int32_t(microBatch), int32_t(microBatch % slots)});
  }
  return schedule;
}

Expected<std::vector<ScheduleStep>> bindSchedule(const StageSchedule &schedule, const std::vector<Program> &programs) {
  std::vector<ScheduleStep> steps;
  for (const ScheduleAction &action : schedule) {
    auto program = std::find_if(programs.begin(), programs.end(),
                                [&](const Program &p) { return programLetter(p.kind) == action.program; });
    if (program == programs.end())
      return fault(std::string("schedule: the stage has no program '") + action.program + "'");
    steps.push_back({int32_t(program - programs.begin()), action.microBatch});
  }
  return steps;
}

StageSchedule scheduleOf(const Stage &stage) {
  StageSchedule schedule;
  int32_t slots = 1;
  for (int32_t request : stage.requests)
    slots = std::max(slots, request);
  for (const ScheduleStep &step : stage.schedule)
    schedule.push_back(
        {programLetter(stage.programs[step.program].kind), step.microBatch, step.microBatch % slots});
  return schedule;
}

} // namespace hpc::plan
