// Collectives that run beside what is computed: posted as soon as their operands are there, waited for by who needs
// them.
#pragma once

#include "passes/Lower/Lower.h"

namespace hpc {

/// Each collective of `stage` that is not posted yet, and has products or kernels between what it needs and what needs
/// it, gets a request: the post goes up to behind the last instruction that touches its operands (a weight's
/// all-gather, to before the layers ahead of its own), the wait down to before the first that does (what puts a
/// gradient into its sum, or a gathered weight into its place, comes along). In a group of ranks no more than two of a
/// kind are under way beside the one that is waited for, as in PyTorch's FSDP (Zhao et al., VLDB 2023, section 3.4),
/// and buffers that live longer for it never make more bytes live at once than the stage's programs have anyway.
/// Nothing else changes places; values that are compared are noted where they are known then. Comes behind
/// `bucketGradients`; all schedules are bound, outputs on request are marked.
void overlapCollectives(plan::Plan &plan, int64_t stage, std::vector<LoweredValue> &values);

} // namespace hpc
