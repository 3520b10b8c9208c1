// Structs are compared by their bytes in a file, which have all of their fields.
#include "passes/Schedule/MergedEntries.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/Packing.h"
#include "runtime/plan/PlanBody.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanStructure.h"

#include <algorithm>
#include <map>
#include <set>

namespace hpc {

using namespace plan;

namespace {

Status differs(const std::string &what) { return Status::error(ErrorKind::Internal, "entries do not make one plan: " + what); }

std::string bytesOf(const Port &port) {
  Plan one;
  one.inputs = {port};
  return encodePlan(one);
}
std::string bytesOf(const Weight &weight) {
  Plan one;
  one.weights = {weight};
  return encodePlan(one);
}
std::string bytesOf(const CodeModule &module) {
  Plan one;
  one.modules = {module};
  return encodePlan(one);
}
/// Of a buffer and what it starts with: all but where it lies and what it is called.
std::string bytesOf(Buffer buffer, Binding binding) {
  buffer.offset = buffer.slotStride = 0;
  buffer.name.clear();
  binding.buffer = 0;
  Plan one;
  one.stages.emplace_back().buffers = {std::move(buffer)};
  one.stages[0].bindings = {std::move(binding)};
  return encodePlan(one);
}

/// The number of an equal element, which is added where there is none.
template <typename T> int32_t take(std::vector<T> &all, const T &one) {
  auto known = std::find_if(all.begin(), all.end(), [&](const T &other) { return bytesOf(other) == bytesOf(one); });
  if (known == all.end())
    known = all.insert(all.end(), one);
  return int32_t(known - all.begin());
}

class Merging {
public:
  MergedPlan merged;

  Status add(const EntryPlan &given) {
    const Plan &own = given.plan;
    if (plan.entries.empty()) {
      plan.model = own.model;
      plan.axes = own.axes;
      plan.stages.resize(own.stages.size());
    }
    const bool isSameMesh = std::equal(plan.axes.begin(), plan.axes.end(), own.axes.begin(), own.axes.end(), [](const Axis &a, const Axis &b) {
      return a.name == b.name && a.size == b.size;
    });
    if (!own.entries.empty() || !own.training.empty() || !isSameMesh || plan.stages.size() != own.stages.size())
      return differs("'" + given.name + "' is for another mesh, or for several things");
    Entry entry{given.name, own.microBatches, {}, {}, {}};
    for (const Port &port : own.inputs)
      entry.inputs.push_back(take(plan.inputs, port));
    for (const Port &port : own.outputs)
      entry.outputs.push_back(take(plan.outputs, port));
    HPC_RETURN_IF_ERROR(takeWeights(own));
    for (const CodeModule &module : own.modules)
      take(plan.modules, module);
    merged.buffers.emplace_back();
    for (size_t s = 0; s < own.stages.size(); ++s)
      HPC_RETURN_IF_ERROR(takeStage(own.stages[s], plan.stages[s], entry).at("'" + given.name + "', stage " + std::to_string(s)));
    plan.entries.push_back(std::move(entry));
    return Status::success();
  }

private:
  Plan &plan = merged.plan;
  std::vector<int32_t> weights; ///< of the plan that is being added: their numbers

  int32_t takeFile(const WeightFile &file) {
    auto known = std::find_if(plan.files.begin(), plan.files.end(), [&](const WeightFile &other) { return other.path == file.path; });
    if (known == plan.files.end())
      known = plan.files.insert(plan.files.end(), file);
    return int32_t(known - plan.files.begin());
  }

  /// The compiler's own constants are called by numbers of their plan (PlanWeights): equal content makes them one.
  static bool isOwnConstant(const Weight &weight) { return weight.file < 0 && weight.stateNames.empty() && !weight.isConstant; }

  Status takeWeights(const Plan &own) {
    weights.clear();
    for (Weight weight : own.weights) {
      weight.file = weight.file < 0 ? -1 : takeFile(own.files[size_t(weight.file)]);
      auto known = std::find_if(plan.weights.begin(), plan.weights.end(), [&](const Weight &other) {
        if (!isOwnConstant(weight) || !isOwnConstant(other))
          return other.name == weight.name;
        Weight named = weight;
        named.name = other.name;
        return bytesOf(named) == bytesOf(other);
      });
      if (known == plan.weights.end()) {
        if (isOwnConstant(weight))
          weight.name = "constant" + std::to_string(plan.weights.size());
        known = plan.weights.insert(known, weight);
      } else if (!isOwnConstant(weight) && bytesOf(*known) != bytesOf(weight)) {
        return differs("they have two weights '" + weight.name + "'");
      }
      weights.push_back(int32_t(known - plan.weights.begin()));
    }
    for (const std::string &input : own.compiledIn)
      if (std::find(plan.compiledIn.begin(), plan.compiledIn.end(), input) == plan.compiledIn.end())
        plan.compiledIn.push_back(input);
    return Status::success();
  }

  /// The number of the session buffer that has this content in an earlier entry; -1: none has.
  static Expected<int32_t> findSession(const Stage &stage, const Buffer &buffer, const Binding &binding) {
    for (const Binding &other : stage.bindings) {
      const bool isState = !binding.saved.empty() && other.saved == binding.saved;
      if (!isState && (!binding.saved.empty() || !storedTensorOf(binding)))
        continue;
      if (bytesOf(stage.buffers[size_t(other.buffer)], other) == bytesOf(buffer, binding))
        return other.buffer;
      if (isState)
        return differs("they hold '" + binding.saved + "' in two ways, as " + name(stage.buffers[size_t(other.buffer)].dtype) +
                       shapeText(stage.buffers[size_t(other.buffer)].box) + " and " + name(buffer.dtype) + shapeText(buffer.box) +
                       ", or other parts of it");
    }
    return -1;
  }

  /// Session buffers are placed after those that are there; others stay where they are.
  Status takeBuffers(const Stage &own, Stage &stage, std::vector<int32_t> &numbers) {
    std::map<int32_t, Binding> bindings;
    for (const Binding &binding : own.bindings)
      bindings.emplace(binding.buffer, binding);
    const Stage before = {stage.buffers, stage.bindings, {}, {}, {}};
    for (size_t i = 0; i < own.buffers.size(); ++i) {
      Buffer buffer = own.buffers[i];
      auto bound = bindings.find(int32_t(i));
      numbers.push_back(int32_t(stage.buffers.size()));
      if (bound != bindings.end()) {
        Binding &binding = bound->second;
        std::visit([&](auto &start) { takeStart(start); }, binding.start);
        Expected<int32_t> shared = findSession(before, buffer, binding);
        HPC_RETURN_IF_ERROR(shared.status());
        if (*shared >= 0) {
          numbers.back() = *shared;
          continue;
        }
        binding.buffer = numbers.back();
        if (buffer.space == Space::Device) {
          buffer.offset = stage.sessionBytes;
          stage.sessionBytes += buffer.slots > 1 ? buffer.slots * buffer.slotStride : (buffer.bytes + alignment - 1) / alignment * alignment;
        }
        stage.bindings.push_back(binding);
      }
      stage.buffers.push_back(std::move(buffer));
    }
    return Status::success();
  }
  void takeStart(StoredWeight &start) { start.weight = weights[size_t(start.weight)]; }
  void takeStart(Int8Weight &start) { start.weight = weights[size_t(start.weight)]; }
  template <typename Other> void takeStart(Other &) {}

  Status takeStage(const Stage &own, Stage &stage, Entry &entry) {
    std::vector<int32_t> &buffers = merged.buffers.back().emplace_back();
    HPC_RETURN_IF_ERROR(takeBuffers(own, stage, buffers));
    stage.workBytes = std::max(stage.workBytes, own.workBytes);
    stage.hostBytes = std::max(stage.hostBytes, own.hostBytes);
    stage.requests.resize(std::max(stage.requests.size(), own.requests.size()), 1);
    for (size_t i = 0; i < own.requests.size(); ++i)
      stage.requests[i] = std::max(stage.requests[i], own.requests[i]);
    const int32_t first = int32_t(stage.programs.size());
    for (Program program : own.programs) {
      for (Instruction &instruction : program.instructions) {
        for (Ref *ref : placesOf(instruction.action))
          ref->buffer = ref->buffer < 0 ? -1 : buffers[size_t(ref->buffer)];
        renumberPorts(instruction, entry.inputs, entry.outputs);
      }
      stage.programs.push_back(std::move(program));
    }
    std::vector<ScheduleStep> &schedule = entry.schedules.emplace_back(own.schedule);
    for (ScheduleStep &step : schedule)
      step.program += first;
    return Status::success();
  }
};

/// A weight that some entry reads in another way than another one takes it packed is packed nowhere.
void agreeOnPacking(const Plan &plan, Stage &stage) {
  std::map<int32_t, const Gemm *> packed; // by buffer: the first product that takes it so
  std::set<int32_t> otherwise;            // buffers that something reads in another way
  auto eachAccess = [&](auto visit) {
    for (Program &program : stage.programs)
      for (Instruction &instruction : program.instructions)
        for (const BufferAccess &access : accessesOf(plan, instruction)) {
          auto *gemm = std::get_if<Gemm>(&instruction.action);
          visit(access.ref.buffer, gemm && access.operand == packableNumber(*gemm) && packable(*gemm).packed ? gemm : nullptr);
        }
  };
  eachAccess([&](int32_t buffer, Gemm *taker) {
    if (!taker || !packsAlike(*packed.emplace(buffer, taker).first->second, *taker))
      otherwise.insert(buffer);
  });
  eachAccess([&](int32_t buffer, Gemm *taker) {
    if (taker && otherwise.count(buffer))
      packable(*taker).packed = false;
  });
}

} // namespace

Expected<MergedPlan> mergeEntries(const std::vector<EntryPlan> &plans) {
  Merging merging;
  for (const EntryPlan &each : plans)
    HPC_RETURN_IF_ERROR(merging.add(each));
  for (size_t s = 0; s < merging.merged.plan.stages.size(); ++s)
    agreeOnPacking(merging.merged.plan, merging.merged.plan.stages[s]);
  return std::move(merging.merged);
}

} // namespace hpc
