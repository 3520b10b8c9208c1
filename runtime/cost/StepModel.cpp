#include "runtime/cost/StepModel.h"

#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanSummary.h"

#include <algorithm>
#include <map>
#include <set>

namespace hpc::cost {

using namespace plan;

Work &Work::operator+=(const Work &other) {
  for (int part : {Products, Kernels, Copies})
    seconds[part] += other.seconds[part];
  flops += other.flops;
  repeatedFlops += other.repeatedFlops;
  ideal += other.ideal;
  return *this;
}

Part partOf(const Action &action) {
  return std::holds_alternative<Gemm>(action) ? Products : std::holds_alternative<Kernel>(action) ? Kernels : Copies;
}

double productFlops(const InstructionRun &run) {
  if (const auto *kernel = std::get_if<Kernel>(&run.instruction.action))
    return double(kernel->flops);
  const auto *gemm = std::get_if<Gemm>(&run.instruction.action);
  if (!gemm)
    return 0;
  double flops = 2 * double(productOf(gemm->batch));
  for (const ByCoord *factor : {&gemm->m, &gemm->n, &gemm->k})
    flops *= double(factor->at(run.coordinate, run.microBatch, run.plan.ranksPerStage()));
  return flops;
}

DType productType(const Plan &plan, int64_t stage, const Action &action) {
  if (const auto *gemm = std::get_if<Gemm>(&action))
    return gemm->a.dtype;
  const auto *kernel = std::get_if<Kernel>(&action);
  if (kernel && kernel->attention)
    return kernel->attention->query.dtype;
  return kernel && !kernel->args.empty() ? plan.stages[size_t(stage)].buffers[size_t(kernel->args[0].place.buffer)].dtype : DType::F32;
}

StepModel::StepModel(const Plan &plan, const Machine &machine, const Durations &durations, bool everyRank)
    : plan(plan), machine(machine), ranksPerStage(plan.ranksPerStage()),
      parts({"products", "kernels", "copies and inputs", "messages", "shared processors and links"}), times(plan, durations) {
  buildPrograms();
  buildRanks(everyRank);
  addGroups();
}

int32_t StepModel::partOf(const Collective &collective) {
  std::string text = std::string(plan::name(collective.kind)) + " over ";
  for (const std::string &axis : collective.axes)
    text += (&axis == &collective.axes.front() ? "" : ",") + axis;
  auto found = std::find(parts.begin(), parts.end(), text);
  if (found == parts.end())
    found = parts.insert(found, text);
  return int32_t(found - parts.begin());
}

void StepModel::buildPrograms() {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    auto &ofStage = programs.emplace_back();
    for (size_t p = 0; p < plan.stages[stage].programs.size(); ++p) {
      std::vector<TimedOp> &ops = ofStage.emplace_back();
      const std::vector<Instruction> &instructions = plan.stages[stage].programs[p].instructions;
      for (int32_t i = 0; i < int32_t(instructions.size()); ++i) {
        const Instruction &instruction = instructions[size_t(i)];
        if (instruction.onRequest)
          continue;
        TimedOp op;
        op.instruction = i;
        op.end = i + 1;
        op.action = &instruction;
        op.part = Messages;
        if (instruction.when.values.size() > 1 || instruction.when.values[0] == 0)
          op.when = &instruction.when;
        if (const auto *collective = std::get_if<Collective>(&instruction.action)) {
          op.kind = TimedKind::Collective;
          op.grouping = times.groupingOf(collective->axes);
          op.part = partOf(*collective);
          op.bytes = double(receivedBytes(plan, *collective)) / double(ranksPerStage);
        } else if (const auto *send = std::get_if<Send>(&instruction.action)) {
          op.kind = TimedKind::Send;
          op.bytes = double(send->bytes);
        } else if (std::holds_alternative<Recv>(instruction.action)) {
          op.kind = TimedKind::Recv;
        } else if (std::holds_alternative<Wait>(instruction.action)) {
          op.kind = TimedKind::Wait;
        } else {
          const size_t most = std::max(instruction.when.values.size(), times.of(int64_t(stage), int64_t(p), i).variants.size());
          const bool varies = most > size_t(ranksPerStage);
          if (ops.empty() || ops.back().kind != TimedKind::Work)
            ops.push_back({TimedKind::Work, i, i, nullptr, nullptr, -1, 0, 0, {}});
          ops.back().end = i + 1;
          if (varies)
            ops.back().varying.push_back(i);
          continue;
        }
        ops.push_back(std::move(op));
      }
    }
  }
}

Work StepModel::workOfInstruction(const SimulatedRank &rank, int32_t program, int32_t number, int64_t microBatch) const {
  const Instruction &instruction = plan.stages[size_t(rank.stage)].programs[size_t(program)].instructions[size_t(number)];
  Work work;
  if (instruction.onRequest || !isOn(&instruction.when, rank, microBatch))
    return work;
  const Part part = cost::partOf(instruction.action);
  work.seconds[part] = secondsOf(rank, program, number, microBatch);
  if (part == Copies)
    return work;
  work.flops = productFlops({plan, rank.stage, instruction, rank.coordinate, microBatch});
  if (instruction.part == plan::Part::Repeated)
    work.repeatedFlops = work.flops;
  else if (work.flops > 0)
    work.ideal = work.flops / machine.flops(productType(plan, rank.stage, instruction.action));
  return work;
}

Work StepModel::workOf(const SimulatedRank &rank, int32_t program, int32_t op, int64_t microBatch) const {
  Work work = rank.fixed[size_t(program)][size_t(op)];
  for (int32_t instruction : programs[size_t(rank.stage)][size_t(program)][size_t(op)].varying)
    work += workOfInstruction(rank, program, instruction, microBatch);
  return work;
}

void StepModel::buildRanks(bool everyRank) {
  std::vector<int32_t> first = everyRank ? std::vector<int32_t>() : classesOf(plan, machine, times);
  simulatedBy.assign(size_t(plan.worldSize()), 0);
  for (int32_t rank = 0; rank < int32_t(simulatedBy.size()); ++rank) {
    if (!everyRank && first[size_t(rank)] != rank) {
      SimulatedRank &same = simulated[size_t(simulatedBy[size_t(rank)] = simulatedBy[size_t(first[size_t(rank)])])];
      ++same.weight;
      same.weightOnHost += hostOf(machine, rank) == same.host;
      continue;
    }
    simulatedBy[size_t(rank)] = int32_t(simulated.size());
    SimulatedRank &one = simulated.emplace_back();
    one.rank = rank;
    one.stage = rank / ranksPerStage;
    one.coordinate = rank % ranksPerStage;
    one.host = hostOf(machine, rank);
    one.speed = speedOf(machine, rank);
    const auto &ofStage = programs[size_t(one.stage)];
    for (int32_t program = 0; program < int32_t(ofStage.size()); ++program) {
      std::vector<Work> &works = one.fixed.emplace_back();
      for (const TimedOp &op : ofStage[size_t(program)]) {
        Work &work = works.emplace_back();
        for (int32_t i = op.instruction; op.kind == TimedKind::Work && i < op.end; ++i)
          if (!std::binary_search(op.varying.begin(), op.varying.end(), i))
            work += workOfInstruction(one, program, i, 0);
      }
    }
  }
}

/// Groups whose members are of the same classes are one group here.
void StepModel::addGroups() {
  const std::vector<Grouping> &groupings = times.groupings();
  std::map<std::vector<int64_t>, int32_t> known;
  for (SimulatedRank &rank : simulated)
    rank.groups.assign(groupings.size(), -1);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    std::set<int32_t> used;
    for (const auto &program : programs[stage])
      for (const TimedOp &op : program)
        if (op.kind == TimedKind::Collective)
          used.insert(op.grouping);
    for (int32_t grouping : used) {
      std::vector<std::set<int64_t>> members(groupings[size_t(grouping)].first.size());
      for (int64_t c = 0; c < ranksPerStage; ++c)
        members[size_t(groupings[size_t(grouping)].groupOf[size_t(c)])].insert(simulatedBy[stage * size_t(ranksPerStage) + size_t(c)]);
      for (const std::set<int64_t> &group : members) {
        std::vector<int64_t> key = {int64_t(stage), grouping};
        key.insert(key.end(), group.begin(), group.end());
        auto [found, isNew] = known.emplace(std::move(key), int32_t(groupSizes.size()));
        if (isNew)
          groupSizes.push_back(int32_t(group.size()));
        for (int64_t member : group)
          simulated[size_t(member)].groups[size_t(grouping)] = found->second;
      }
    }
  }
}

int32_t StepModel::levelOf(const SimulatedRank &rank, int32_t grouping) const {
  const Grouping &groups = times.groupings()[size_t(grouping)];
  const size_t group = size_t(groups.groupOf[size_t(rank.coordinate)]);
  const int64_t base = rank.stage * ranksPerStage;
  return linkLevel(machine, base + groups.first[group], base + groups.last[group]);
}

} // namespace hpc::cost
