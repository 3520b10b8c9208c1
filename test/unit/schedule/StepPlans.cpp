#include "test/unit/schedule/StepPlans.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/Schedule.h"

#include <gtest/gtest.h>

namespace hpc::test {

using namespace plan;

StepPlan::StepPlan(int64_t microBatches, std::vector<ProgramKind> kinds) {
  plan.axes = {{"dp", 2}, {"tp", 2}};
  plan.microBatches = microBatches;
  Stage &stage = plan.stages.emplace_back();
  for (ProgramKind kind : kinds)
    stage.programs.push_back({kind, 0, {}});
  for (size_t p = 0; p < kinds.size(); ++p)
    for (int32_t m = 0; m < (isPerStep(kinds[p]) ? 1 : int32_t(microBatches)); ++m)
      stage.schedule.push_back({int32_t(p), m});
}

int32_t StepPlan::buffer(Lifetime lifetime, int64_t elements) {
  Buffer buffer;
  buffer.name = "b" + std::to_string(stage().buffers.size());
  buffer.box = {elements};
  buffer.bytes = elements * 4;
  buffer.lifetime = lifetime;
  stage().buffers.push_back(buffer);
  return int32_t(stage().buffers.size()) - 1;
}

Instruction &StepPlan::kernel(size_t program, std::vector<int32_t> reads, std::vector<int32_t> writes, Part part) {
  Kernel kernel;
  kernel.symbol = "k" + std::to_string(kernels++);
  auto add = [&](int32_t number, bool isWritten) {
    kernel.args.push_back({{number, 0}, stage().buffers[size_t(number)].bytes, !isWritten, isWritten});
  };
  for (int32_t number : reads)
    add(number, false);
  for (int32_t number : writes)
    add(number, true);
  of(program).push_back({kernel, "node"});
  of(program).back().part = part;
  return of(program).back();
}

void StepPlan::accumulate(size_t program, int32_t sum, int32_t term) {
  Accumulate add;
  add.src = {term, 0};
  add.dst = {sum, 0};
  add.count = stage().buffers[size_t(sum)].bytes / 4;
  add.add.values.assign(size_t(4 * plan.microBatches), 1);
  std::fill_n(add.add.values.begin(), 4, 0);
  of(program).push_back({add, "node"});
  of(program).back().part = Part::Gradient;
}

void StepPlan::copy(size_t program, int32_t target, int32_t source) {
  of(program).push_back({Copy{{source, 0}, {target, 0}, stage().buffers[size_t(source)].bytes}, "node"});
}

int32_t StepPlan::collective(size_t program, CollectiveKind kind, int32_t source, std::vector<std::string> axes) {
  constexpr int64_t half = 2; // of each axis
  int64_t elements = stage().buffers[size_t(source)].bytes / 4, ranks = 1;
  for (size_t i = 0; i < axes.size(); ++i)
    ranks *= half;
  Collective collective;
  collective.kind = kind;
  collective.axes = axes;
  collective.count = kind == CollectiveKind::ReduceScatter ? elements / ranks : elements;
  collective.src = {source, 0};
  int32_t target = buffer(Lifetime::Program, collective.count * (kind == CollectiveKind::AllGather ? ranks : 1));
  collective.dst = {target, 0};
  std::string number = std::to_string(source);
  collective.reason = {"node" + number, "path" + number, "cause", "avoid"};
  of(program).push_back({collective, "node" + number});
  of(program).back().part = Part::Update;
  return target;
}

int32_t StepPlan::allReduce(size_t program, int32_t source, std::vector<std::string> axes, ReduceKind kind) {
  int32_t target = collective(program, CollectiveKind::AllReduce, source, std::move(axes));
  std::get<Collective>(of(program).back().action).reduce = kind;
  return target;
}

void StepPlan::store(size_t program, int32_t source) {
  StoreOutput store;
  store.output = int32_t(plan.outputs.size());
  store.src = {source, 0};
  store.slice.box = {stage().buffers[size_t(source)].bytes / 4};
  Port port;
  port.shape = store.slice.box;
  port.onRequest = true;
  plan.outputs.push_back(port);
  of(program).push_back({store, "node"});
  of(program).back().onRequest = true;
}

void StepPlan::note(size_t program, int32_t source) {
  std::vector<Instruction> &instructions = of(program);
  int32_t completedBy = -1;
  for (Instruction &instruction : instructions) {
    if (instruction.id < 0)
      instruction.id = ids++;
    for (const BufferAccess &access : accessesOf(plan, instruction))
      if (access.write && access.ref.buffer == source)
        completedBy = instruction.id;
  }
  values.push_back({0, int64_t(program), completedBy, {source, 0}});
}

int64_t StepPlan::indexOf(const NotedValue &value) const {
  const std::vector<Instruction> &instructions = plan.stages[0].programs[size_t(value.program)].instructions;
  for (size_t i = 0; i < instructions.size() && value.completedBy >= 0; ++i)
    if (instructions[i].id == value.completedBy)
      return int64_t(i);
  EXPECT_EQ(value.completedBy, -1) << "gone";
  return -1;
}

// ---- what they compute --------------------------------------------------------------------------

static size_t mix(size_t a, size_t b) { return std::hash<size_t>()(a * 0x9e3779b97f4a7c15u + b); }

StepEvaluation::StepEvaluation(const StepPlan &step) : plan(step.plan) {
  const Stage &stage = plan.stages[0];
  for (const ScheduleStep &at : stage.schedule) {
    microBatch = at.microBatch;
    const std::vector<Instruction> &instructions = stage.programs[size_t(at.program)].instructions;
    auto readValues = [&](int64_t index) {
      for (size_t i = 0; i < step.values.size(); ++i)
        if (const NotedValue &value = step.values[i]; value.program == at.program && step.indexOf(value) == index)
          values[int64_t(i)] = read(value.place);
    };
    readValues(-1);
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].when.at(0, microBatch, plan.ranksPerStage()))
        std::visit([&](const auto &action) { run(action); }, instructions[i].action);
      readValues(int64_t(i));
    }
  }
  EXPECT_TRUE(flights.empty());
}

bool StepEvaluation::isFlying(const Ref &ref, bool write) const {
  for (const auto &[request, collective] : flights)
    for (const BufferAccess &access : accessesOf(plan, {*collective, ""}))
      if (access.ref.buffer == ref.buffer && (write || access.write) && ref.byteOffset >= access.ref.byteOffset &&
          ref.byteOffset < access.ref.byteOffset + access.bytes)
        return true;
  return false;
}

size_t StepEvaluation::read(const Ref &ref) {
  EXPECT_FALSE(isFlying(ref, false));
  auto found = memory.find({ref.buffer, ref.byteOffset});
  EXPECT_TRUE(found != memory.end()) << "nothing at " << ref.byteOffset;
  return found == memory.end() ? 0 : found->second;
}

void StepEvaluation::write(const Ref &ref, size_t value) {
  EXPECT_FALSE(isFlying(ref, true));
  memory[{ref.buffer, ref.byteOffset}] = value;
}

/// What lies in the source, each at its distance from the start, comes to lie in the target.
void StepEvaluation::exchange(const Collective &collective) {
  const BufferAccess source = accessesOf(plan, {collective, ""})[0];
  size_t how = mix(mix(collective.axes.size(), size_t(collective.reduce)), size_t(collective.kind));
  std::vector<std::pair<Place, size_t>> results;
  for (const auto &[place, value] : memory)
    if (place.first == source.ref.buffer && place.second >= source.ref.byteOffset &&
        place.second < source.ref.byteOffset + source.bytes)
      results.push_back(
          {{collective.dst.buffer, place.second - source.ref.byteOffset + collective.dst.byteOffset}, mix(how, value)});
  for (const auto &[place, value] : results)
    memory[place] = value;
}

void StepEvaluation::run(const Kernel &kernel) {
  std::vector<size_t> &reads = history[kernel.symbol + " " + std::to_string(microBatch)];
  size_t value = std::hash<std::string>()(kernel.symbol) + size_t(microBatch);
  for (const KernelArg &arg : kernel.args)
    if (arg.reads) {
      reads.push_back(read(arg.place));
      value = mix(value, reads.back());
    }
  for (const KernelArg &arg : kernel.args)
    if (arg.writes)
      write(arg.place, value = mix(value, 1));
}

void StepEvaluation::run(const Accumulate &sum) {
  size_t value = read(sum.src);
  write(sum.dst, sum.add.at(0, microBatch, plan.ranksPerStage()) ? mix(read(sum.dst), value) : value);
}

void StepEvaluation::run(const Copy &copy) { write(copy.dst, read(copy.src)); }

void StepEvaluation::run(const Collective &collective) {
  for (const BufferAccess &access : accessesOf(plan, {collective, ""}))
    EXPECT_FALSE(isFlying(access.ref, access.write));
  if (collective.request < 0)
    return exchange(collective);
  EXPECT_EQ(flights.count(collective.request), 0u);
  flights[collective.request] = &collective;
}

void StepEvaluation::run(const Wait &wait) {
  auto found = flights.find(wait.request);
  if (found == flights.end())
    return;
  const Collective *collective = found->second;
  flights.erase(found);
  exchange(*collective);
}

void StepEvaluation::run(const StoreOutput &store) {
  history["output " + std::to_string(store.output)] = {read(store.src)};
}

template <typename Other> void StepEvaluation::run(const Other &) { ADD_FAILURE() << "not of these plans"; }

} // namespace hpc::test
