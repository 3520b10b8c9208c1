// The one rule by which receives and drains are put into a schedule of computing programs.
#include "runtime/plan/ScheduleKinds.h"

#include <algorithm>
#include <map>
#include <set>

namespace hpc::plan {

namespace {

struct TransferRule {
  const Pipeline &pipeline;
  const PipelineSchedule &computing;

  /// The receives of a stage, by what they are for: indices of computing actions, in the order in which they are posted.
  /// Each sender's messages come in its order; where it leaves a choice, what is needed first is posted first.
  std::vector<size_t> receiveOrder(int32_t stage) const {
    const StageSchedule &mine = computing[stage];
    auto indexOf = [&](const ScheduleAction &action) {
      return size_t(std::find(mine.begin(), mine.end(), action) - mine.begin());
    };
    std::map<size_t, std::set<size_t>> later; // by receive: those that must follow it
    std::map<size_t, int64_t> before;         // by receive: how many must still come before it
    for (int32_t sender = 0; sender < int32_t(computing.size()); ++sender) {
      size_t last = mine.size();
      for (const ScheduleAction &action : computing[sender])
        for (const Dependency &dependency : pipeline.dependencies) {
          if (!isReceived(dependency, stage) || !(dependency.before == ProgramPlace{action.kind, sender, action.chunk}))
            continue;
          size_t index = indexOf({dependency.after.kind, action.microBatch, dependency.after.chunk});
          if (index == mine.size())
            continue; // it is missing: the checker says so
          before[index];
          if (last != mine.size() && last != index && later[last].insert(index).second)
            ++before[index];
          last = index;
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

  static bool isReceived(const Dependency &dependency, int32_t stage) {
    return dependency.crosses() && dependency.after.stage == stage && !isPerStep(dependency.after.kind);
  }

  /// The position before which the sends of action `index` are drained; 0 where it sends nothing.
  size_t drainPosition(int32_t stage, size_t index) const {
    const StageSchedule &mine = computing[stage];
    const ScheduleAction &action = mine[index];
    int64_t reach = 0;
    for (const Dependency &dependency : pipeline.dependencies)
      if (dependency.crosses() && dependency.before == ProgramPlace{action.kind, stage, action.chunk})
        reach = std::max(reach, std::abs(pipeline.partOf(dependency.after) - pipeline.partOf(dependency.before)));
    if (reach == 0 || isPerStep(action.kind))
      return 0;
    int64_t runs = 0;
    for (size_t i = index + 1; i < mine.size(); ++i) {
      runs += mine[i].kind == action.kind && mine[i].chunk == action.chunk;
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
    for (size_t i = 0; i < mine.size(); ++i)
      if (size_t at = drainPosition(stage, i))
        inFront[at].push_back({drainOf(mine[i].kind), mine[i].microBatch, mine[i].chunk});
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
