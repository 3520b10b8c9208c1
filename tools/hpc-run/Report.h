// The output of hpc-run: a few statistics of each output, or the one JSON line of --repeat.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace hpc {

/// "logits: 2x16x257 of f32, min -3.1, max 4.2, mean 0.02, no NaN, first 0.5 0.25 ..."
std::string describeOutput(const std::string &name, const Array &array);

/// {"min_ms": ..., "median_ms": ..., "peak_bytes_per_rank": ..., "runs": ...}
std::string timingLine(std::vector<double> milliseconds, int64_t peakBytesPerRank);

} // namespace hpc
