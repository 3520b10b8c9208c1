// Rows: traffic by program and, in it, by everything but the numbers in its names; memory by stages that are alike.
#include "runtime/plan/PlanTables.h"

#include "runtime/base/CountText.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanPrinter.h"
#include "runtime/plan/TextTable.h"

#include <algorithm>
#include <set>

namespace hpc::plan {

namespace {

/// Collectives or transfers that share a row.
struct TrafficGroup {
  std::vector<std::string> key;
  std::string kind, axes;
  ProgramKind program = ProgramKind::Forward;
  TrafficFacts first;
  std::vector<const Reason *> reasons;
  std::set<int64_t> stages;
};

std::string joinedWords(const std::vector<std::string> &words, const char *separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

TrafficGroup alone(const Plan &plan, const TrafficFacts &traffic) {
  const Program &program = plan.stages[traffic.stage].programs[traffic.program];
  const Action &action = program.instructions[traffic.instruction].action;
  TrafficGroup group;
  group.program = program.kind;
  if (const auto *collective = std::get_if<Collective>(&action)) {
    group.kind = name(collective->kind);
    if (collective->kind == CollectiveKind::AllReduce && collective->reduce != ReduceKind::Sum)
      group.kind += std::string(" ") + name(collective->reduce);
    group.axes = joinedWords(collective->axes, ", ");
    group.reasons = {&collective->reason};
  } else {
    group.kind = "transfer";
    group.axes = "stages";
    group.reasons = {&std::get<Send>(action).reason};
  }
  const Reason &reason = *group.reasons[0];
  group.first = traffic;
  group.stages = {traffic.stage};
  group.key = {name(group.program),
               group.kind,
               group.axes,
               std::to_string(traffic.bytes),
               std::to_string(traffic.runs),
               withoutNumbers(reason.path.empty() ? reason.node : reason.path),
               withoutNumbers(reason.cause),
               withoutNumbers(reason.avoid)};
  return group;
}

/// In the order of a step's programs, and within one as the stages run them.
std::vector<TrafficGroup> groupTraffic(const Plan &plan, const PlanFacts &facts) {
  std::vector<TrafficGroup> groups;
  for (const std::vector<TrafficFacts> *list : {&facts.collectives, &facts.transfers})
    for (const TrafficFacts &traffic : *list) {
      TrafficGroup one = alone(plan, traffic);
      auto same = std::find_if(groups.begin(), groups.end(),
                               [&](const TrafficGroup &group) { return group.key == one.key; });
      if (same == groups.end()) {
        auto later = [](const TrafficGroup &a, const TrafficGroup &b) { return a.program < b.program; };
        groups.insert(std::upper_bound(groups.begin(), groups.end(), one, later), std::move(one));
        continue;
      }
      same->reasons.push_back(one.reasons[0]);
      same->stages.insert(traffic.stage);
    }
  return groups;
}

/// One of the texts of the reasons, joined; "" where they differ in more than numbers.
std::string joined(const TrafficGroup &group, std::string Reason::*field) {
  std::vector<std::string> texts;
  for (const Reason *reason : group.reasons)
    if (texts.push_back(reason->*field); withoutNumbers(texts.back()) != withoutNumbers(texts.front()))
      return "";
  return joinNumbered(texts);
}

/// "transformer.h.*.attn.c_proj (node_addmm_*), 12 times"
std::string whereText(const TrafficGroup &group) {
  std::string path = joined(group, &Reason::path), node = joined(group, &Reason::node);
  std::string text = path.empty() ? node : node.empty() ? path : path + " (" + node + ")";
  if (text.empty()) // a number of the whole step: the norm of all gradients
    text = std::string("the ") + name(group.program);
  return group.reasons.size() > 1 ? text + ", " + std::to_string(group.reasons.size()) + " times" : text;
}

std::string whyText(const TrafficGroup &group) {
  std::string cause = joined(group, &Reason::cause), avoid = joined(group, &Reason::avoid);
  return (cause.empty() ? "" : "because " + cause) + (cause.empty() || avoid.empty() ? "" : "; ") +
         (avoid.empty() ? "" : "avoided by " + avoid);
}

} // namespace

std::string trafficTable(const Plan &plan, const PlanFacts &facts) {
  std::vector<TrafficGroup> groups = groupTraffic(plan, facts);
  // Where one program has it all, its name says nothing.
  const bool tellsPrograms = !groups.empty() && groups.front().program != groups.back().program;
  auto row = [&](std::string program, std::vector<std::string> cells) {
    if (tellsPrograms)
      cells.insert(cells.begin(), std::move(program));
    return cells;
  };
  TextTable table(row("program", {"kind", "over", "bytes", "times a step", "stages", "where"}));
  for (const TrafficGroup &group : groups)
    table.add(row(name(group.program),
                  {group.kind, group.axes, std::to_string(group.first.bytes), std::to_string(group.first.runs),
                   rangesText({group.stages.begin(), group.stages.end()}), whereText(group)}),
              whyText(group));
  int64_t total = 0, beside = 0;
  for (const std::vector<TrafficFacts> *list : {&facts.collectives, &facts.transfers})
    for (const TrafficFacts &traffic : *list) {
      total += traffic.totalBytes();
      beside += traffic.isBesideComputation ? traffic.totalBytes() : 0;
    }
  std::string text = "communication, bytes of one rank and one time:\n";
  if (!facts.collectives.empty() || !facts.transfers.empty())
    text += table.text();
  return text + "  " + countText(int64_t(facts.collectives.size()), "collective") + ", " +
         countText(int64_t(facts.transfers.size()), "transfer") + "; " + bytesText(total) +
         " a step, the array of each group of ranks counted once" +
         (beside > 0 ? "; " + bytesText(beside) + " of it in collectives beside what is computed\n" : "\n");
}

std::string memoryTable(const PlanFacts &facts) {
  TextTable table(
      {"stages", "total", "weights", "states", "step", "slots", "temporaries", "on host", "product flops a step"});
  for (size_t stage = 0; stage < facts.memory.size(); ++stage) {
    const MemoryFacts &memory = facts.memory[stage];
    std::vector<std::string> cells;
    for (int64_t number : {memory.total(), memory.weight, memory.state, memory.step, memory.slot, memory.temp,
                           memory.host, facts.productFlops[stage]})
      cells.push_back(std::to_string(number));
    table.addFor(int64_t(stage), std::move(cells));
  }
  return "memory of a rank, bytes (total: of its device):\n" + table.text();
}

std::string keptTable(const PlanFacts &facts) {
  if (facts.kept.empty())
    return "";
  bool hasChunks = std::any_of(facts.kept.begin(), facts.kept.end(), [](const KeptFacts &kept) { return kept.chunk > 0; });
  TextTable table({"stages", hasChunks ? "chunk" : "program", "values", "bytes", "instructions", "product flops a step"});
  auto add = [&](const KeptFacts &kept, const char *what, std::vector<std::string> cells) {
    cells.insert(cells.begin(), hasChunks ? std::to_string(kept.chunk) + ", " + what : what);
    table.addFor(kept.stage, std::move(cells));
  };
  for (const KeptFacts &kept : facts.kept)
    add(kept, "forward keeps", {std::to_string(kept.values), std::to_string(kept.bytes), "-", "-"});
  for (const KeptFacts &kept : facts.kept)
    add(kept, "backward repeats", {"-", "-", std::to_string(kept.instructions), std::to_string(kept.productFlops)});
  return "for gradients, of a rank (--recompute):\n" + table.text();
}

} // namespace hpc::plan
