// What a plan's products of windows (Operand::windows) may be.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// Of a product whose B is windows: every number is in its range, and the extents lie inside the matrix. Needs tables that
/// checkStructure has passed.
Status checkWindows(const Plan &plan, const Gemm &gemm);

} // namespace hpc::plan
