// The output of hpc-run --backend=null: per rank, or for all ranks that do the same, the computation, memory and
// traffic of one step.
#pragma once

#include "runtime/backend/null/Counts.h"

#include <string>

namespace hpc {

/// "gpt2: 4 ranks = 2 stages x dp=2, 2 micro-batches"
std::string planHeading(const plan::Plan &plan);

/// Three tables: work, memory by lifetime, traffic. Rows are sets of ranks with equal numbers; the last row of work and
/// traffic sums over all ranks.
std::string describeCounts(const plan::Plan &plan, const std::vector<null::Counts> &counts);

} // namespace hpc
