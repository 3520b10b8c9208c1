// Sums over the plan: arenas, payloads, multiply-adds, what waits for gradients.
#include "runtime/plan/PlanFacts.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/Groups.h"
#include "runtime/plan/Schedule.h"

#include <algorithm>
#include <map>
#include <set>

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
        buffer.space == Space::Device && !storedTensorOf(binding))
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

/// 2*m*n*k of a product, and what a kernel has of them: of one run, added per coordinate that runs it.
void addFlops(const Plan &plan, const Instruction &instruction, int64_t microBatch, std::vector<int64_t> &flops) {
  const auto *gemm = std::get_if<Gemm>(&instruction.action);
  const auto *kernel = std::get_if<Kernel>(&instruction.action);
  int64_t ranks = plan.ranksPerStage(), fixed = gemm ? multiplySizes(2, productOf(gemm->batch)) : kernel->flops;
  for (int64_t coordinate = 0; coordinate < ranks; ++coordinate) {
    int64_t one = multiplySizes(fixed, instruction.when.at(coordinate, microBatch, ranks));
    if (gemm)
      for (const ByCoord *factor : {&gemm->m, &gemm->n, &gemm->k})
        one = multiplySizes(one, factor->at(coordinate, microBatch, ranks));
    flops[coordinate] = addSizes(flops[coordinate], one);
  }
}

bool hasFlops(const Instruction &instruction) {
  const auto *kernel = std::get_if<Kernel>(&instruction.action);
  return (std::holds_alternative<Gemm>(instruction.action) || (kernel && kernel->flops > 0)) && !instruction.onRequest;
}

bool dependsOnMicroBatch(const Plan &plan, const Instruction &instruction) {
  size_t most = instruction.when.values.size();
  if (const auto *gemm = std::get_if<Gemm>(&instruction.action))
    most = std::max({most, gemm->m.values.size(), gemm->n.values.size(), gemm->k.values.size()});
  return most > size_t(plan.ranksPerStage());
}

/// Flops of the instructions that `counts` names, of one rank in one step.
template <typename Counts>
int64_t flopsOf(const Plan &plan, const Stage &stage, const Runs &runs, Counts counts) {
  std::vector<int64_t> flops(plan.ranksPerStage(), 0);
  for (size_t p = 0; p < stage.programs.size(); ++p)
    for (const Instruction &instruction : stage.programs[p].instructions) {
      if (!hasFlops(instruction) || !counts(stage.programs[p], instruction))
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

/// By chunk. A value that a later program of the chunk reads lies in a buffer with slots, one of the same program in a
/// temporary: both wait.
void addKept(const Plan &plan, int64_t stageIndex, const Runs &runs, PlanFacts &facts) {
  const Stage &stage = plan.stages[stageIndex];
  std::map<int32_t, std::set<int32_t>> written; // by buffer: chunks whose forward makes it
  std::map<int32_t, std::set<int32_t>> kept;    // by chunk: buffers
  std::map<int32_t, int64_t> again;             // by chunk: instructions
  for (bool isReading : {false, true})
    for (const Program &program : stage.programs) {
      if (isPerStep(program.kind))
        continue;
      for (const Instruction &instruction : program.instructions) {
        if (isReading)
          again[program.chunk] += instruction.part == Part::Repeated;
        if (isReading ? instruction.part != Part::Gradient && instruction.part != Part::Repeated
                      : instruction.part != Part::Forward)
          continue;
        for (const BufferAccess &access : accessesOf(plan, instruction)) {
          int32_t buffer = access.ref.buffer;
          if (stage.buffers[buffer].lifetime == Lifetime::Session || access.write == isReading)
            continue;
          if (!isReading)
            written[buffer].insert(program.chunk);
          else if (written[buffer].count(program.chunk))
            kept[program.chunk].insert(buffer);
        }
      }
    }
  for (const auto &entry : again) {
    const auto chunk = entry.first;
    KeptFacts one{stageIndex, chunk, int64_t(kept[chunk].size()), 0, entry.second, 0};
    for (int32_t buffer : kept[chunk])
      one.bytes = addSizes(one.bytes, multiplySizes(stage.buffers[buffer].slots, stage.buffers[buffer].bytes));
    one.productFlops = flopsOf(plan, stage, runs, [&](const Program &program, const Instruction &instruction) {
      return program.chunk == chunk && instruction.part == Part::Repeated;
    });
    if (one.values > 0 || one.instructions > 0)
      facts.kept.push_back(one);
  }
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

/// From `first` to before the wait for the request, or to the end.
struct Stretch {
  bool computes = false, hasWait = false;
};
Stretch stretchFrom(const Program &program, size_t first, int32_t request) {
  Stretch stretch;
  for (size_t i = first; i < program.instructions.size() && !stretch.hasWait; ++i) {
    const Instruction &instruction = program.instructions[i];
    const auto *wait = std::get_if<Wait>(&instruction.action);
    stretch.hasWait = wait && wait->request == request;
    stretch.computes |= !instruction.onRequest && (std::holds_alternative<Gemm>(instruction.action) ||
                                                   std::holds_alternative<Kernel>(instruction.action));
  }
  return stretch;
}

bool runsBesideComputation(const Stage &stage, size_t program, size_t post, int32_t request) {
  if (request < 0)
    return false;
  const Stretch here = stretchFrom(stage.programs[program], post + 1, request);
  if (here.computes || here.hasWait)
    return here.computes;
  // Another program waits for it.
  return std::any_of(stage.programs.begin(), stage.programs.end(), [&](const Program &other) {
    const Stretch there = stretchFrom(other, 0, request);
    return there.computes && there.hasWait;
  });
}

void addTraffic(const Plan &plan, int64_t stageIndex, const Runs &runs, PlanFacts &facts) {
  const Stage &stage = plan.stages[stageIndex];
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    for (size_t i = 0; i < stage.programs[p].instructions.size(); ++i) {
      const Instruction &instruction = stage.programs[p].instructions[i];
      const Action &action = instruction.action;
      TrafficFacts traffic{stageIndex, int64_t(p), int64_t(i), 0, 0, 0, false};
      if (const auto *collective = std::get_if<Collective>(&action)) {
        traffic.bytes = payloadBytes(plan, *collective);
        traffic.groups = plan.ranksPerStage() / groupSize(plan, collective->axes);
        traffic.runs = timesRun(plan, instruction, runs[p]);
        traffic.isBesideComputation = runsBesideComputation(stage, p, i, collective->request);
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

StepItems itemsOf(const Plan &plan) {
  StepItems items;
  for (const Port &port : plan.inputs) {
    if (port.isStepScalar || port.shape.empty())
      continue;
    if (items.count == 0)
      items.count = port.shape[0];
    if (port.shape.size() == 2 && !isFloat(port.dtype))
      return {"tokens", multiplySizes(port.shape[0], port.shape[1])};
  }
  return items;
}

PlanFacts staticFacts(const Plan &plan) {
  PlanFacts facts;
  if (!plan.entries.empty()) {
    std::vector<PlanFacts> each;
    for (size_t entry = 0; entry < plan.entries.size(); ++entry)
      each.push_back(staticFacts(planOf(plan, entry)));
    facts = each.front();
    facts.entries = std::move(each);
    return facts;
  }
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    Runs runs = runsOf(plan.stages[s]);
    facts.memory.push_back(memoryOf(plan.stages[s]));
    facts.productFlops.push_back(flopsOf(plan, plan.stages[s], runs, [](const auto &...) { return true; }));
    facts.gemmFlops.push_back(flopsOf(plan, plan.stages[s], runs, [](const Program &, const Instruction &instruction) {
      return std::holds_alternative<Gemm>(instruction.action);
    }));
    addKept(plan, int64_t(s), runs, facts);
    addTraffic(plan, int64_t(s), runs, facts);
  }
  return facts;
}

} // namespace hpc::plan
