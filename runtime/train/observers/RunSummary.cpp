// The largest resident size is the kernel's own count.
#include "runtime/train/observers/RunSummary.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/CountText.h"
#include "runtime/base/FormattedText.h"
#include "runtime/plan/PlanFacts.h"

#include <sys/resource.h>

namespace hpc {

std::vector<std::string> memoryLines(const plan::Plan &plan) {
  std::vector<std::string> lines;
  const std::vector<plan::MemoryFacts> memory = plan::staticFacts(plan).memory;
  auto textOf = [](const plan::MemoryFacts &bytes) {
    std::string text = byteSizeText(bytes.total()) + " (weights " + byteSizeText(bytes.weight) + ", states " + byteSizeText(bytes.state) +
                       ", the step's own " + byteSizeText(bytes.step + bytes.slot + bytes.temp) + ")";
    return bytes.host > 0 ? text + " and " + byteSizeText(bytes.host) + " on the host" : text;
  };
  for (size_t begin = 0, end = 0; begin < memory.size(); begin = end) {
    const std::string text = textOf(memory[begin]);
    for (end = begin + 1; end < memory.size() && textOf(memory[end]) == text;)
      ++end;
    const int64_t first = int64_t(begin) * plan.ranksPerStage(), last = int64_t(end) * plan.ranksPerStage() - 1;
    lines.push_back("memory of " + (first == last ? "rank " + std::to_string(first) : "each of ranks " + std::to_string(first) + "-" + std::to_string(last)) + ": " + text);
  }
  return lines;
}

Status RunSummary::started(const RunState &state) {
  first = state.steps;
  for (const std::string &text : memoryLines(*plan))
    line(text);
  return Status::success();
}

Status RunSummary::stepped(const StepReport &report, const RunState &state) {
  meter.add(report);
  return Status::success();
}

Status RunSummary::evaluated(const EvaluationReport &report, int64_t step) {
  ++evaluations;
  evaluating += report.milliseconds / 1000;
  return Status::success();
}

Status RunSummary::saved(const SaveReport &report) {
  ++saves;
  saving += report.stopped;
  return Status::success();
}

Status RunSummary::ended(const RunState &state) {
  const int64_t steps = state.steps - first;
  if (steps == 0)
    return Status::success();
  const double all = meter.secondsOfStep() * double(steps), reader = meter.secondsOfReader() * double(steps);
  std::string text = countText(steps, "step") + formattedText(" in %.3g s, of which %.3g s waiting for data", all, reader);
  if (evaluations > 0)
    text += ", " + countText(evaluations, "evaluation") + formattedText(" in %.3g s", evaluating);
  if (saves > 0)
    text += ", " + countText(saves, "save") + formattedText(" that stopped it for %.3g s", saving);
  text += formattedText("; %.0f ", meter.itemsPerSecond(facts)) + facts.item + "/s";
  if (std::optional<double> utilisation = meter.utilisation(facts))
    text += formattedText(", MFU %.1f%%", 100 * *utilisation);
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  line(text + "; this process held at most " + byteSizeText(int64_t(usage.ru_maxrss) * 1024));
  return Status::success();
}

} // namespace hpc
