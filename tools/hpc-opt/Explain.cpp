// The lines of --explain, from the plan alone.
#include "tools/hpc-opt/Explain.h"

#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanPrinter.h"

namespace hpc {

static std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ",") + word;
  return text;
}

/// "; node 'x' (path); because ...; avoided by ..."
static std::string because(const plan::Reason &reason) {
  std::string text = ", ONNX node '" + reason.node + "'";
  if (!reason.path.empty())
    text += " (" + reason.path + ")";
  if (!reason.cause.empty())
    text += ": " + reason.cause;
  if (!reason.avoid.empty())
    text += "; avoided by " + reason.avoid;
  return text;
}

std::string explain(const plan::Plan &plan, const plan::PlanFacts &facts) {
  std::string text;
  auto actionOf = [&](const plan::TrafficFacts &traffic) -> const plan::Action & {
    return plan.stages[traffic.stage].programs[traffic.program].instructions[traffic.instruction].action;
  };
  int64_t total = 0;
  auto line = [&](const plan::TrafficFacts &traffic, const std::string &what, const plan::Reason &reason) {
    total += traffic.totalBytes();
    text += "stage " + std::to_string(traffic.stage) + ": " + what + ", " + plan::bytesText(traffic.bytes) + ", " +
            std::to_string(traffic.runs) + " times a step" + because(reason) + "\n";
  };
  for (const plan::TrafficFacts &traffic : facts.collectives) {
    const auto &collective = std::get<plan::Collective>(actionOf(traffic));
    std::string what = std::string(plan::name(collective.kind));
    if (collective.kind == plan::CollectiveKind::AllReduce && collective.reduce != plan::ReduceKind::Sum)
      what += std::string(" ") + plan::name(collective.reduce);
    line(traffic, what + " over " + joined(collective.axes), collective.reason);
  }
  for (const plan::TrafficFacts &traffic : facts.transfers) {
    const auto &send = std::get<plan::Send>(actionOf(traffic));
    line(traffic, "transfer to stage " + std::to_string(send.peer.values[0] / plan.ranksPerStage()), send.reason);
  }
  text += std::to_string(facts.collectives.size()) + " collectives and " + std::to_string(facts.transfers.size()) +
          " transfers a program; " + plan::bytesText(total) + " a step over all ranks\n";
  for (size_t stage = 0; stage < facts.memory.size(); ++stage) {
    const plan::MemoryFacts &memory = facts.memory[stage];
    text += "memory of a rank of stage " + std::to_string(stage) + ": " + plan::bytesText(memory.total()) +
            ", weights " + std::to_string(memory.weight) + ", state " + std::to_string(memory.state) + ", slots " +
            std::to_string(memory.slot) + ", temporaries " + std::to_string(memory.temp) + "\n";
  }
  text += "schedule:\n" + plan::timelinePicture(plan, facts.timeline);
  return text;
}

} // namespace hpc
