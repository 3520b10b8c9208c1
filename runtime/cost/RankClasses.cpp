// Partition refinement: ranks begin with a colour each for what they do by themselves; a colour is divided while ranks of it meet other
// colours.
#include "runtime/cost/RankClasses.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace hpc::cost {

using namespace plan;

/// The index of the difference that is about the rank, or -1.
static int64_t differenceOf(const Machine &machine, int64_t rank) {
  auto found = std::find_if(machine.differences.begin(), machine.differences.end(), [&](const HostDifference &each) {
    return rank >= each.firstRank && rank < each.firstRank + each.ranks;
  });
  return found == machine.differences.end() ? -1 : found - machine.differences.begin();
}

double speedOf(const Machine &machine, int64_t rank) {
  const int64_t difference = differenceOf(machine, rank);
  return difference < 0 ? 1 : machine.differences[size_t(difference)].speed;
}

int32_t linkLevel(const Machine &machine, int64_t first, int64_t last) {
  return int32_t(&machine.linkOf(first, last - first + 1) - machine.links.data());
}

namespace {

using Keys = std::vector<std::vector<int64_t>>; ///< by rank

/// Equal keys get one number, in the order in which they come.
std::vector<int32_t> numbered(const Keys &keys) {
  std::map<std::vector<int64_t>, int32_t> known;
  std::vector<int32_t> numbers;
  for (const std::vector<int64_t> &key : keys)
    numbers.push_back(known.emplace(key, int32_t(known.size())).first->second);
  return numbers;
}

struct Refinement {
  const Plan &plan;
  const Machine &machine;
  InstructionTimes &times;
  const int64_t ranks = plan.ranksPerStage();
  Keys keys;
  std::vector<int32_t> colours;
  std::vector<std::set<int32_t>> groupings;             ///< by stage
  std::vector<std::set<std::vector<int64_t>>> peers[2]; ///< by stage: tables of sends, and of receives

  /// Adds the columns of tables to the keys of a stage's ranks.
  void addColumns(size_t stage, const std::set<std::vector<int64_t>> &tables) {
    for (const std::vector<int64_t> &table : tables) {
      Keys columns(static_cast<size_t>(ranks));
      for (size_t i = 0; i < table.size(); ++i)
        columns[i % size_t(ranks)].push_back(table[i]);
      const std::vector<int32_t> column = numbered(columns);
      for (size_t coordinate = 0; coordinate < size_t(ranks); ++coordinate)
        keys[stage * size_t(ranks) + coordinate].push_back(column[coordinate]);
    }
  }

  void addOwn(size_t stage) {
    std::set<std::vector<int64_t>> tables;
    auto add = [&](const auto &values, auto map) {
      if (values.size() == 1)
        return;
      std::vector<int64_t> table;
      for (auto value : values)
        table.push_back(map(value));
      tables.insert(std::move(table));
    };
    auto addPeers = [&](const ByCoord &peer, int way) {
      std::vector<int64_t> table = peer.values;
      if (table.size() == 1)
        table.assign(size_t(ranks), table[0]);
      std::vector<int64_t> levels;
      for (size_t i = 0; i < table.size(); ++i) {
        const int64_t own = int64_t(stage) * ranks + int64_t(i) % ranks;
        levels.push_back(table[i] < 0 ? -1 : linkLevel(machine, std::min(own, table[i]), std::max(own, table[i])));
      }
      tables.insert(std::move(levels));
      peers[way][stage].insert(std::move(table));
    };
    const Stage &programs = plan.stages[stage];
    for (size_t p = 0; p < programs.programs.size(); ++p)
      for (size_t i = 0; i < programs.programs[p].instructions.size(); ++i) {
        const Instruction &instruction = programs.programs[p].instructions[i];
        add(instruction.when.values, [](int64_t value) { return int64_t(value != 0); });
        add(times.of(int64_t(stage), int64_t(p), int64_t(i)).variants, [](int32_t value) { return int64_t(value); });
        if (const auto *collective = std::get_if<Collective>(&instruction.action))
          groupings[stage].insert(times.groupingOf(collective->axes));
        if (const auto *send = std::get_if<Send>(&instruction.action))
          addPeers(send->peer, 0);
        if (const auto *recv = std::get_if<Recv>(&instruction.action))
          addPeers(recv->peer, 1);
      }
    for (int32_t number : groupings[stage]) {
      const Grouping &grouping = times.groupings()[size_t(number)];
      std::vector<int64_t> levels;
      for (int32_t group : grouping.groupOf)
        levels.push_back(linkLevel(machine, int64_t(stage) * ranks + grouping.first[size_t(group)], int64_t(stage) * ranks + grouping.last[size_t(group)]));
      tables.insert(std::move(levels));
    }
    addColumns(stage, tables);
  }

  /// Sets of ranks by the colours of their members: adds to the key of each member the number of its set.
  void addSets(const std::map<int64_t, std::vector<int64_t>> &sets) {
    Keys ofSets;
    for (const auto &set : sets) {
      std::vector<int64_t> &members = ofSets.emplace_back();
      for (int64_t rank : set.second)
        members.push_back(colours[size_t(rank)]);
      std::sort(members.begin(), members.end());
    }
    const std::vector<int32_t> numbers = numbered(ofSets);
    size_t next = 0;
    for (const auto &set : sets) {
      for (int64_t rank : set.second)
        keys[size_t(rank)].push_back(numbers[next]);
      ++next;
    }
  }

  void addMet(size_t stage) {
    for (int32_t number : groupings[stage]) {
      std::map<int64_t, std::vector<int64_t>> sets;
      for (int64_t coordinate = 0; coordinate < ranks; ++coordinate)
        sets[times.groupings()[size_t(number)].groupOf[size_t(coordinate)]].push_back(int64_t(stage) * ranks + coordinate);
      addSets(sets);
    }
    for (auto &way : peers)
      for (const std::vector<int64_t> &table : way[stage])
        for (size_t i = 0; i < table.size(); ++i)
          keys[stage * size_t(ranks) + i % size_t(ranks)].push_back(table[i] < 0 ? -1 : colours[size_t(table[i])]);
  }

  /// Whether each rank has at most one peer of a class for what it sends, and one for what it receives. Else messages of one class to
  /// another are not those of one rank to another.
  bool isOneToOne() const {
    for (const auto &way : peers)
      for (size_t rank = 0; rank < colours.size(); ++rank) {
        std::map<int32_t, int64_t> ofClass;
        for (const std::vector<int64_t> &table : way[rank / size_t(ranks)])
          for (size_t i = rank % size_t(ranks); i < table.size(); i += size_t(ranks))
            if (table[i] >= 0 && ofClass.emplace(colours[size_t(table[i])], table[i]).first->second != table[i])
              return false;
      }
    return true;
  }

  std::vector<int32_t> run() {
    const size_t world = size_t(plan.worldSize());
    keys.resize(world);
    groupings.resize(plan.stages.size());
    for (auto &way : peers)
      way.resize(plan.stages.size());
    for (size_t rank = 0; rank < world; ++rank) {
      keys[rank] = {int64_t(rank) / ranks, differenceOf(machine, int64_t(rank))};
    }
    for (size_t stage = 0; stage < plan.stages.size(); ++stage)
      addOwn(stage);
    colours = numbered(keys);
    for (int32_t count = 0, before = -1; count != before;) {
      before = *std::max_element(colours.begin(), colours.end());
      for (size_t rank = 0; rank < world; ++rank)
        keys[rank] = {colours[rank]};
      for (size_t stage = 0; stage < plan.stages.size(); ++stage)
        addMet(stage);
      if (machine.cores > 0) {
        std::map<int64_t, std::vector<int64_t>> hosts;
        for (size_t rank = 0; rank < world; ++rank)
          hosts[hostOf(machine, int64_t(rank))].push_back(int64_t(rank));
        addSets(hosts);
      }
      colours = numbered(keys);
      count = *std::max_element(colours.begin(), colours.end());
    }
    std::vector<int32_t> firsts(world);
    std::iota(firsts.begin(), firsts.end(), 0);
    if (!isOneToOne())
      return firsts;
    std::map<int32_t, int32_t> firstOf;
    for (size_t rank = 0; rank < world; ++rank)
      firsts[rank] = firstOf.emplace(colours[rank], int32_t(rank)).first->second;
    return firsts;
  }
};

} // namespace

std::vector<int32_t> classesOf(const Plan &plan, const Machine &machine, InstructionTimes &times) {
  return Refinement{plan, machine, times, plan.ranksPerStage(), {}, {}, {}, {}}.run();
}

} // namespace hpc::cost
