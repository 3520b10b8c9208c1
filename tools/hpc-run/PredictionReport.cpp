// Seconds in tables; ranks with equal numbers share a row.
#include "tools/hpc-run/PredictionReport.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/FormattedText.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/TextTable.h"
#include "tools/hpc-run/CountReport.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace hpc {

namespace {

std::string secondsText(double seconds) {
  const bool isShort = seconds < 0.01;
  return formattedText(isShort ? "%.4g ms" : "%.4g s", isShort ? 1e3 * seconds : seconds);
}
std::string percentText(double share) { return formattedText("%.1f%%", 100 * share); }
std::string millisecondsText(double seconds) { return formattedText("%.3f", 1e3 * seconds); }

double mean(const cost::Prediction &prediction, double (*of)(const cost::RankSeconds &)) {
  double sum = 0;
  for (const cost::RankSeconds &rank : prediction.ranks)
    sum += of(rank);
  return sum / double(prediction.ranks.size());
}

/// The memory of the fullest rank; of the first that takes more than the machine has, if there is one.
std::string memoryText(const plan::Plan &plan, const cost::Machine &machine) {
  const int64_t ranks = plan.ranksPerStage();
  int64_t most = 0;
  const std::vector<plan::MemoryFacts> memory = plan::staticFacts(plan).memory;
  for (size_t stage = 0; stage < memory.size(); ++stage) {
    const int64_t needed = memory[stage].total(), there = machine.memoryOf(int64_t(stage) * ranks, ranks);
    if (there > 0 && needed > there)
      return byteSizeText(needed) + " a rank of stage " + std::to_string(stage) + ", more than the machine's " + byteSizeText(there);
    most = std::max(most, needed);
  }
  return byteSizeText(most) + " of the fullest rank";
}

} // namespace

std::string describePrediction(const plan::Plan &plan, const cost::Machine &machine, const cost::Prediction &prediction) {
  using plan::TextTable;
  const plan::StepItems items = plan::itemsOf(plan);
  const double seconds = prediction.seconds > 0 ? prediction.seconds : 1;
  std::string text = planHeading(plan) + "; one step on " + machine.name + ", predicted and not run\n\n";
  text += "  step: " + secondsText(prediction.seconds);
  if (items.count > 0 && prediction.seconds > 0)
    text += ", " + formattedText("%.6g ", double(items.count) / prediction.seconds) + items.name + "/s";
  text += "\n  MFU: " + percentText(prediction.mfu) + " of the products' peak";
  if (prediction.repeatedFlops > 0)
    text += ", without the " + percentText(prediction.repeatedFlops / prediction.flops) + " of their operations that are computed again";
  text += "\n  bubble: " + percentText(prediction.bubble) + " of the ranks' time";
  const double exposed = mean(prediction, [](const cost::RankSeconds &rank) { return rank.exposed; });
  const double hidden = mean(prediction, [](const cost::RankSeconds &rank) { return rank.hidden(); });
  text += "\n  communication: " + percentText(exposed / seconds) + " of the step exposed, " + percentText(hidden / seconds) +
          " beside computation; all ranks together send " + formattedText("%.4g", prediction.bytesSent) + " bytes\n";
  text += "  memory: " + memoryText(plan, machine) + "\n";
  if (prediction.simulatedRanks < int64_t(prediction.ranks.size()))
    text += "  " + std::to_string(prediction.simulatedRanks) + " ranks were simulated: the others do the same at the same times\n";
  text += "  not predicted: energy, reading of inputs, checkpoints\n";
  TextTable ranks({"ranks", "computing ms", "exposed", "idle", "hidden"});
  for (size_t rank = 0; rank < prediction.ranks.size(); ++rank) {
    const cost::RankSeconds &one = prediction.ranks[rank];
    ranks.addFor(int64_t(rank), {millisecondsText(one.computing), millisecondsText(one.exposed), millisecondsText(one.idle), millisecondsText(one.hidden())});
  }
  TextTable path({"critical path", "ms", "share"});
  for (const cost::PathPart &part : prediction.path)
    path.add({part.what, millisecondsText(part.seconds), percentText(part.seconds / seconds)});
  text += "\n" + ranks.text() + "\n" + path.text();
  if (prediction.transfers.empty())
    return text;
  TextTable transfers({"transfers of a rank", "under way ms", "exposed", "beside computation"});
  for (const cost::TransferTime &each : prediction.transfers)
    transfers.add({each.what, millisecondsText(each.seconds), millisecondsText(each.exposed), percentText(std::max(0.0, 1 - each.exposed / each.seconds))});
  return text + "\n" + transfers.text();
}

std::string predictionJson(const plan::Plan &plan, const cost::Machine &machine, const cost::Prediction &prediction) {
  using Json = nlohmann::ordered_json;
  const plan::StepItems items = plan::itemsOf(plan);
  Json json = {{"model", plan.model}, {"machine", machine.name}, {"ranks", plan.worldSize()}, {"seconds", prediction.seconds}, {"items", items.name}};
  if (prediction.seconds > 0)
    json["items_per_s"] = double(items.count) / prediction.seconds;
  json["mfu"] = prediction.mfu;
  json["bubble"] = prediction.bubble;
  const plan::PredictedStep figures = cost::figuresOf(plan, machine, prediction);
  json["exposed"] = figures.exposed;
  json["memory"] = figures.memory;
  json["binds"] = figures.binds;
  json["flops"] = prediction.flops;
  json["repeated_flops"] = prediction.repeatedFlops;
  json["bytes_sent"] = prediction.bytesSent;
  json["simulated_ranks"] = prediction.simulatedRanks;
  json["by_rank"] = Json::array();
  for (const cost::RankSeconds &rank : prediction.ranks)
    json["by_rank"].push_back({{"computing", rank.computing}, {"communicating", rank.communicating}, {"exposed", rank.exposed}, {"idle", rank.idle}});
  json["critical_path"] = Json::array();
  for (const cost::PathPart &part : prediction.path)
    json["critical_path"].push_back({{"what", part.what}, {"seconds", part.seconds}});
  json["transfers"] = Json::array();
  for (const cost::TransferTime &each : prediction.transfers)
    json["transfers"].push_back({{"what", each.what}, {"seconds", each.seconds}, {"exposed", each.exposed}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; // a model's name need not be UTF-8
}

Trace predictedTrace(const plan::Plan &plan, const std::vector<cost::ObservedRun> &runs, size_t mostEvents) {
  Trace trace(plan, /*isMeasured=*/false);
  if (runs.size() <= mostEvents) {
    for (const cost::ObservedRun &run : runs)
      trace.add(run.rank, run.step, run.instruction, run.start, run.end, run.kind == cost::RunKind::Transfers);
    return trace;
  }
  struct Program {
    int32_t step = -1;
    double start = 0, end = 0;
  };
  std::map<int64_t, Program> open; // by rank
  auto close = [&](int64_t rank, const Program &program) {
    if (program.step >= 0)
      trace.add(rank, program.step, -1, program.start, program.end, false);
  };
  for (const cost::ObservedRun &run : runs) {
    if (run.kind == cost::RunKind::Transfers)
      continue;
    Program &program = open[run.rank];
    if (program.step != run.step) {
      close(run.rank, program);
      program = {run.step, run.start, run.end};
    }
    program.end = run.end;
  }
  for (const auto &[rank, program] : open)
    close(rank, program);
  return trace;
}

} // namespace hpc
