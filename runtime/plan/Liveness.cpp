// One walk over a program's accesses.
#include "runtime/plan/Liveness.h"

#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/Regions.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hpc::plan {

namespace {

/// A post that no Wait has completed yet.
struct Flight {
  int32_t buffer, instruction;
};

/// Where a region has been written: everywhere, or where one of these tables is 1.
struct Written {
  bool everywhere = false;
  std::vector<const ByCoord *> where;

  void add(const ByCoord &when) {
    everywhere = everywhere || isEverywhere(when, 1);
    where.push_back(&when);
  }
  bool covers(const ByCoord &when) const {
    return everywhere ||
           std::any_of(where.begin(), where.end(), [&](const ByCoord *table) { return table->values == when.values; });
  }
};

} // namespace

Expected<std::vector<LiveRange>> liveRanges(const Plan &plan, int64_t stageIndex, int64_t programIndex) {
  const Stage &stage = plan.stages[stageIndex];
  const std::vector<Instruction> &instructions = stage.programs[programIndex].instructions;
  std::map<int32_t, LiveRange> ranges;
  Regions regions;
  for (const Instruction &instruction : instructions)
    regions.add(instruction, accessesOf(plan, instruction));
  regions.finish();
  std::vector<Written> written(regions.all().size());
  std::map<int32_t, std::vector<Flight>> flights; // by request

  for (int32_t i = 0; i < int32_t(instructions.size()); ++i) {
    const Action &action = instructions[i].action;
    int32_t request = postedRequest(action);
    for (const BufferAccess &access : accessesOf(plan, instructions[i])) {
      int32_t buffer = access.ref.buffer;
      if (access.bytes == 0 || stage.buffers[buffer].lifetime != Lifetime::Program)
        continue;
      for (auto [region, last] = regions.of(access); region < last; ++region) {
        if (!access.write && !written[region].covers(instructions[i].when))
          return fault(instructionText(plan, stageIndex, programIndex, i) + ": reads " + bufferText(stage, buffer) +
                       " (" + access.role + ") before any instruction of the program wrote to it");
        if (access.write)
          written[region].add(instructions[i].when);
      }
      ranges.emplace(buffer, LiveRange{buffer, i, i}).first->second.last = i;
      if (request >= 0)
        flights[request].push_back({buffer, i});
    }
    if (const auto *wait = std::get_if<Wait>(&action)) {
      std::vector<Flight> &open = flights[wait->request];
      auto isOpen = [&](const Flight &flight) {
        const ByCoord &when = instructions[i].when;
        return !isEverywhere(when, 1) && when.values != instructions[flight.instruction].when.values;
      };
      for (const Flight &flight : open)
        if (!isOpen(flight))
          ranges[flight.buffer].last = i;
      open.erase(std::remove_if(open.begin(), open.end(), [&](const Flight &flight) { return !isOpen(flight); }),
                 open.end());
    }
  }
  for (const auto &[request, posts] : flights)
    if (!posts.empty())
      return fault(instructionText(plan, stageIndex, programIndex, posts[0].instruction) + ": " +
                   bufferText(stage, posts[0].buffer) + " lives for the program, which ends before a wait on request " +
                   std::to_string(request) + "; wait in this program or use a buffer that lives longer");

  std::vector<LiveRange> result;
  for (const auto &[buffer, range] : ranges)
    result.push_back(range);
  std::sort(result.begin(), result.end(), [](const LiveRange &a, const LiveRange &b) {
    return std::tie(a.first, a.buffer) < std::tie(b.first, b.buffer);
  });
  return result;
}

} // namespace hpc::plan
