// The code of a plan for one kind of device.
#pragma once

#include "runtime/plan/Plan.h"

namespace hpc::plan {

/// The modules of a target, in their order.
inline std::vector<const CodeModule *> codeFor(const Plan &plan, const std::string &target) {
  std::vector<const CodeModule *> modules;
  for (const CodeModule &module : plan.modules)
    if (module.target == target)
      modules.push_back(&module);
  return modules;
}

} // namespace hpc::plan
