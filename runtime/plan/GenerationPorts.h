// The names of a generation step's ports: phase generate of the compiler gives them, the loop fills and reads them.
#pragma once

namespace hpc::plan {

/// Inputs that the loop fills before each step (Port::isStepScalar), i64: the first position of the step, and the row of the step
/// whose logits are the result (without it: the only one).
constexpr const char *positionName = "position", *rowName = "row";
/// States are "cache/0", "cache/1", ...: keys and values of attention in the order of the ops.
constexpr const char *cachePrefix = "cache/";

} // namespace hpc::plan
