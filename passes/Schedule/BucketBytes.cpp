// The size of gradient buckets on a machine. Small buckets begin with backward and start often; of a large one, much is sent after backward.
#include "passes/Schedule/Rewrites.h"

#include "runtime/cost/CollectiveTime.h"
#include "runtime/plan/Schedule.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hpc {

using plan::Collective;

/// Bytes that are all-reduced once a step, by the axes of their groups.
static std::map<std::vector<std::string>, double> reducedOnce(const plan::Plan &plan, const plan::Stage &stage) {
  std::map<std::vector<std::string>, double> bytes;
  for (const plan::Program &program : stage.programs)
    if (plan::isPerStep(program.kind) || (stage.programs.size() == 1 && plan.microBatches == 1))
      for (const plan::Instruction &instruction : program.instructions)
        if (const auto *collective = std::get_if<Collective>(&instruction.action); collective && collective->kind == plan::CollectiveKind::AllReduce)
          bytes[collective->axes] += double(collective->count * byteSize(collective->dtype));
  return bytes;
}

int64_t bucketBytes(const plan::Plan &plan, int64_t stage, const cost::Machine &machine) {
  constexpr double least = 1 << 20, most = 256 << 20, large = 1e9;
  const auto reduced = reducedOnce(plan, plan.stages[size_t(stage)]);
  auto main = std::max_element(reduced.begin(), reduced.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  if (main == reduced.end())
    return defaultBucketBytes;
  const cost::GroupShape shape = cost::shapeOf(machine, plan.axes, main->first, 0, stage * plan.ranksPerStage());
  if (shape.levels.empty())
    return defaultBucketBytes;
  auto seconds = [&](double bytes) { return cost::collectiveSeconds(machine, shape, plan::CollectiveKind::AllReduce, bytes); };
  const double start = seconds(1), secondsPerByte = (seconds(2 * large) - seconds(large)) / large;
  return int64_t(std::clamp(std::sqrt(main->second * start / secondsPerByte), least, most));
}

} // namespace hpc
