// Runs differ where a table of the instruction differs, those of collectives and messages also by where their ranks are.
#include "runtime/cost/InstructionTimes.h"

#include "runtime/plan/Groups.h"

#include <algorithm>
#include <map>

namespace hpc::cost {

using namespace plan;

namespace {

/// The tables that a duration may follow from.
std::vector<const ByCoord *> tablesOf(const Action &action) {
  if (const auto *gemm = std::get_if<Gemm>(&action))
    return {&gemm->m, &gemm->n, &gemm->k, &gemm->addToC};
  if (const auto *sum = std::get_if<Accumulate>(&action))
    return {&sum->add};
  if (const auto *store = std::get_if<StoreOutput>(&action))
    return {&store->owner};
  if (const auto *send = std::get_if<Send>(&action))
    return {&send->peer};
  return {};
}

/// Numbers seconds: equal ones have one number.
int32_t variantOf(InstructionTime &time, double seconds) {
  auto found = std::find(time.seconds.begin(), time.seconds.end(), seconds);
  if (found == time.seconds.end())
    found = time.seconds.insert(found, seconds);
  return int32_t(found - time.seconds.begin());
}

} // namespace

int32_t InstructionTimes::groupingOf(const std::vector<std::string> &axes) {
  auto found = std::find_if(groups.begin(), groups.end(), [&](const Grouping &each) { return each.axes == axes; });
  if (found != groups.end())
    return int32_t(found - groups.begin());
  Grouping grouping{axes, {}, {}, {}};
  for (int64_t coordinate = 0; coordinate < plan.ranksPerStage(); ++coordinate) {
    const size_t group = size_t(seatOf(plan.axes, coordinate, axes).group);
    if (group >= grouping.first.size()) {
      grouping.first.resize(group + 1, -1);
      grouping.last.resize(group + 1, -1);
    }
    if (grouping.first[group] < 0)
      grouping.first[group] = coordinate;
    grouping.last[group] = coordinate;
    grouping.groupOf.push_back(int32_t(group));
  }
  groups.push_back(std::move(grouping));
  return int32_t(groups.size() - 1);
}

InstructionTime InstructionTimes::timeOf(int64_t stage, const Instruction &instruction) {
  const Action &action = instruction.action;
  const int64_t ranks = plan.ranksPerStage();
  auto secondsOf = [&](int64_t coordinate, int64_t microBatch) { return durations({plan, stage, instruction, coordinate, microBatch}); };
  InstructionTime time;
  time.seconds.clear();
  time.variants.clear();
  if (const auto *collective = std::get_if<Collective>(&action)) {
    const Grouping &grouping = groups[size_t(groupingOf(collective->axes))];
    std::vector<int32_t> ofGroup;
    for (int64_t first : grouping.first)
      ofGroup.push_back(variantOf(time, secondsOf(first, 0)));
    for (int32_t group : grouping.groupOf)
      time.variants.push_back(ofGroup[size_t(group)]);
  } else {
    const bool isSend = std::holds_alternative<Send>(action);
    size_t entries = isSend ? size_t(ranks) : 1;
    const std::vector<const ByCoord *> tables = tablesOf(action);
    for (const ByCoord *table : tables)
      entries = std::max(entries, table->values.size());
    std::map<std::vector<int64_t>, int32_t> known; // by what the tables have, and of a send by who sends
    std::vector<int64_t> key(tables.size() + 1), last;
    for (size_t entry = 0; entry < entries; ++entry) {
      const int64_t coordinate = int64_t(entry) % ranks, microBatch = int64_t(entry) / ranks;
      key.back() = isSend ? coordinate : 0;
      for (size_t table = 0; table < tables.size(); ++table)
        key[table] = tables[table]->at(coordinate, microBatch, ranks);
      if (key == last) { // as most are
        time.variants.push_back(time.variants.back());
        continue;
      }
      last = key;
      auto [found, isNew] = known.emplace(key, 0);
      if (isNew)
        found->second = variantOf(time, secondsOf(coordinate, microBatch));
      time.variants.push_back(found->second);
    }
  }
  if (time.seconds.size() == 1)
    time.variants.resize(1);
  return time;
}

InstructionTimes::InstructionTimes(const Plan &plan, const Durations &durations) : plan(plan), durations(durations) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    auto &ofStage = times.emplace_back();
    for (const Program &program : plan.stages[stage].programs) {
      auto &ofProgram = ofStage.emplace_back();
      for (const Instruction &instruction : program.instructions)
        ofProgram.push_back(timeOf(int64_t(stage), instruction));
    }
  }
}

} // namespace hpc::cost
