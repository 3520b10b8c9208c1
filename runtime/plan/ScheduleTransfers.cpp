// The one rule by which receives and drains are put into a schedule of computing programs.
#include "runtime/plan/ScheduleKinds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace hpc::plan {

namespace {

using ActionKey = std::tuple<ProgramKind, int32_t, int32_t>;
ActionKey keyOf(const ScheduleAction &action) { return {action.kind, action.microBatch, action.chunk}; }

struct TransferRule {
  const Pipeline &pipeline;
  const PipelineSchedule &computing;

  /// The receives of a stage, by what they are for: indices of computing actions, in the order in which they are
  /// posted. Each sender's messages come in its order; where it leaves a choice, what is needed first is posted first.
  std::vector<size_t> receiveOrder(int32_t stage) const {
    std::map<ActionKey, size_t> indexOf;
    for (size_t i = 0; i < computing[stage].size(); ++i)
      indexOf.emplace(keyOf(computing[stage][i]), i);
    std::map<int32_t, std::vector<Dependency>> incoming; // by sender
    for (const Dependency &dependency : pipeline.dependencies)
      if (dependency.crosses() && dependency.after.stage == stage && !isPerStep(dependency.after.kind))
        incoming[dependency.before.stage].push_back(dependency);
    std::map<size_t, std::set<size_t>> later; // by receive: those that must follow it
    std::map<size_t, int64_t> before;         // by receive: how many must still come before it
    for (const auto &[sender, dependencies] : incoming) {
      std::optional<size_t> last;
      for (const ScheduleAction &action : computing[sender])
        for (const auto &[source, target] : dependencies) {
          if (source.kind != action.kind || source.chunk != action.chunk)
            continue;
          auto found = indexOf.find({target.kind, action.microBatch, target.chunk});
          if (found == indexOf.end())
            continue; // it is missing: the checker says so
          before[found->second];
          if (last && *last != found->second && later[*last].insert(found->second).second)
            ++before[found->second];
          last = found->second;
        }
    }
    std::vector<size_t> order;
    std::set<size_t> ready;
    for (const auto &[index, count] : before)
      if (count == 0)
        ready.insert(index);
    while (!ready.empty()) {
      size_t index = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(index);
      for (size_t next : later[index])
        if (--before[next] == 0)
          ready.insert(next);
    }
    for (const auto &[index, count] : before)
      if (count > 0)
        order.push_back(index); // no order fits all senders: the checker names the two messages
    return order;
  }

  /// By how many parts the results of a program go on; 0 where it sends nothing.
  int64_t reachOf(const ProgramPlace &place) const {
    int64_t reach = 0;
    for (const Dependency &dependency : pipeline.dependencies)
      if (dependency.crosses() && dependency.before == place && !isPerStep(place.kind))
        reach = std::max(reach, std::abs(pipeline.partOf(dependency.after) - pipeline.partOf(dependency.before)));
    return reach;
  }

  /// The position before which the sends of action `index` are drained.
  static size_t drainPosition(const StageSchedule &mine, size_t index, int64_t reach) {
    int64_t runs = 0;
    for (size_t i = index + 1; i < mine.size(); ++i) {
      runs += mine[i].kind == mine[index].kind && mine[i].chunk == mine[index].chunk;
      if (runs > reach || isPerStep(mine[i].kind))
        return i;
    }
    return mine.size();
  }

  StageSchedule apply(int32_t stage) const {
    const StageSchedule &mine = computing[stage];
    std::vector<StageSchedule> inFront(mine.size() + 1); // of each computing action: receives, then drains
    std::vector<size_t> order = receiveOrder(stage);
    size_t position = mine.size();
    std::vector<size_t> positions(order.size());
    for (size_t i = order.size(); i-- > 0;)
      positions[i] = position = std::min(position, order[i] > 0 ? order[i] - 1 : 0);
    for (size_t i = 0; i < order.size(); ++i) {
      const ScheduleAction &action = mine[order[i]];
      inFront[positions[i]].push_back({receiveOf(action.kind), action.microBatch, action.chunk});
    }
    std::map<std::pair<ProgramKind, int32_t>, int64_t> reaches;
    for (size_t i = 0; i < mine.size(); ++i) {
      auto [reach, isNew] = reaches.try_emplace({mine[i].kind, mine[i].chunk}, 0);
      if (isNew)
        reach->second = reachOf({mine[i].kind, stage, mine[i].chunk});
      if (reach->second > 0)
        inFront[drainPosition(mine, i, reach->second)].push_back(
            {drainOf(mine[i].kind), mine[i].microBatch, mine[i].chunk});
    }
    StageSchedule result;
    for (size_t i = 0; i <= mine.size(); ++i) {
      result.insert(result.end(), inFront[i].begin(), inFront[i].end());
      if (i < mine.size())
        result.push_back(mine[i]);
    }
    return result;
  }
};

} // namespace

void addTransfers(const Pipeline &pipeline, PipelineSchedule &schedule) {
  TransferRule rule{pipeline, schedule};
  PipelineSchedule result;
  for (int32_t stage = 0; stage < int32_t(schedule.size()); ++stage)
    result.push_back(rule.apply(stage));
  schedule = std::move(result);
}

} // namespace hpc::plan
