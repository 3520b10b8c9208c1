// Finds instructions that only outputs on request need. Only temporaries count: a longer-lived buffer may be read anywhere.
#include "passes/Lower/StageLowering.h"
#include "runtime/plan/Access.h"

namespace hpc {

using plan::Gemm, plan::Instruction, plan::Kernel, plan::Lifetime, plan::Program;

/// Whether an instruction may be skipped alone: it stays on the rank.
static bool canSkip(const plan::Action &action) {
  return std::holds_alternative<Gemm>(action) || std::holds_alternative<Kernel>(action) ||
         std::holds_alternative<plan::Copy>(action);
}

void markRequested(const plan::Plan &plan, plan::Stage &stage) {
  for (Program &program : stage.programs) {
    if (llvm::none_of(program.instructions, [](const Instruction &instruction) { return instruction.onRequest; }))
      continue;
    // From the end: an instruction serves requests alone where all that it writes is read by such instructions only.
    llvm::DenseSet<int32_t> needed;
    for (Instruction &instruction : llvm::reverse(program.instructions)) {
      std::vector<plan::BufferAccess> accesses = accessesOf(plan, instruction);
      bool writes = false, serves = false;
      for (const plan::BufferAccess &access : accesses)
        if (access.write) {
          writes = true;
          serves |= stage.buffers[size_t(access.ref.buffer)].lifetime != Lifetime::Program ||
                    needed.contains(access.ref.buffer);
        }
      instruction.onRequest |= canSkip(instruction.action) && writes && !serves;
      if (!instruction.onRequest)
        for (const plan::BufferAccess &access : accesses)
          if (!access.write)
            needed.insert(access.ref.buffer);
    }
  }
}

} // namespace hpc
