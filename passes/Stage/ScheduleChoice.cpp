// Names and files.
#include "passes/Stage/ScheduleChoice.h"

#include "runtime/base/File.h"

namespace hpc {

bool isScheduleFile(const std::string &text) { return text.find_first_of("/.") != std::string::npos; }

Expected<plan::PipelineSchedule> readScheduleFile(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  Expected<plan::PipelineSchedule> schedule = plan::parseScheduleFile(std::string(file->text()));
  if (schedule.ok())
    return schedule;
  return Status::error(ErrorKind::Usage, schedule.status().message()); // the user named the file by a flag
}

Expected<plan::ScheduleKind> parseScheduleName(const std::string &text) {
  Expected<plan::ScheduleKind> named = plan::parseScheduleKind(text);
  if (!named.ok())
    return Status::error(ErrorKind::Usage, named.status().message() + ", and files (./my-schedule.txt)");
  return named;
}

static bool runs(const plan::PipelineSchedule &schedule, plan::ProgramKind kind) {
  return llvm::any_of(schedule, [&](const plan::StageSchedule &stage) {
    return llvm::any_of(stage, [&](const plan::ScheduleAction &action) { return action.kind == kind; });
  });
}

Expected<BackwardPrograms> backwardPrograms(const std::string &text, size_t parts) {
  BackwardPrograms least = parts > 1 ? BackwardPrograms::Joined : BackwardPrograms::None;
  if (text.empty())
    return least;
  if (isScheduleFile(text)) {
    Expected<plan::PipelineSchedule> schedule = readScheduleFile(text);
    if (!schedule.ok())
      return schedule.status();
    if (runs(*schedule, plan::ProgramKind::WeightGradient))
      return BackwardPrograms::Apart;
    return runs(*schedule, plan::ProgramKind::Backward) ? BackwardPrograms::Joined : least;
  }
  Expected<plan::ScheduleKind> kind = parseScheduleName(text);
  if (!kind.ok())
    return kind.status();
  switch (*kind) {
  case plan::ScheduleKind::Inference:
    return least;
  case plan::ScheduleKind::ZeroBubbleH1:
    return BackwardPrograms::Apart;
  default:
    return BackwardPrograms::Joined;
  }
}

} // namespace hpc
