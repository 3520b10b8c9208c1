// One walk over a program's accesses.
#include "runtime/plan/Liveness.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hpc::plan {

namespace {

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

/// A post that no Wait has completed yet.
struct Flight {
  int32_t buffer, instruction;
};

} // namespace

Expected<std::vector<LiveRange>> liveRanges(const Plan &plan, int64_t stageIndex, int64_t programIndex) {
  const Stage &stage = plan.stages[stageIndex];
  const std::vector<Instruction> &instructions = stage.programs[programIndex].instructions;
  std::map<int32_t, LiveRange> ranges;
  std::map<int32_t, std::vector<Flight>> flights; // by request
  auto isTemp = [&](int32_t buffer) { return stage.buffers[buffer].memory == MemoryClass::Temp; };

  for (int32_t i = 0; i < int32_t(instructions.size()); ++i) {
    const Action &action = instructions[i].action;
    for (const Access &access : accessesOf(plan, instructions[i])) {
      int32_t buffer = access.ref.buffer;
      if (access.bytes == 0 || !isTemp(buffer))
        continue;
      auto known = ranges.find(buffer);
      if (known == ranges.end() && !access.write)
        return fault(instructionText(plan, stageIndex, programIndex, i) + ": reads " + bufferText(stage, buffer) +
                     " (" + access.role + ") before any instruction of the program wrote to it");
      if (known == ranges.end())
        ranges[buffer] = {buffer, i, i};
      else
        known->second.last = i;
      if (const auto *send = std::get_if<Send>(&action))
        flights[send->request].push_back({buffer, i});
      if (const auto *recv = std::get_if<Recv>(&action))
        flights[recv->request].push_back({buffer, i});
    }
    if (const auto *wait = std::get_if<Wait>(&action)) {
      for (const Flight &flight : flights[wait->request])
        ranges[flight.buffer].last = i;
      flights.erase(wait->request);
    }
  }
  for (const auto &[request, posts] : flights)
    return fault(instructionText(plan, stageIndex, programIndex, posts[0].instruction) + ": " +
                 bufferText(stage, posts[0].buffer) + " is temp, but the program ends before a wait on request " +
                 std::to_string(request) + "; wait in this program or use a slot buffer");

  std::vector<LiveRange> result;
  for (const auto &[buffer, range] : ranges)
    result.push_back(range);
  std::sort(result.begin(), result.end(), [](const LiveRange &a, const LiveRange &b) {
    return std::tie(a.first, a.buffer) < std::tie(b.first, b.buffer);
  });
  return result;
}

} // namespace hpc::plan
