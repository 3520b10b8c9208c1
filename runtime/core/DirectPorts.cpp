// From the list of what instructions touch alone: who writes a buffer, from where to where it is used.
#include "runtime/core/DirectPorts.h"

#include "runtime/base/Array.h"
#include "runtime/plan/Access.h"

#include <algorithm>
#include <limits>

namespace hpc {

namespace {

/// The uses of a buffer by the instructions of a stage.
struct Use {
  int64_t program = -1; ///< -1: none yet
  bool inSeveralPrograms = false;
  int64_t writes = 0, lastWrite = -1;
  int64_t end = 0; ///< of the bytes that are touched
  bool isTaken = false;
  bool travels = false; ///< other ranks, and a message engine behind a step that failed, may still be at it
};

bool isOfSeveralRanks(const plan::Instruction &instruction) {
  return std::holds_alternative<plan::Collective>(instruction.action) ||
         std::holds_alternative<plan::Send>(instruction.action) || std::holds_alternative<plan::Recv>(instruction.action);
}

std::vector<Use> usesOf(const plan::Plan &plan, const plan::Stage &stage) {
  std::vector<Use> uses(stage.buffers.size());
  for (size_t program = 0; program < stage.programs.size(); ++program)
    for (size_t i = 0; i < stage.programs[program].instructions.size(); ++i)
      for (const plan::BufferAccess &access : plan::accessesOf(plan, stage.programs[program].instructions[i])) {
        Use &use = uses[size_t(access.ref.buffer)];
        use.inSeveralPrograms |= use.program >= 0 && use.program != int64_t(program);
        use.program = int64_t(program);
        use.travels |= isOfSeveralRanks(stage.programs[program].instructions[i]);
        use.end = std::max(use.end, access.ref.byteOffset + access.bytes);
        if (access.write) {
          ++use.writes;
          use.lastWrite = int64_t(i);
        }
      }
  return uses;
}

} // namespace

std::vector<DirectPort> findDirectPorts(const plan::Plan &plan, const plan::Stage &stage, Place place,
                                        bool storesOutputs) {
  std::vector<DirectPort> found;
  if (plan.microBatches != 1)
    return found;
  std::vector<Use> uses = usesOf(plan, stage);
  std::vector<int64_t> runs(stage.programs.size());
  for (const plan::ScheduleStep &step : stage.schedule)
    ++runs[size_t(step.program)];
  auto isWhole = [&](const plan::Ref &ref, const plan::Slice &slice, const plan::Port &port) {
    const Use &use = uses[size_t(ref.buffer)];
    const plan::Buffer &buffer = stage.buffers[size_t(ref.buffer)];
    const std::optional<int64_t> bytes = checkedBytes(port.dtype, port.shape);
    return buffer.lifetime == plan::Lifetime::Program && buffer.slots == 1 && ref.byteOffset == 0 &&
           !use.inSeveralPrograms && !use.isTaken && !use.travels && runs[size_t(use.program)] == 1 && bytes && use.end <= *bytes &&
           SliceCopy(slice, byteSize(port.dtype), place).isWhole(*bytes);
  };
  for (size_t program = 0; program < stage.programs.size(); ++program)
    for (size_t i = 0; i < stage.programs[program].instructions.size(); ++i) {
      const plan::Instruction &instruction = stage.programs[program].instructions[i];
      if (!place(instruction.when) || instruction.onRequest)
        continue;
      auto take = [&](int32_t buffer, int32_t port, bool isOutput) {
        uses[size_t(buffer)].isTaken = true;
        found.push_back({int64_t(program), int64_t(i), buffer, port, isOutput});
      };
      if (const auto *load = std::get_if<plan::LoadInput>(&instruction.action)) {
        if (isWhole(load->dst, load->slice, plan.inputs[size_t(load->input)]) &&
            uses[size_t(load->dst.buffer)].writes == 1)
          take(load->dst.buffer, load->input, false);
      } else if (const auto *store = std::get_if<plan::StoreOutput>(&instruction.action)) {
        const plan::Port &port = plan.outputs[size_t(store->output)];
        if (storesOutputs && place(store->owner) && !port.onRequest && isWhole(store->src, store->slice, port) &&
            uses[size_t(store->src.buffer)].lastWrite < int64_t(i))
          take(store->src.buffer, store->output, true);
      }
    }
  return found;
}

} // namespace hpc
