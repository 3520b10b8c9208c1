// Finds instructions that only outputs on request need. Only temporaries count: a longer-lived buffer may be read anywhere.
#include "passes/Schedule/Rewrites.h"
#include "runtime/plan/Access.h"

#include <algorithm>
#include <set>

namespace hpc {

using plan::Gemm, plan::Instruction, plan::Kernel, plan::Lifetime, plan::Program;

/// Whether an instruction may be skipped alone: it stays on the rank.
static bool canSkip(const plan::Action &action) {
  return std::holds_alternative<Gemm>(action) || std::holds_alternative<Kernel>(action) ||
         std::holds_alternative<plan::Copy>(action);
}

void markRequested(plan::Plan &plan, int64_t stageIndex, std::vector<NotedValue> &) {
  plan::Stage &stage = plan.stages[size_t(stageIndex)];
  for (Program &program : stage.programs) {
    std::vector<Instruction> &instructions = program.instructions;
    if (std::none_of(instructions.begin(), instructions.end(), [](const Instruction &each) { return each.onRequest; }))
      continue;
    // From the end: an instruction serves requests alone where all that it writes is read by such instructions only.
    std::set<int32_t> needed;
    for (auto instruction = instructions.rbegin(); instruction != instructions.rend(); ++instruction) {
      const std::vector<plan::BufferAccess> accesses = accessesOf(plan, *instruction);
      bool writes = false, serves = false;
      for (const plan::BufferAccess &access : accesses)
        if (access.write) {
          writes = true;
          serves |= stage.buffers[size_t(access.ref.buffer)].lifetime != Lifetime::Program || needed.count(access.ref.buffer);
        }
      instruction->onRequest |= canSkip(instruction->action) && writes && !serves;
      if (!instruction->onRequest)
        for (const plan::BufferAccess &access : accesses)
          if (!access.write)
            needed.insert(access.ref.buffer);
    }
  }
}

} // namespace hpc
