// Sums over the plan: arenas, payloads, multiply-adds.
#include "runtime/plan/PlanFacts.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"

#include <algorithm>

namespace hpc::plan {

namespace {

MemoryFacts memoryOf(const Stage &stage) {
  MemoryFacts facts;
  facts.weight = stage.weightBytes;
  facts.state = stage.stateBytes;
  for (const Buffer &buffer : stage.buffers)
    if (buffer.memory == MemoryClass::Slot)
      facts.slot = addSizes(facts.slot, multiplySizes(buffer.slots, buffer.bytes));
  facts.temp = std::max<int64_t>(0, stage.workBytes - facts.slot);
  return facts;
}

/// 2*m*n*k of one run, added per coordinate.
void addFlops(const Plan &plan, const Gemm &gemm, int64_t microBatch, std::vector<int64_t> &flops) {
  int64_t ranks = plan.ranksPerStage(), batch = productOf(gemm.batch);
  for (int64_t coordinate = 0; coordinate < ranks; ++coordinate) {
    int64_t one = 2;
    for (const ByCoord *extent : {&gemm.m, &gemm.n, &gemm.k})
      one = multiplySizes(one, extent->at(coordinate, microBatch, ranks));
    flops[coordinate] = addSizes(flops[coordinate], multiplySizes(one, batch));
  }
}

bool dependsOnMicroBatch(const Plan &plan, const Gemm &gemm) {
  size_t most = std::max({gemm.m.values.size(), gemm.n.values.size(), gemm.k.values.size()});
  return most > size_t(plan.ranksPerStage());
}

int64_t flopsOf(const Plan &plan, const Stage &stage) {
  std::vector<int64_t> flops(plan.ranksPerStage(), 0);
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    std::vector<int32_t> runs;
    for (const ScheduleStep &step : stage.schedule)
      if (step.program == int32_t(p))
        runs.push_back(step.microBatch);
    for (const Instruction &instruction : stage.programs[p].instructions) {
      const Gemm *gemm = std::get_if<Gemm>(&instruction.action);
      if (!gemm)
        continue;
      if (dependsOnMicroBatch(plan, *gemm)) {
        for (int32_t microBatch : runs)
          addFlops(plan, *gemm, microBatch, flops);
        continue;
      }
      std::vector<int64_t> one(flops.size(), 0);
      addFlops(plan, *gemm, 0, one);
      for (size_t c = 0; c < flops.size(); ++c)
        flops[c] = addSizes(flops[c], multiplySizes(one[c], int64_t(runs.size())));
    }
  }
  return *std::max_element(flops.begin(), flops.end());
}

int64_t senders(const Plan &plan, const Send &send) {
  int64_t count = 0, ranks = plan.ranksPerStage();
  for (int64_t coordinate = 0; coordinate < ranks; ++coordinate)
    count += send.peer.at(coordinate, 0, ranks) >= 0;
  return count;
}

void addTraffic(const Plan &plan, int64_t stageIndex, PlanFacts &facts) {
  const Stage &stage = plan.stages[stageIndex];
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    int64_t runs = 0;
    for (const ScheduleStep &step : stage.schedule)
      runs += step.program == int32_t(p);
    for (size_t i = 0; i < stage.programs[p].instructions.size(); ++i) {
      const Action &action = stage.programs[p].instructions[i].action;
      TrafficFacts traffic{stageIndex, int64_t(p), int64_t(i), 0, runs, 0};
      if (const auto *collective = std::get_if<Collective>(&action)) {
        traffic.bytes = payloadBytes(plan, *collective);
        traffic.groups = plan.ranksPerStage() / groupSize(plan, collective->axes);
        facts.collectives.push_back(traffic);
      } else if (const auto *send = std::get_if<Send>(&action)) {
        traffic.bytes = send->bytes;
        traffic.groups = senders(plan, *send);
        facts.transfers.push_back(traffic);
      }
    }
  }
}

} // namespace

double Timeline::bubble() const {
  if (stages.empty() || length == 0)
    return 0;
  double busy = 0;
  for (const std::vector<Turn> &turns : stages)
    busy += double(turns.size());
  return 1.0 - busy / (double(length) * double(stages.size()));
}

int64_t payloadBytes(const Plan &plan, const Collective &collective) {
  int64_t one = multiplySizes(collective.count, byteSize(collective.dtype));
  bool whole = collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::Permute;
  return whole ? one : multiplySizes(one, groupSize(plan, collective.axes));
}

PlanFacts staticFacts(const Plan &plan) {
  PlanFacts facts;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    facts.memory.push_back(memoryOf(plan.stages[s]));
    facts.gemmFlops.push_back(flopsOf(plan, plan.stages[s]));
    addTraffic(plan, int64_t(s), facts);
  }
  return facts;
}

} // namespace hpc::plan
