#include "runtime/plan/CodeModules.h"

namespace hpc::plan {

std::vector<const CodeModule *> codeFor(const Plan &plan, const std::string &target) {
  std::vector<const CodeModule *> modules;
  for (const CodeModule &module : plan.modules)
    if (module.target == target)
      modules.push_back(&module);
  return modules;
}

static bool callsKernels(const Plan &plan) {
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (std::holds_alternative<Kernel>(instruction.action))
          return true;
  return false;
}

Expected<std::vector<const CodeModule *>> codeToRun(const Plan &plan, const std::string &target, const std::string &flags) {
  std::vector<const CodeModule *> modules = codeFor(plan, target);
  if (!modules.empty() || !callsKernels(plan))
    return modules;
  if (plan.modules.empty())
    return Status::error(ErrorKind::Unsupported, "the plan has no code of its kernels, so it can be simulated (hpc-run --backend=null) and not run; compile the "
                                                 "model again without hpc-opt --no-code");
  return Status::error(ErrorKind::Unsupported, "the plan has code for '" + plan.modules[0].target + "' only, and this backend runs " + target +
                                                   "; compile the model again with hpc-opt " + flags);
}

} // namespace hpc::plan
