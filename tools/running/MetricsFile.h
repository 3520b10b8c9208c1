// The metrics of a run that continues from a checkpoint: the file keeps the lines of earlier steps, so that each step
// is in it once.
#pragma once

#include "runtime/base/LineFile.h"

namespace hpc {

/// Opens `path` to add the line of step `steps` next. Removes lines of that step and later ones, which the run repeats,
/// and an incomplete last line; reports that, and missing steps, on standard error. Creates the file if it does not
/// exist. Errors: a line that is not from hpc-run --metrics, in which case the file stays as it is.
Expected<LineFile> continueMetrics(const std::string &path, int64_t steps);

} // namespace hpc
