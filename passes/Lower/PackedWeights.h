// Weights that only products read.
#pragma once

#include "passes/Lower/Lower.h"

namespace hpc {

/// Marks operands as packed (plan::Operand): the B of products, where it is a weight that no program writes, and everything
/// that reads it is a product whose B is all of it, stored the same way. Values that lie in such a buffer (a weight seen in
/// another shape) are not compared any more, since it may hold another form of them while the plan runs.
void markPacked(plan::Plan &plan, int64_t stage, std::vector<LoweredValue> &values);

} // namespace hpc
