// Steps may be faster than a terminal, so the line is drawn at most ten times a second.
#include "runtime/train/observers/ProgressLine.h"

#include "runtime/base/FormattedText.h"
#include "runtime/base/NumberText.h"
#include "runtime/train/observers/StepLines.h"

#include <algorithm>

namespace hpc {

static constexpr std::chrono::milliseconds betweenDrawings{100};

/// "1:02:03".
static std::string durationText(double seconds) {
  const long all = long(std::min(seconds + 0.5, 1e15));
  return formattedText("%ld:%02ld:%02ld", all / 3600, all / 60 % 60, all % 60);
}

Status ProgressLine::started(const RunState &state) {
  begin = terminal.now();
  lastDrawn = begin - betweenDrawings;
  first = state.steps;
  return Status::success();
}

void ProgressLine::clear() {
  if (isDrawn)
    terminal.print("\r\x1b[K");
  isDrawn = false;
}

void ProgressLine::line(const std::string &text) {
  clear();
  terminal.print(text + "\n");
}

Status ProgressLine::stepped(const StepReport &report, const RunState &state) {
  meter.add(report);
  if (report.ended)
    line(epochText(*report.ended));
  const auto now = terminal.now();
  if (now - lastDrawn < betweenDrawings && report.step + 1 < facts.steps)
    return Status::success();
  lastDrawn = now;
  const double done = double(state.steps - first), left = double(facts.steps - state.steps);
  const double seconds = std::chrono::duration<double>(now - begin).count();
  const std::string before = formattedText("step %ld/%ld", long(state.steps), long(facts.steps));
  const std::string after = formattedText("loss %.4f, %.0f ", printed(report.loss), meter.itemsPerSecond(facts)) + facts.item + "/s, ETA " +
                            durationText(seconds / done * left);
  const int64_t columns = terminal.columns() > 0 ? terminal.columns() : 80;
  const int64_t width = std::min<int64_t>(columns - int64_t(before.size() + after.size()) - 5, 30);
  std::string bar;
  if (width >= 5) {
    const auto full = size_t(double(width) * double(state.steps) / double(facts.steps));
    bar = "[" + std::string(full, '#') + std::string(size_t(width) - full, ' ') + "] ";
    if (terminal.hasColour)
      bar = "\x1b[32m" + bar + "\x1b[0m";
  }
  const std::string text = bar.empty() ? (before + " " + after).substr(0, size_t(std::max<int64_t>(columns - 1, 1))) : before + " " + bar + after;
  terminal.print("\r\x1b[K" + text);
  isDrawn = true;
  return Status::success();
}

Status ProgressLine::evaluated(const EvaluationReport &report, int64_t step) {
  line(evaluationText(report, step));
  return Status::success();
}

Status ProgressLine::ended(const RunState &state) {
  if (isDrawn)
    terminal.print("\n");
  isDrawn = false;
  return Status::success();
}

Status ProgressLine::saved(const SaveReport &report) {
  line(savedText(report));
  return Status::success();
}

} // namespace hpc
