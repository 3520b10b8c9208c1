// The text form of schedules, and their binding to a stage's programs.
#include "runtime/plan/Schedule.h"
#include "runtime/plan/PlanFault.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace hpc::plan {

namespace {

struct KindText {
  ProgramKind kind;
  const char *text;
};
/// No text is the beginning of another, so that the first that fits is the one.
constexpr KindText kindTexts[] = {
    {ProgramKind::Forward, "F"}, {ProgramKind::Backward, "B"},       {ProgramKind::WeightGradient, "W"},
    {ProgramKind::Update, "U"},  {ProgramKind::Receive, "RF"},       {ProgramKind::ReceiveGradient, "RB"},
    {ProgramKind::Drain, "DF"},  {ProgramKind::DrainGradient, "DB"},
};

/// Reads digits at `at` and moves behind them; -1 where there are none or too many.
int32_t readNumber(const std::string &word, size_t &at) {
  size_t begin = at;
  while (at < word.size() && std::isdigit(static_cast<unsigned char>(word[at])))
    ++at;
  return at == begin || at - begin > 6 ? -1 : int32_t(std::stol(word.substr(begin, at - begin)));
}

Expected<ScheduleAction> parseAction(const std::string &word) {
  for (const KindText &known : kindTexts) {
    size_t at = std::string(known.text).size();
    if (word.compare(0, at, known.text) != 0)
      continue;
    ScheduleAction action;
    action.kind = known.kind;
    if (isPerStep(known.kind)) {
      if (at == word.size())
        return action;
      return fault("schedule: '" + word + "': " + known.text + " runs once a step and has no number");
    }
    action.microBatch = readNumber(word, at);
    if (action.microBatch >= 0 && at < word.size() && word[at] == '.')
      action.chunk = readNumber(word, ++at);
    if (action.microBatch >= 0 && action.chunk >= 0 && at == word.size())
      return action;
    return fault("schedule: '" + word + "' needs a micro-batch and may have a chunk, as " + known.text + "0 and " +
                 known.text + "0.1");
  }
  return fault("schedule: '" + word +
               "' is no action; write F, B or W with a micro-batch (F0, or F0.1 for chunk 1), U, and, where receives "
               "and drains are written too, RF, DF, RB, DB");
}

} // namespace

bool computes(ProgramKind kind) {
  return kind == ProgramKind::Forward || kind == ProgramKind::Backward || kind == ProgramKind::WeightGradient ||
         kind == ProgramKind::Update;
}

ProgramKind receiveOf(ProgramKind kind) {
  return kind == ProgramKind::Forward ? ProgramKind::Receive : ProgramKind::ReceiveGradient;
}
ProgramKind drainOf(ProgramKind kind) {
  return kind == ProgramKind::Forward ? ProgramKind::Drain : ProgramKind::DrainGradient;
}

std::string kindText(ProgramKind kind) {
  for (const KindText &known : kindTexts)
    if (known.kind == kind)
      return known.text;
  return "?";
}

std::string actionText(const ScheduleAction &action) {
  if (isPerStep(action.kind))
    return kindText(action.kind);
  std::string chunk = action.chunk ? "." + std::to_string(action.chunk) : "";
  return kindText(action.kind) + std::to_string(action.microBatch) + chunk;
}

std::string formatSchedule(const StageSchedule &schedule) {
  std::string text;
  for (const ScheduleAction &action : schedule)
    text += (text.empty() ? "" : " ") + actionText(action);
  return text;
}

Expected<StageSchedule> parseSchedule(const std::string &text) {
  StageSchedule schedule;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    Expected<ScheduleAction> action = parseAction(word);
    if (!action.ok())
      return action.status();
    schedule.push_back(*action);
  }
  return schedule;
}

Expected<PipelineSchedule> parseScheduleFile(const std::string &text) {
  PipelineSchedule stages;
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    Expected<StageSchedule> stage = parseSchedule(line);
    if (!stage.ok())
      return stage.status().at("line " + std::to_string(number));
    stages.push_back(std::move(*stage));
  }
  return stages;
}

Expected<std::vector<ScheduleStep>> bindSchedule(const StageSchedule &schedule, const std::vector<Program> &programs) {
  std::vector<ScheduleStep> steps;
  for (const ScheduleAction &action : schedule) {
    auto program = std::find_if(programs.begin(), programs.end(),
                                [&](const Program &p) { return p.kind == action.kind && p.chunk == action.chunk; });
    if (program == programs.end())
      return fault("schedule: " + actionText(action) + ": the stage has no such program");
    steps.push_back({int32_t(program - programs.begin()), action.microBatch});
  }
  return steps;
}

StageSchedule scheduleOf(const Stage &stage) {
  StageSchedule schedule;
  for (const ScheduleStep &step : stage.schedule)
    schedule.push_back({stage.programs[step.program].kind, step.microBatch, stage.programs[step.program].chunk});
  return schedule;
}

} // namespace hpc::plan
