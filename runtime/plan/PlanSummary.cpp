// Sums over the traffic of a plan, and its fullest stage.
#include "runtime/plan/PlanSummary.h"

#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/Groups.h"

namespace hpc::plan {

/// Ranks of a stage that take from another one.
static int64_t takers(const Plan &plan, const Collective &permute) {
  int64_t count = 0;
  for (int64_t rank = 0; rank < plan.ranksPerStage(); ++rank)
    count += permute.source.at(rank, 0, plan.ranksPerStage()) != seatOf(plan.axes, rank, permute.axes).position;
  return count;
}

int64_t receivedBytes(const Plan &plan, const Collective &collective) {
  int64_t ranks = groupSize(plan, collective.axes), bytes = payloadBytes(plan, collective);
  if (collective.kind == CollectiveKind::Permute)
    return multiplySizes(bytes, takers(plan, collective));
  int64_t others = multiplySizes(bytes, ranks - 1);
  return multiplySizes((collective.kind == CollectiveKind::AllReduce ? multiplySizes(2, others) : others) / ranks, plan.ranksPerStage());
}

PlanSummary summarize(const Plan &plan, const PlanFacts &facts) {
  if (!plan.entries.empty())
    return summarize(planOf(plan, 0), facts.entries.front());
  PlanSummary summary;
  for (const TrafficFacts &traffic : facts.collectives) {
    const Instruction &instruction = plan.stages[traffic.stage].programs[traffic.program].instructions[traffic.instruction];
    int64_t ofStage = receivedBytes(plan, std::get<Collective>(instruction.action));
    summary.received = addSizes(summary.received, multiplySizes(ofStage, traffic.runs));
  }
  for (const TrafficFacts &traffic : facts.transfers)
    summary.received = addSizes(summary.received, traffic.totalBytes());
  summary.received /= plan.worldSize();
  summary.collectives = int64_t(facts.collectives.size());
  size_t fullest = 0;
  for (size_t stage = 1; stage < facts.memory.size(); ++stage)
    if (facts.memory[stage].total() > facts.memory[fullest].total())
      fullest = stage;
  summary.memory = facts.memory[fullest];
  for (const KeptFacts &kept : facts.kept)
    if (kept.stage == int64_t(fullest))
      summary.kept = addSizes(summary.kept, kept.bytes);
  return summary;
}

} // namespace hpc::plan
