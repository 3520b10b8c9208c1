// The clock: an action starts when its stage is free and both sides of every message that it waits for are posted. A
// receive is posted where it stands, a send when its program ends.
#include "runtime/plan/ScheduleTiming.h"

#include <algorithm>

namespace hpc::plan {

namespace {

/// A place of another stage that an action waits for.
struct Awaited {
  int32_t stage;
  ProgramKind kind;
  int32_t chunk;
};

class Timing {
public:
  Timing(const Pipeline &pipeline, const PipelineSchedule &schedule, const Positions &positions,
         const ScheduleCosts &costs)
      : schedule(schedule), positions(positions), costs(costs), next(schedule.size(), 0), clock(schedule.size(), 0) {
    for (const StageSchedule &stage : schedule)
      facts.start.emplace_back(stage.size(), -1);
    facts.busy.assign(schedule.size(), 0);
    for (const auto &[before, after] : pipeline.dependencies) {
      if (before.stage == after.stage || isPerStep(before.kind) || isPerStep(after.kind))
        continue;
      // A program waits for the sender's program, a drain for the receiver's receive.
      waits[key(after.stage, after.kind, after.chunk)].push_back({before.stage, before.kind, before.chunk});
      waits[key(before.stage, drainOf(before.kind), before.chunk)].push_back(
          {after.stage, receiveOf(after.kind), after.chunk});
    }
  }

  Expected<ScheduleFacts> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int32_t s = 0; s < int32_t(schedule.size()); ++s)
        while (next[s] < schedule[s].size() && step(s))
          progress = true;
    }
    for (int32_t s = 0; s < int32_t(schedule.size()); ++s)
      if (next[s] < schedule[s].size())
        return deadlock(s);
    facts.length = *std::max_element(clock.begin(), clock.end());
    return std::move(facts);
  }

private:
  static int64_t key(int64_t stage, ProgramKind kind, int64_t chunk) {
    return (stage << 40) + (chunk << 8) + int64_t(kind);
  }
  const std::vector<Awaited> &waitsOf(int32_t stage, const ScheduleAction &action) {
    return waits[key(stage, action.kind, action.chunk)];
  }
  int64_t positionOf(const Awaited &awaited, int32_t microBatch) const {
    return positions.at(awaited.stage, {awaited.kind, microBatch, awaited.chunk});
  }

  bool step(int32_t s) {
    const ScheduleAction &action = schedule[s][next[s]];
    int64_t start = clock[s];
    for (const Awaited &awaited : waitsOf(s, action)) {
      int64_t position = positionOf(awaited, action.microBatch);
      if (position >= int64_t(next[awaited.stage]))
        return false;
      start = std::max(start, facts.start[awaited.stage][position] + costs.of(awaited.kind));
    }
    facts.start[s][next[s]++] = start;
    facts.busy[s] += costs.of(action.kind);
    clock[s] = start + costs.of(action.kind);
    return true;
  }

  /// Every blocked stage waits for a blocked one, so the walk comes round.
  Status deadlock(int32_t s) {
    std::vector<int32_t> walk;
    std::vector<std::string> reasons;
    while (std::find(walk.begin(), walk.end(), s) == walk.end()) {
      walk.push_back(s);
      const ScheduleAction &action = schedule[s][next[s]];
      for (const Awaited &awaited : waitsOf(s, action)) {
        if (positionOf(awaited, action.microBatch) < int64_t(next[awaited.stage]))
          continue;
        reasons.push_back("stage " + std::to_string(s) + " stands at " + actionText(action) + " until stage " +
                          std::to_string(awaited.stage) + " has run " +
                          actionText({awaited.kind, action.microBatch, awaited.chunk}));
        s = awaited.stage;
        break;
      }
    }
    std::string text;
    for (size_t i = std::find(walk.begin(), walk.end(), s) - walk.begin(); i < reasons.size(); ++i)
      text += (text.empty() ? "" : "; ") + reasons[i];
    return Status::error(ErrorKind::Plan, "deadlock: " + text);
  }

  const PipelineSchedule &schedule;
  const Positions &positions;
  const ScheduleCosts &costs;
  std::unordered_map<int64_t, std::vector<Awaited>> waits;
  std::vector<size_t> next;
  std::vector<int64_t> clock;
  ScheduleFacts facts;
};

} // namespace

Positions::Positions(const Pipeline &pipeline, const PipelineSchedule &schedule) : byStage(pipeline.stages) {
  for (int64_t s = 0; s < pipeline.stages; ++s)
    for (size_t i = 0; i < schedule[s].size(); ++i)
      byStage[s].emplace(key(schedule[s][i]), int64_t(i));
}

int64_t Positions::key(const ScheduleAction &action) {
  return (int64_t(action.microBatch) << 32) + (int64_t(action.chunk) << 8) + int64_t(action.kind);
}

int64_t Positions::at(int64_t stage, const ScheduleAction &action) const {
  auto found = byStage[stage].find(key(action));
  return found == byStage[stage].end() ? -1 : found->second;
}

int64_t ScheduleCosts::of(ProgramKind kind) const {
  switch (kind) {
  case ProgramKind::Forward:
    return forward;
  case ProgramKind::Backward:
    return backward;
  case ProgramKind::WeightGradient:
    return weightGradient;
  case ProgramKind::Update:
    return update;
  default:
    return 0;
  }
}

double ScheduleFacts::bubble() const {
  if (start.empty() || length == 0)
    return 0;
  int64_t computed = 0;
  for (int64_t units : busy)
    computed += units;
  return 1.0 - double(computed) / (double(length) * double(start.size()));
}

Expected<ScheduleFacts> timeSchedule(const Pipeline &pipeline, const PipelineSchedule &schedule,
                                     const Positions &positions, const ScheduleCosts &costs) {
  return Timing(pipeline, schedule, positions, costs).run();
}

} // namespace hpc::plan
