// Weights that only products read.
#pragma once

#include "runtime/plan/Plan.h"

namespace hpc {

/// Marks operands as packed (plan::Operand): the B of products, where it is a weight that no program writes, and everything
/// that reads it is a product whose B is all of it, stored the same way.
void markPacked(const plan::Plan &plan, plan::Stage &stage);

} // namespace hpc
