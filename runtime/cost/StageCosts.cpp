// One rank walks through its programs of one micro-batch. A posted collective runs beside what follows, after those of its group
// that were posted before it.
#include "runtime/cost/StageCosts.h"

#include "runtime/cost/Durations.h"

#include <algorithm>
#include <map>

namespace hpc::cost {

using namespace plan;

namespace {

class StageWalk {
public:
  StageWalk(const Plan &plan, int64_t stage, const Durations &durations) : plan(plan), stage(stage), durations(durations) {}

  /// Runs a program once; what it posts may be waited for by a later one.
  void run(const Program &program, int64_t microBatch) {
    for (const Instruction &instruction : program.instructions)
      if (instruction.when.at(0, microBatch, plan.ranksPerStage()) && !instruction.onRequest) {
        const double before = clock;
        execute(instruction, microBatch);
        placeOf(program.kind, instruction.part) += clock - before;
      }
  }
  StageSeconds seconds;

private:
  double &placeOf(ProgramKind kind, Part part) {
    if (kind == ProgramKind::Update || part == Part::Update)
      return seconds.update;
    if (kind == ProgramKind::WeightGradient)
      return seconds.weightGradient;
    return kind == ProgramKind::Backward || part != Part::Forward ? seconds.backward : seconds.forward;
  }

  void execute(const Instruction &instruction, int64_t microBatch) {
    if (const auto *wait = std::get_if<Wait>(&instruction.action)) {
      if (auto posted = done.find(wait->request); posted != done.end())
        clock = std::max(clock, posted->second);
      return;
    }
    if (std::holds_alternative<Recv>(instruction.action))
      return;
    const double takes = durations({plan, stage, instruction, 0, microBatch});
    const auto *collective = std::get_if<Collective>(&instruction.action);
    if (std::holds_alternative<Send>(instruction.action)) {
      seconds.sending += takes;
    } else if (!collective) {
      clock += takes;
    } else {
      double &free = networkFree[collective->axes];
      free = std::max(free, clock) + takes;
      if (collective->request < 0)
        clock = free;
      else
        done[collective->request] = free;
    }
  }

  const Plan &plan;
  const int64_t stage;
  const Durations &durations;
  double clock = 0;
  std::map<int32_t, double> done;                         ///< by request
  std::map<std::vector<std::string>, double> networkFree; ///< by the axes of a group
};

StageSeconds secondsOfStage(const Plan &plan, int64_t stage, const Durations &durations) {
  auto walk = [&](int64_t microBatch, bool withUpdate) {
    StageWalk walk(plan, stage, durations);
    for (ProgramKind kind : {ProgramKind::Forward, ProgramKind::Backward, ProgramKind::WeightGradient, ProgramKind::Update})
      for (const Program &program : plan.stages[size_t(stage)].programs)
        if (program.kind == kind && (withUpdate || kind != ProgramKind::Update))
          walk.run(program, microBatch);
    return walk.seconds;
  };
  const StageSeconds last = walk(plan.microBatches - 1, true);
  if (plan.microBatches == 1)
    return last;
  StageSeconds seconds = walk(plan.microBatches > 2 ? 1 : 0, false);
  seconds.update = std::max(0.0, last.computing() + last.update - seconds.computing() - seconds.update);
  return seconds;
}

} // namespace

std::vector<StageCosts> stageCosts(const Plan &plan, const Machine &machine) {
  const Durations durations = durationsOf(machine);
  std::vector<StageCosts> all;
  for (const Stage &stage : plan.stages) {
    StageCosts &costs = all.emplace_back();
    costs.seconds = secondsOfStage(plan, int64_t(all.size()) - 1, durations);
    for (const Buffer &buffer : stage.buffers)
      if (buffer.space == Space::Device && buffer.lifetime == Lifetime::MicroBatch)
        costs.microBatchBytes += buffer.bytes;
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *send = std::get_if<Send>(&instruction.action); send && program.kind != ProgramKind::Update)
          costs.sentBytes += send->bytes;
  }
  return all;
}

} // namespace hpc::cost
