// The rewrites of a plan, a file each. All have one form: they change one stage of a plan whose schedules are bound, keep the id
// of each instruction that they move, and keep `values` true.
#pragma once

#include "passes/NotedValue.h"

namespace hpc {

/// Marks as on request what serves outputs on request alone (RequestedOutputs.cpp).
void markRequested(plan::Plan &plan, int64_t stage, std::vector<NotedValue> &values);

/// Marks operands as packed (plan::Operand): the B of products, where it is a weight that no program writes, and everything
/// that reads it is a product whose B is all of it, stored the same way (PackedWeights.cpp).
void markPacked(plan::Plan &plan, int64_t stage, std::vector<NotedValue> &values);

/// The all-reduces that the update waits for (gradients over dp, sums of the loss), over the same ranks, of one dtype and
/// reduction, become one collective of at most `limit` bytes; a larger one stays alone. It works in place, on one buffer that
/// all its terms lie in, each on a boundary of 64 bytes; is posted after the last instruction that writes a term, in the last
/// micro-batch; and is waited for before the first that reads a sum. What serves outputs on request follows the wait. Nothing
/// else changes places. Comes after `markRequested`. Source: PyTorch's DistributedDataParallel (Li et al., VLDB 2020, section
/// 3.2).
void bucketGradients(plan::Plan &plan, int64_t stage, std::vector<NotedValue> &values, int64_t limit = 25 << 20);

/// Each collective that is not posted yet, and has products or kernels between what it needs and what needs it, gets a request:
/// the post goes up to after the last instruction that touches its operands (a weight's all-gather, to before the layers ahead
/// of its own), the wait down to before the first that does (what puts a gradient into its sum, or a gathered weight into its
/// place, comes along). In a group of ranks no more than two of a kind are under way beside the one that is waited for, as in
/// PyTorch's FSDP (Zhao et al., VLDB 2023, section 3.4), and buffers that live longer for it never make more bytes live at once
/// than the stage's programs have anyway. Nothing else changes places. Comes after `bucketGradients`.
void overlapCollectives(plan::Plan &plan, int64_t stage, std::vector<NotedValue> &values);

} // namespace hpc
