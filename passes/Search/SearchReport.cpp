// Plans are named by the flags that lead to them.
#include "passes/Search/SearchReport.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/TextTable.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace hpc::search {

/// Four digits, in the unit that has them before the point.
static std::string secondsText(double seconds) {
  for (auto [unit, name] : {std::pair(1.0, "s"), {1e-3, "ms"}})
    if (seconds >= unit)
      return llvm::formatv("{0:f3} {1}", seconds / unit, name).str();
  return llvm::formatv("{0:f3} us", seconds / 1e-6).str();
}

static std::string percentText(double share) { return llvm::formatv("{0:f1}%", 100 * share).str(); }

std::string flagsOf(const Answer &answer, const Ranked &ranked) {
  const bool needsMemory = ranked.candidate.recompute == "auto" && !answer.memoryIsGiven;
  return ranked.candidate.flags() + (needsMemory ? " --memory=" + std::to_string(answer.memory) : "");
}

std::string tableText(const Answer &answer) {
  plan::TextTable table({"plan", "step", "memory", "received", "exposed", "idle", "binds"});
  for (const Ranked &each : answer.best)
    table.add({std::string(&each == &answer.best.front() ? "* " : each.isEstimate ? "~ " : "  ") + flagsOf(answer, each), secondsText(each.seconds), byteSizeText(each.memory),
               each.isEstimate ? "-" : byteSizeText(each.received), each.isEstimate ? "-" : percentText(each.exposed), percentText(each.bubble), each.binds()});
  return "plans for " + countText(answer.devices, "rank") + " of " + (answer.machine.empty() ? "no machine in particular (--machine says which)" : answer.machine) +
         ", the fastest first (step: simulated; memory: of the fullest rank; received: by a rank in a step; exposed, idle: shares of all ranks' time; ~: estimated):\n" + table.text();
}

static std::string countsText(const Answer &answer) {
  return countText(int64_t(answer.candidates), "candidate") + ": " + std::to_string(answer.tooLarge) + " beyond the memory, " + std::to_string(answer.refused) +
         " not of this model, " + std::to_string(answer.estimated) + " estimated from profiles of blocks, " + std::to_string(answer.compiled) + " compiled without code";
}

std::string reportText(const Answer &answer) {
  const Ranked &winner = answer.best.front();
  std::string text = "chosen: " + flagsOf(answer, winner) + " (" + secondsText(winner.seconds) + " a step, " + byteSizeText(winner.memory) + " a rank)\n" + tableText(answer) +
                     "searched: " + countsText(answer) + "\n" + "bound: no candidate takes less than " + secondsText(answer.leastSeconds) + " by the profiles, a gap of " +
                     percentText(std::max(0.0, 1 - answer.leastSeconds / winner.seconds)) + "; at the peak of the machine no plan less than " + secondsText(answer.atPeak) + "\n";
  if (answer.memoryBinds) {
    const Ranked &faster = answer.memoryBinds->faster;
    text += "memory" + (faster.isEstimate ? "" : " of stage " + std::to_string(faster.fullestStage)) + " binds: " + (faster.isEstimate ? "about " : "") + byteSizeText(answer.memoryBinds->more) + " more a rank saves " +
            percentText(1 - faster.seconds / winner.seconds) + ", with " + faster.candidate.flags() + "\n";
  } else {
    text += winner.binds() + " binds" + (answer.memory ? ", not the memory: nothing that was compiled is faster with more of it\n" : "\n");
  }
  if (!winner.candidate.sidecar.empty())
    text += "--spec=FILE: weights as exact search cuts them; --write-spec=FILE writes that file\n";
  for (const std::string &reason : answer.weights)
    text += reason + "\n";
  return text;
}

std::string answerJson(const Answer &answer) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, 2);
  auto plan = [&](const Ranked &ranked) {
    json.attribute("flags", flagsOf(answer, ranked));
    json.attribute("seconds", ranked.seconds);
    json.attribute("memory", ranked.memory);
    json.attribute("fullest_stage", ranked.fullestStage);
    json.attribute("received", ranked.received);
    json.attribute("exposed", ranked.exposed);
    json.attribute("idle", ranked.bubble);
    json.attribute("binds", ranked.binds());
    json.attribute("estimated", ranked.isEstimate);
  };
  json.object([&] {
    json.attribute("devices", answer.devices);
    json.attribute("machine", answer.machine);
    json.attribute("memory_limit", answer.memory);
    json.attribute("candidates", int64_t(answer.candidates));
    json.attribute("beyond_memory", int64_t(answer.tooLarge));
    json.attribute("estimated", int64_t(answer.estimated));
    json.attribute("compiled", int64_t(answer.compiled));
    json.attribute("refused", int64_t(answer.refused));
    json.attribute("least_seconds", answer.leastSeconds);
    json.attribute("seconds_at_peak", answer.atPeak);
    json.attributeArray("plans", [&] {
      for (const Ranked &ranked : answer.best)
        json.object([&] { plan(ranked); });
    });
    if (answer.memoryBinds)
      json.attributeObject("memory_binds", [&] {
        json.attribute("more", answer.memoryBinds->more);
        plan(answer.memoryBinds->faster);
      });
  });
  return text + "\n";
}

} // namespace hpc::search
