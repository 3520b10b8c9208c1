// --explain: every collective and transfer of a plan, and why it is there.
#pragma once

#include "runtime/plan/PlanFacts.h"

namespace hpc {

/// One line a collective or transfer: kind, axis, bytes, times a step, ONNX node, cause, what would avoid it; then the
/// totals and the memory.
std::string explain(const plan::Plan &plan, const plan::PlanFacts &facts);

} // namespace hpc
