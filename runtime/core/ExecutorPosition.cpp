// Says in words which instruction of its step a rank is at. Only the plan and three atomics are read, so the rank goes on meanwhile.
#include "runtime/core/Executor.h"

#include "runtime/plan/Groups.h"
#include "runtime/plan/PlanNames.h"

#include <ctime>

namespace hpc {

const plan::Instruction *Executor::instructionAt(uint64_t place) const {
  const uint32_t instruction = uint32_t(place);
  if (place == nowhere || instruction == BringingOutputs || instruction == AwaitingDevice)
    return nullptr;
  return &stage.programs[size_t(stage.schedule[size_t(place >> 32)].program)].instructions[instruction];
}

static bool waitsForRanks(const plan::Action &action) {
  const auto *collective = std::get_if<plan::Collective>(&action);
  return std::holds_alternative<plan::Wait>(action) || (collective && collective->request < 0);
}

bool Executor::waitsForDevice() const {
  const uint64_t place = here.load(std::memory_order_relaxed);
  return place != nowhere && uint32_t(place) == AwaitingDevice && !device.worksInHostMemory();
}

uint64_t Executor::progress() const {
  constexpr long unit = 100'000'000; // ns: ten readings a second are enough
  const uint64_t place = here.load(std::memory_order_relaxed);
  uint64_t used = 0;
  if (const plan::Instruction *instruction = instructionAt(place); instruction && !waitsForRanks(instruction->action))
    if (timespec time{}; cpuClock >= 0 && ::clock_gettime(cpuClock, &time) == 0)
      used = uint64_t(time.tv_sec) * 10 + uint64_t(time.tv_nsec / unit);
  return ((runs.load(std::memory_order_relaxed) * 0x9e3779b97f4a7c15u) ^ place) * 0x9e3779b97f4a7c15u + used;
}

/// "all_reduce over tp with ranks 0 and 1"
std::string Executor::groupText(const plan::Collective &collective) const {
  constexpr size_t most = 8;
  std::string axes, ranks;
  for (const std::string &axis : collective.axes)
    axes += (axes.empty() ? " over " : ", ") + axis;
  const int64_t group = plan::seatOf(plan.axes, place.coordinate, collective.axes).group;
  size_t count = 0;
  for (int64_t coordinate = 0; coordinate < ranksPerStage; ++coordinate)
    if (coordinate != place.coordinate && plan::seatOf(plan.axes, coordinate, collective.axes).group == group && ++count <= most)
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(place.stage * ranksPerStage + coordinate);
  return plan::name(collective.kind) + axes + " with rank" + (count == 1 ? " " : "s ") + ranks + (count > most ? ", ..." : "");
}

std::string Executor::waitText(const plan::Action &action, int64_t microBatch) const {
  if (const auto *collective = std::get_if<plan::Collective>(&action))
    return ": " + groupText(*collective);
  const int32_t request = std::get<plan::Wait>(action).request;
  for (const plan::Program &program : stage.programs)
    for (const plan::Instruction &instruction : program.instructions) {
      if (const auto *recv = std::get_if<plan::Recv>(&instruction.action); recv && recv->request == request)
        return ": a message from rank " + std::to_string(at(microBatch)(recv->peer));
      if (const auto *send = std::get_if<plan::Send>(&instruction.action); send && send->request == request)
        return ": a message to rank " + std::to_string(at(microBatch)(send->peer));
      if (const auto *posted = std::get_if<plan::Collective>(&instruction.action); posted && posted->request == request)
        return ": " + groupText(*posted);
    }
  return "";
}

RankPosition Executor::position() const {
  const uint64_t now = here.load(std::memory_order_relaxed);
  const plan::Instruction *instruction = instructionAt(now);
  if (!instruction) {
    const bool isBringing = uint32_t(now) == BringingOutputs && now != nowhere;
    return {place.rank, isBringing || now == nowhere, now == nowhere ? "its part is done" : isBringing ? "outputs to rank 0" : "its device"};
  }
  const plan::ScheduleStep &step = stage.schedule[size_t(now >> 32)];
  const bool waits = waitsForRanks(instruction->action);
  return {place.rank, waits,
          "'" + programText(stage.programs[size_t(step.program)]) + "' of micro-batch " + std::to_string(step.microBatch) + ", instruction " +
              std::to_string(uint32_t(now)) + " (" + plan::actionName(instruction->action) + " of node '" + instruction->node + "')" +
              (waits ? waitText(instruction->action, step.microBatch) : "")};
}

} // namespace hpc
