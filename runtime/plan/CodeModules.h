// The code of a plan for one kind of device.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// The modules of a target, in their order.
std::vector<const CodeModule *> codeFor(const Plan &plan, const std::string &target);

/// The same, to run the plan; none where it calls no kernel. Errors: Unsupported, the plan has kernels and no code of this target;
/// `flags` is what hpc-opt would want to make it.
Expected<std::vector<const CodeModule *>> codeToRun(const Plan &plan, const std::string &target, const std::string &flags);

} // namespace hpc::plan
