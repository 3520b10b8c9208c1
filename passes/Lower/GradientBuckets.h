// All-reduces whose results only the update reads: joined into buckets, and posted as soon as their sums are there.
#pragma once

#include "passes/Lower/Lower.h"

namespace hpc {

/// Of the all-reduces that the update of `stage` waits for (gradients over dp, sums of the loss), those over the same
/// ranks, of one dtype and reduction become one collective of at most `limit` bytes; a larger one stays alone. It works
/// in place, on one buffer that all its terms lie in, each on a boundary of 64 bytes; is posted behind the last
/// instruction that writes a term, in the last micro-batch; and is waited for before the first that reads a sum. What
/// serves outputs on request follows the wait. Nothing else changes places. Values that are compared are noted where
/// they lie then. All schedules are bound, outputs on request are marked. Source: PyTorch's DistributedDataParallel
/// (Li et al., VLDB 2020, section 3.2).
void bucketGradients(plan::Plan &plan, int64_t stage, std::vector<LoweredValue> &values, int64_t limit = 25 << 20);

} // namespace hpc
