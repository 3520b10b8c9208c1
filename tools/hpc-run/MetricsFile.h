// The metrics of a run that goes on from a checkpoint: the file keeps the lines of the steps before, so that each step is in
// it once.
#pragma once

#include "runtime/base/LineFile.h"

namespace hpc {

/// Opens `path` to add the line of step `steps` next. Lines of that step and later ones, which the run does again, and half a
/// line at the end are taken away; that, and steps that are missing, is told on standard error. A file that is not there is
/// made. Errors: a line that is none of hpc-run --metrics, in which case the file stays as it is.
Expected<LineFile> continueMetrics(const std::string &path, int64_t steps);

} // namespace hpc
