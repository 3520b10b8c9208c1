// First each stage by itself, then the messages of each two stages, then all side by side (ScheduleTiming.cpp). The
// order matters: each step uses only what the ones before it have shown.
#include "runtime/plan/ScheduleCheck.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/ScheduleTiming.h"

#include <algorithm>
#include <map>

namespace hpc::plan {

namespace {

std::string inStage(int64_t stage) { return "stage " + std::to_string(stage); }

/// The programs that a stage must run, receives and drains included.
std::vector<ProgramPlace> programsOf(const Pipeline &pipeline, int64_t stage) {
  std::vector<ProgramPlace> programs;
  auto add = [&](ProgramPlace place) {
    if (place.stage == stage && std::find(programs.begin(), programs.end(), place) == programs.end())
      programs.push_back(place);
  };
  for (const ProgramPlace &place : pipeline.programs)
    add(place);
  for (const Dependency &dependency : pipeline.dependencies)
    if (dependency.crosses()) {
      if (!isPerStep(dependency.after.kind))
        add({receiveOf(dependency.after.kind), dependency.after.stage, dependency.after.chunk});
      if (!isPerStep(dependency.before.kind))
        add({drainOf(dependency.before.kind), dependency.before.stage, dependency.before.chunk});
    }
  return programs;
}

/// Each program once for each micro-batch (once for a program of the step), and nothing else.
Status checkRuns(const Pipeline &pipeline, int64_t stage, const StageSchedule &schedule, const Positions &positions) {
  std::vector<ProgramPlace> programs = programsOf(pipeline, stage);
  std::string known;
  for (const ProgramPlace &place : programs)
    known += (known.empty() ? "" : ", ") + kindText(place.kind) +
             (place.chunk ? " of chunk " + std::to_string(place.chunk) : "");
  for (size_t i = 0; i < schedule.size(); ++i) {
    const ScheduleAction &action = schedule[i];
    std::string where = inStage(stage) + ": " + actionText(action) + ": ";
    if (action.microBatch < 0 || action.microBatch >= pipeline.microBatches)
      return fault(where + "there are micro-batches 0 to " + std::to_string(pipeline.microBatches - 1));
    if (std::find(programs.begin(), programs.end(), ProgramPlace{action.kind, int32_t(stage), action.chunk}) ==
        programs.end())
      return fault(where + "the stage has no such program; it has " + known);
    if (positions.at(stage, action) != int64_t(i))
      return fault(where + "is there twice");
  }
  for (const ProgramPlace &place : programs)
    for (int32_t i = 0; i < (isPerStep(place.kind) ? 1 : pipeline.microBatches); ++i)
      if (ScheduleAction action{place.kind, i, place.chunk}; positions.at(stage, action) < 0)
        return fault(inStage(stage) + ": " + actionText(action) + " is missing");
  return Status::success();
}

/// `first` stands before `second` in a stage, both being there.
Status checkOrder(const Positions &positions, int64_t stage, const ScheduleAction &first, const ScheduleAction &second,
                  const std::string &why) {
  if (positions.at(stage, first) < positions.at(stage, second))
    return Status::success();
  return fault(inStage(stage) + ": " + actionText(second) + " stands before " + actionText(first) + ", " + why);
}

/// The condition of a dependency on one stage's list.
Status checkDependency(const Pipeline &pipeline, const Positions &positions, const Dependency &dependency) {
  const auto &[before, after] = dependency;
  if (dependency.crosses() && (isPerStep(before.kind) || isPerStep(after.kind)))
    return Status::success(); // updates exchange what they need by themselves
  for (int32_t i = 0; i < pipeline.microBatches; ++i) {
    ScheduleAction first{before.kind, isPerStep(before.kind) ? 0 : i, before.chunk};
    ScheduleAction second{after.kind, isPerStep(after.kind) ? 0 : i, after.chunk};
    if (!dependency.crosses()) {
      HPC_RETURN_IF_ERROR(checkOrder(positions, after.stage, first, second, "which makes what it needs"));
      if (i > 0 && isPerStep(after.kind))
        HPC_RETURN_IF_ERROR(checkOrder(positions, after.stage, {before.kind, 0, before.chunk}, first,
                                       "which begins the sums that the other micro-batches add to"));
      continue;
    }
    HPC_RETURN_IF_ERROR(checkOrder(positions, after.stage, {receiveOf(after.kind), i, after.chunk}, second,
                                   "which posts the receives that it waits for"));
    HPC_RETURN_IF_ERROR(checkOrder(positions, before.stage, first, {drainOf(before.kind), i, before.chunk},
                                   "whose sends it completes"));
  }
  return Status::success();
}

/// A message between two given stages: which of their dependencies, and the micro-batch.
using Message = std::pair<size_t, int32_t>;

/// The messages of some dependencies between two stages as the sender's programs or the receiver's receives post them.
std::vector<Message> messages(const std::vector<Dependency> &dependencies, const StageSchedule &schedule,
                              bool asSender) {
  std::vector<Message> posted;
  for (const ScheduleAction &action : schedule)
    for (size_t d = 0; d < dependencies.size(); ++d) {
      const auto &[before, after] = dependencies[d];
      ProgramPlace poster = asSender ? before : ProgramPlace{receiveOf(after.kind), after.stage, after.chunk};
      if (poster.kind == action.kind && poster.chunk == action.chunk)
        posted.push_back({d, action.microBatch});
    }
  return posted;
}

/// `dependencies` are all those from one stage to another.
Status checkMessageOrder(const std::vector<Dependency> &dependencies, const PipelineSchedule &schedule) {
  int32_t from = dependencies.front().before.stage, to = dependencies.front().after.stage;
  std::vector<Message> sent = messages(dependencies, schedule[from], true);
  std::vector<Message> received = messages(dependencies, schedule[to], false);
  for (size_t i = 0; i < sent.size() && i < received.size(); ++i) {
    if (sent[i] == received[i])
      continue;
    auto sender = [&](const Message &message) {
      const ProgramPlace &before = dependencies[message.first].before;
      return actionText({before.kind, message.second, before.chunk});
    };
    auto receiver = [&](const Message &message) {
      const ProgramPlace &after = dependencies[message.first].after;
      return actionText({receiveOf(after.kind), message.second, after.chunk});
    };
    std::string other = "stage " + std::to_string(to);
    return fault(inStage(from) + ": " + sender(sent[i]) + " sends to " + other + " what " + other + " receives by " +
                 receiver(sent[i]) + ", but that one posts " + receiver(received[i]) +
                 " first; both must take the messages between them in one order");
  }
  return Status::success();
}

} // namespace

Expected<ScheduleFacts> checkSchedule(const Pipeline &pipeline, const PipelineSchedule &schedule,
                                      const ScheduleCosts &costs) {
  if (int64_t(schedule.size()) != pipeline.stages)
    return fault("the schedule has lists for " + countText(int64_t(schedule.size()), "stage") + ", the pipeline has " +
                 std::to_string(pipeline.stages));
  Positions positions(pipeline, schedule);
  for (int64_t s = 0; s < pipeline.stages; ++s)
    HPC_RETURN_IF_ERROR(checkRuns(pipeline, s, schedule[s], positions));
  for (const Dependency &dependency : pipeline.dependencies)
    HPC_RETURN_IF_ERROR(checkDependency(pipeline, positions, dependency));
  std::map<std::pair<int32_t, int32_t>, std::vector<Dependency>> links;
  for (const Dependency &dependency : pipeline.dependencies)
    if (dependency.crosses() && !isPerStep(dependency.before.kind) && !isPerStep(dependency.after.kind))
      links[{dependency.before.stage, dependency.after.stage}].push_back(dependency);
  for (const auto &[stages, dependencies] : links)
    HPC_RETURN_IF_ERROR(checkMessageOrder(dependencies, schedule));
  return timeSchedule(pipeline, schedule, positions, costs);
}

} // namespace hpc::plan
