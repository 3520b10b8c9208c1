// The phase between lower and place: rewrites of the plan that decide when something is done and what is done as one.
// They know the plan alone, and what an instruction touches from Access.h alone.
#pragma once

#include "passes/NotedValue.h"
#include "runtime/base/Status.h"

#include <functional>

namespace hpc {

/// Called with the plan as lower made it, and after each rewrite; buffers have no offsets yet.
using RewriteCheck = std::function<Status(const plan::Plan &)>;

/// Runs all rewrites of Rewrites.h in their order. Errors are those of `check`, with the name of the rewrite.
Status schedulePlan(plan::Plan &plan, std::vector<NotedValue> &values, const RewriteCheck &check = {});

} // namespace hpc
