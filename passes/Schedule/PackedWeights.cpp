// All readers of a buffer, over all programs of the stage: a device that rearranges it does so for all of them.
#include "passes/Schedule/Rewrites.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/Packing.h"

namespace hpc {

void markPacked(plan::Plan &plan, int64_t stageIndex, std::vector<NotedValue> &) {
  plan::Stage &stage = plan.stages[size_t(stageIndex)];
  std::vector<char> mayPack(stage.buffers.size(), 0);
  for (const plan::Binding &binding : stage.bindings)
    mayPack[size_t(binding.buffer)] = plan::storedTensorOf(binding).has_value() && binding.saved.empty();
  std::vector<const plan::Gemm *> first(stage.buffers.size(), nullptr); // that reads a buffer
  for (const plan::Program &program : stage.programs)
    for (const plan::Instruction &instruction : program.instructions) {
      const auto *gemm = std::get_if<plan::Gemm>(&instruction.action);
      for (const plan::BufferAccess &access : accessesOf(plan, instruction)) {
        const size_t buffer = size_t(access.ref.buffer);
        if (!mayPack[buffer])
          continue;
        const bool isWhole = gemm && access.operand == plan::packableNumber(*gemm) && plan::canPack(plan, stage, *gemm);
        if (isWhole && !first[buffer])
          first[buffer] = gemm;
        mayPack[buffer] = isWhole && plan::packsAlike(*first[buffer], *gemm);
      }
    }
  for (plan::Program &program : stage.programs)
    for (plan::Instruction &instruction : program.instructions)
      if (auto *gemm = std::get_if<plan::Gemm>(&instruction.action))
        plan::packable(*gemm).packed = mayPack[size_t(plan::packable(*gemm).place.buffer)];
}

} // namespace hpc
