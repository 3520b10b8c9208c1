// Numbers of ports and programs are those of the whole plan in an entry, and count from 0 in the plan that it is.
#include "runtime/plan/Entries.h"

#include "runtime/plan/Access.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanStructure.h"

#include <algorithm>
#include <set>

namespace hpc::plan {

namespace {

/// By number in the whole plan: the number in the entry's, or -1.
std::vector<int32_t> places(const std::vector<int32_t> &taken, size_t all) {
  std::vector<int32_t> result(all, -1);
  for (size_t i = 0; i < taken.size(); ++i)
    result[size_t(taken[i])] = int32_t(i);
  return result;
}

std::vector<Port> portsOf(const std::vector<Port> &all, const std::vector<int32_t> &taken) {
  std::vector<Port> ports;
  for (int32_t port : taken)
    ports.push_back(all[size_t(port)]);
  return ports;
}

/// The programs that a schedule runs, in the order of their numbers.
std::vector<int32_t> programsOf(const std::vector<ScheduleStep> &schedule) {
  std::set<int32_t> programs;
  for (const ScheduleStep &step : schedule)
    programs.insert(step.program);
  return {programs.begin(), programs.end()};
}

Status inRange(const std::string &what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return Status::success();
  return fault(what + " is " + std::to_string(value) + "; it must be in " + std::to_string(least) + ".." + std::to_string(most));
}

/// `seen`: the ports that an entry takes.
Status checkPorts(const std::vector<int32_t> &taken, size_t all, const char *kind, std::set<int32_t> &seen) {
  std::set<int32_t> mine;
  for (int32_t port : taken) {
    HPC_RETURN_IF_ERROR(inRange(kind, port, 0, int64_t(all) - 1));
    if (!mine.insert(port).second)
      return fault(std::string(kind) + " " + std::to_string(port) + " is listed twice");
  }
  seen.merge(mine);
  return Status::success();
}

/// Programs that an entry runs know its ports alone. Numbers that are none of the plan's are for checkInstruction.
Status checkOwnPorts(const Plan &plan, const Entry &entry) {
  auto isForeign = [](int32_t port, const std::vector<int32_t> &own, const std::vector<Port> &all) {
    return port >= 0 && size_t(port) < all.size() && std::find(own.begin(), own.end(), port) == own.end();
  };
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (int32_t p : programsOf(entry.schedules[s])) {
      const std::vector<Instruction> &instructions = plan.stages[s].programs[size_t(p)].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        const auto *load = std::get_if<LoadInput>(&instructions[i].action);
        const auto *store = std::get_if<StoreOutput>(&instructions[i].action);
        if (load && isForeign(load->input, entry.inputs, plan.inputs))
          return fault(instructionText(plan, int64_t(s), p, int64_t(i)) + ": loads input '" + plan.inputs[size_t(load->input)].name +
                       "', which is none of the entry's");
        if (store && isForeign(store->output, entry.outputs, plan.outputs))
          return fault(instructionText(plan, int64_t(s), p, int64_t(i)) + ": stores output '" +
                       plan.outputs[size_t(store->output)].name + "', which is none of the entry's");
      }
    }
  return Status::success();
}

Status checkAllTaken(const std::vector<Port> &ports, const std::set<int32_t> &seen, const char *kind) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (!seen.count(int32_t(i)))
      return fault(std::string(kind) + " '" + ports[i].name + "' is part of no entry");
  return Status::success();
}

/// What lives for a step lies where that of other entries does.
void emptyForeignBuffers(Stage &stage) {
  std::vector<bool> isTouched(stage.buffers.size(), false);
  for (Program &program : stage.programs)
    for (Instruction &instruction : program.instructions)
      for (const Ref *ref : placesOf(instruction.action))
        if (ref->buffer >= 0 && size_t(ref->buffer) < isTouched.size())
          isTouched[size_t(ref->buffer)] = true;
  for (size_t i = 0; i < isTouched.size(); ++i)
    if (Buffer &buffer = stage.buffers[i]; !isTouched[i] && buffer.lifetime != Lifetime::Session) {
      buffer.box = {0};
      buffer.bytes = buffer.slotStride = 0;
      buffer.slots = 1;
    }
}

} // namespace

void renumberPorts(Instruction &instruction, const std::vector<int32_t> &inputs, const std::vector<int32_t> &outputs) {
  auto renumber = [](const std::vector<int32_t> &numbers, int32_t &port) {
    port = port >= 0 && size_t(port) < numbers.size() ? numbers[size_t(port)] : -1;
  };
  auto renumberTable = [&](ByCoord &table) {
    if (table.varies())
      renumber(inputs, table.input);
  };
  if (auto *load = std::get_if<LoadInput>(&instruction.action)) {
    renumber(inputs, load->input);
  } else if (auto *store = std::get_if<StoreOutput>(&instruction.action)) {
    renumber(outputs, store->output);
  } else if (auto *kernel = std::get_if<Kernel>(&instruction.action)) {
    std::for_each(kernel->scalars.begin(), kernel->scalars.end(), renumberTable);
  } else if (auto *copy = std::get_if<Copy>(&instruction.action)) {
    renumberTable(copy->srcOffset);
    renumberTable(copy->dstOffset);
  }
}

Plan planOf(const Plan &plan, size_t number) {
  Plan own = plan;
  if (plan.entries.empty())
    return own;
  const Entry &entry = plan.entries[number];
  own.entries.clear();
  own.microBatches = entry.microBatches;
  own.inputs = portsOf(plan.inputs, entry.inputs);
  own.outputs = portsOf(plan.outputs, entry.outputs);
  const std::vector<int32_t> inputs = places(entry.inputs, plan.inputs.size()), outputs = places(entry.outputs, plan.outputs.size());
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    Stage &stage = own.stages[s];
    const std::vector<int32_t> taken = programsOf(entry.schedules[s]), programs = places(taken, stage.programs.size());
    std::vector<Program> kept;
    for (int32_t program : taken)
      kept.push_back(std::move(stage.programs[size_t(program)]));
    stage.programs = std::move(kept);
    stage.schedule = entry.schedules[s];
    for (ScheduleStep &step : stage.schedule)
      step.program = programs[size_t(step.program)];
    for (Program &program : stage.programs)
      for (Instruction &instruction : program.instructions)
        renumberPorts(instruction, inputs, outputs);
    emptyForeignBuffers(stage);
  }
  return own;
}

std::string entryNames(const Plan &plan) {
  std::string names;
  for (const Entry &entry : plan.entries)
    names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

Expected<size_t> findEntry(const Plan &plan, const std::string &name) {
  if (name.empty())
    return size_t(0);
  for (size_t i = 0; i < plan.entries.size(); ++i)
    if (plan.entries[i].name == name)
      return i;
  return Status::error(ErrorKind::Usage, "the plan has no entry '" + name + "'; " +
                                             (plan.entries.empty() ? "it is run for one thing alone" : "its entries are " + entryNames(plan)));
}

Status checkEntries(const Plan &plan) {
  if (plan.entries.empty())
    return Status::success();
  HPC_RETURN_IF_ERROR(inRange("number of entries", int64_t(plan.entries.size()), 1, maxEntries));
  if (plan.microBatches != 1)
    return fault("has " + std::to_string(plan.microBatches) + " micro-batches and entries; each entry has its own number");
  std::set<std::string> names;
  std::set<int32_t> inputs, outputs;
  std::vector<std::set<int32_t>> programs(plan.stages.size());
  for (const Entry &entry : plan.entries) {
    const std::string where = "entry '" + entry.name + "'";
    if (entry.name.empty() || !names.insert(entry.name).second)
      return fault(where + ": the name is empty or used twice");
    HPC_RETURN_IF_ERROR(inRange(where + ": number of micro-batches", entry.microBatches, 1, maxMicroBatches));
    HPC_RETURN_IF_ERROR(checkPorts(entry.inputs, plan.inputs.size(), "input", inputs).at(where));
    HPC_RETURN_IF_ERROR(checkPorts(entry.outputs, plan.outputs.size(), "output", outputs).at(where));
    if (entry.schedules.size() != plan.stages.size())
      return fault(where + ": has " + std::to_string(entry.schedules.size()) + " schedules; the plan has " +
                   std::to_string(plan.stages.size()) + " stages");
    for (size_t s = 0; s < plan.stages.size(); ++s)
      for (size_t i = 0; i < entry.schedules[s].size(); ++i) {
        const int32_t program = entry.schedules[s][i].program;
        HPC_RETURN_IF_ERROR(inRange(where + ", stage " + std::to_string(s) + ": schedule step " + std::to_string(i) + ": program",
                                    program, 0, int64_t(plan.stages[s].programs.size()) - 1));
        programs[s].insert(program);
      }
    HPC_RETURN_IF_ERROR(checkOwnPorts(plan, entry).at(where));
  }
  HPC_RETURN_IF_ERROR(checkAllTaken(plan.inputs, inputs, "input"));
  HPC_RETURN_IF_ERROR(checkAllTaken(plan.outputs, outputs, "output"));
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::string where = "stage " + std::to_string(s);
    if (!plan.stages[s].schedule.empty())
      return fault(where + ": has a schedule beside those of the entries");
    for (size_t p = 0; p < plan.stages[s].programs.size(); ++p)
      if (!plan.stages[s].programs[p].instructions.empty() && !programs[s].count(int32_t(p)))
        return fault(where + ": program " + std::to_string(p) + " is part of no entry");
  }
  return Status::success();
}

Status checkVersion(const Plan &plan) {
  if (!plan.entries.empty())
    return Status::success();
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (size_t p = 0; p < plan.stages[s].programs.size(); ++p)
      for (size_t i = 0; i < plan.stages[s].programs[p].instructions.size(); ++i) {
        const auto *copy = std::get_if<Copy>(&plan.stages[s].programs[p].instructions[i].action);
        if (copy && !(isEverywhere(copy->srcOffset, 0) && isEverywhere(copy->dstOffset, 0)))
          return fault(instructionText(plan, int64_t(s), int64_t(p), int64_t(i)) +
                       ": copies at an offset from its places; only plans with entries have that");
      }
  return Status::success();
}

/// The oldest version whose readers know all of an instruction, in a plan with entries where it varies by step.
static Version versionOf(const Instruction &instruction) {
  const std::vector<const Ref *> places = placesOf(instruction.action);
  if (std::any_of(places.begin(), places.end(), [](const Ref *place) { return place->microBatchStride != 0; }))
    return newestVersion;
  const auto *gemm = std::get_if<Gemm>(&instruction.action);
  const bool hasOffsets = gemm && !(isEverywhere(gemm->a.offset, 0) && isEverywhere(gemm->b.offset, 0) && isEverywhere(gemm->c.offset, 0));
  return hasOffsets ? offsetsVersion : leastVersion;
}

Version versionOf(const Plan &plan) {
  Version version = plan.entries.empty() ? leastVersion : entriesVersion;
  // A reader of 2.8 would pass over the range, and let a position be outside of a state.
  if (plan.entries.empty() && std::any_of(plan.inputs.begin(), plan.inputs.end(), [](const Port &port) { return port.largest.has_value(); }))
    version = offsetsVersion;
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        version = std::max(version, versionOf(instruction));
  return version;
}

} // namespace hpc::plan
