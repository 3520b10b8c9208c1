// Sums over the plan: arenas, payloads, multiply-adds.
#include "runtime/plan/PlanFacts.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/Groups.h"

#include <algorithm>

namespace hpc::plan {

namespace {

MemoryFacts memoryOf(const Stage &stage) {
  MemoryFacts facts;
  for (const Buffer &buffer : stage.buffers) {
    int64_t bytes = multiplySizes(buffer.slots, buffer.bytes);
    if (buffer.space == Space::Device && buffer.lifetime == Lifetime::Step)
      facts.step = addSizes(facts.step, bytes);
    if (buffer.space == Space::Device && buffer.lifetime == Lifetime::MicroBatch)
      facts.slot = addSizes(facts.slot, bytes);
  }
  for (const Binding &binding : stage.bindings)
    if (const Buffer &buffer = stage.buffers[binding.buffer];
        buffer.space == Space::Device && !std::holds_alternative<StoredWeight>(binding.start))
      facts.state = addSizes(facts.state, buffer.bytes);
  facts.weight = std::max<int64_t>(0, stage.sessionBytes - facts.state);
  facts.temp = std::max<int64_t>(0, stage.workBytes - addSizes(facts.step, facts.slot));
  facts.host = stage.hostBytes;
  return facts;
}

/// Runs of each program by micro-batch.
using Runs = std::vector<std::vector<int32_t>>;
Runs runsOf(const Stage &stage) {
  Runs runs(stage.programs.size());
  for (const ScheduleStep &step : stage.schedule)
    runs[step.program].push_back(step.microBatch);
  return runs;
}

/// 2*m*n*k of one run, added per coordinate that runs it.
void addFlops(const Plan &plan, const Instruction &instruction, int64_t microBatch, std::vector<int64_t> &flops) {
  const Gemm &gemm = std::get<Gemm>(instruction.action);
  int64_t ranks = plan.ranksPerStage(), batch = productOf(gemm.batch);
  for (int64_t coordinate = 0; coordinate < ranks; ++coordinate) {
    int64_t one = 2;
    for (const ByCoord *factor : {&gemm.m, &gemm.n, &gemm.k, &instruction.when})
      one = multiplySizes(one, factor->at(coordinate, microBatch, ranks));
    flops[coordinate] = addSizes(flops[coordinate], multiplySizes(one, batch));
  }
}

bool dependsOnMicroBatch(const Plan &plan, const Instruction &instruction) {
  const Gemm &gemm = std::get<Gemm>(instruction.action);
  size_t most =
      std::max({gemm.m.values.size(), gemm.n.values.size(), gemm.k.values.size(), instruction.when.values.size()});
  return most > size_t(plan.ranksPerStage());
}

int64_t flopsOf(const Plan &plan, const Stage &stage, const Runs &runs) {
  std::vector<int64_t> flops(plan.ranksPerStage(), 0);
  for (size_t p = 0; p < stage.programs.size(); ++p)
    for (const Instruction &instruction : stage.programs[p].instructions) {
      if (!std::holds_alternative<Gemm>(instruction.action) || instruction.onRequest)
        continue;
      if (dependsOnMicroBatch(plan, instruction)) {
        for (int32_t microBatch : runs[p])
          addFlops(plan, instruction, microBatch, flops);
        continue;
      }
      std::vector<int64_t> one(flops.size(), 0);
      addFlops(plan, instruction, 0, one);
      for (size_t c = 0; c < flops.size(); ++c)
        flops[c] = addSizes(flops[c], multiplySizes(one[c], int64_t(runs[p].size())));
    }
  return *std::max_element(flops.begin(), flops.end());
}

/// Runs in which some coordinate does not skip the instruction.
int64_t timesRun(const Plan &plan, const Instruction &instruction, const std::vector<int32_t> &runs) {
  if (isEverywhere(instruction.when, 1))
    return int64_t(runs.size());
  int64_t times = 0, ranks = plan.ranksPerStage();
  for (int32_t microBatch : runs) {
    bool any = false;
    for (int64_t coordinate = 0; coordinate < ranks; ++coordinate)
      any = any || instruction.when.at(coordinate, microBatch, ranks);
    times += any;
  }
  return times;
}

int64_t senders(const Plan &plan, const Send &send) {
  int64_t count = 0, ranks = plan.ranksPerStage();
  for (int64_t coordinate = 0; coordinate < ranks; ++coordinate)
    count += send.peer.at(coordinate, 0, ranks) >= 0;
  return count;
}

void addTraffic(const Plan &plan, int64_t stageIndex, const Runs &runs, PlanFacts &facts) {
  const Stage &stage = plan.stages[stageIndex];
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    for (size_t i = 0; i < stage.programs[p].instructions.size(); ++i) {
      const Instruction &instruction = stage.programs[p].instructions[i];
      const Action &action = instruction.action;
      TrafficFacts traffic{stageIndex, int64_t(p), int64_t(i), 0, 0, 0};
      if (const auto *collective = std::get_if<Collective>(&action)) {
        traffic.bytes = payloadBytes(plan, *collective);
        traffic.groups = plan.ranksPerStage() / groupSize(plan, collective->axes);
        traffic.runs = timesRun(plan, instruction, runs[p]);
        facts.collectives.push_back(traffic);
      } else if (const auto *send = std::get_if<Send>(&action)) {
        traffic.bytes = send->bytes;
        traffic.groups = senders(plan, *send);
        traffic.runs = timesRun(plan, instruction, runs[p]);
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
    Runs runs = runsOf(plan.stages[s]);
    facts.memory.push_back(memoryOf(plan.stages[s]));
    facts.gemmFlops.push_back(flopsOf(plan, plan.stages[s], runs));
    addTraffic(plan, int64_t(s), runs, facts);
  }
  return facts;
}

} // namespace hpc::plan
