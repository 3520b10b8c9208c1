// The value of --pp-schedule: nothing, the name of a schedule, or the path of a user's file.
#pragma once

#include "passes/Stage/StepParts.h"
#include "runtime/plan/ScheduleKinds.h"

namespace hpc {

/// A '/' or '.' makes it a path.
bool isScheduleFile(const std::string &text);
/// Errors: io (the file cannot be read), usage (its text or the name is no schedule).
Expected<plan::PipelineSchedule> readScheduleFile(const std::string &path);
Expected<plan::ScheduleKind> parseScheduleName(const std::string &text);

/// Which programs the schedule runs. With several parts there is always a backward program, since gradients travel the
/// other way. Errors as above.
Expected<BackwardPrograms> backwardPrograms(const std::string &text, size_t parts);

} // namespace hpc
