// What --pp-schedule says: nothing, the name of a schedule, or the path of a user's file.
#pragma once

#include "passes/Stage/StepParts.h"
#include "runtime/plan/ScheduleKinds.h"

namespace hpc {

/// A '/' or '.' makes it a path.
bool isScheduleFile(const std::string &text);
/// Errors: io, and what is no schedule.
Expected<plan::PipelineSchedule> readScheduleFile(const std::string &path);
Expected<plan::ScheduleKind> parseScheduleName(const std::string &text);

/// Which programs the schedule runs. With several parts there is a backward one whatever it says: gradients go the other
/// way. Errors as above.
Expected<BackwardPrograms> backwardPrograms(const std::string &text, size_t parts);

} // namespace hpc
