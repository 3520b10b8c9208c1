// The plan's structure from the outside in: mesh, ports, tensors, then each stage's buffers, weights, programs,
// schedule. The order matters: each step uses only what the ones before it have shown to be sound.
#include "runtime/plan/PlanStructure.h"

#include "runtime/base/Hash.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <set>

namespace hpc::plan {

namespace {

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

Status inRange(const std::string &what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return Status::success();
  return fault(what + " is " + std::to_string(value) + "; it must be in " + std::to_string(least) + ".." +
               std::to_string(most));
}

Status checkMesh(const Plan &plan) {
  std::set<std::string> names;
  int64_t ranks = 1;
  for (const Axis &axis : plan.axes) {
    if (axis.name.empty() || !names.insert(axis.name).second)
      return fault("mesh: axis name '" + axis.name + "' is empty or used twice");
    HPC_RETURN_IF_ERROR(inRange("mesh: size of axis '" + axis.name + "'", axis.size, 1, maxRanks));
    ranks = multiplySizes(ranks, axis.size);
  }
  HPC_RETURN_IF_ERROR(inRange("number of stages", int64_t(plan.stages.size()), 1, maxRanks));
  HPC_RETURN_IF_ERROR(inRange("number of ranks", multiplySizes(ranks, int64_t(plan.stages.size())), 1, maxRanks));
  return inRange("number of micro-batches", plan.microBatches, 1, maxMicroBatches);
}

/// Dims >= 0 and at most maxBytes in all.
Status checkShape(const std::vector<int64_t> &shape, DType dtype) {
  HPC_RETURN_IF_ERROR(inRange("number of dims", int64_t(shape.size()), 0, maxDims));
  for (int64_t size : shape)
    HPC_RETURN_IF_ERROR(inRange("a size of shape " + shapeText(shape), size, 0, maxBytes));
  return inRange("bytes of shape " + shapeText(shape), multiplySizes(productOf(shape), byteSize(dtype)), 0, maxBytes);
}

Status checkPorts(const std::vector<Port> &ports, const char *kind) {
  std::set<std::string> names;
  for (const Port &port : ports) {
    std::string where = std::string(kind) + " '" + port.name + "'";
    if (port.name.empty() || !names.insert(port.name).second)
      return fault(where + ": the name is empty or used twice");
    HPC_RETURN_IF_ERROR(checkShape(port.shape, port.dtype).at(where));
  }
  return Status::success();
}

Status checkTensor(const Plan &plan, const Tensor &tensor) {
  HPC_RETURN_IF_ERROR(checkShape(tensor.shape, tensor.dtype));
  int64_t bytes = productOf(tensor.shape) * byteSize(tensor.dtype);
  if (tensor.bytes != bytes)
    return fault("has " + std::to_string(tensor.bytes) + " bytes; its shape " + shapeText(tensor.shape) + " needs " +
                 std::to_string(bytes));
  HPC_RETURN_IF_ERROR(inRange("file", tensor.file, -1, int64_t(plan.files.size()) - 1));
  HPC_RETURN_IF_ERROR(inRange("offset", tensor.offset, 0, saturated - bytes));
  if (tensor.file >= 0 && !tensor.inlineData.empty())
    return fault("is in a file and inline at once");
  if (tensor.file < 0 && int64_t(tensor.inlineData.size()) != bytes)
    return fault("has " + std::to_string(tensor.inlineData.size()) + " bytes of inline data; it needs " +
                 std::to_string(bytes));
  int64_t hashes = int64_t(tensor.hashes.size());
  if (hashes != 0 && hashes != numHashChunks(bytes))
    return fault("has " + std::to_string(hashes) + " hashes; " + std::to_string(bytes) + " bytes need one per MiB, " +
                 std::to_string(numHashChunks(bytes)));
  return Status::success();
}

int64_t arenaBytes(const Stage &stage, MemoryClass memory) {
  return memory == MemoryClass::Weight  ? stage.weightBytes
         : memory == MemoryClass::State ? stage.stateBytes
                                        : stage.workBytes;
}

Status checkBuffer(const Stage &stage, const Buffer &buffer) {
  HPC_RETURN_IF_ERROR(checkShape(buffer.box, buffer.dtype));
  int64_t bytes = productOf(buffer.box) * byteSize(buffer.dtype);
  if (buffer.bytes != bytes)
    return fault("has " + std::to_string(buffer.bytes) + " bytes; its box " + shapeText(buffer.box) + " needs " +
                 std::to_string(bytes));
  HPC_RETURN_IF_ERROR(inRange("number of slots", buffer.slots, 1, buffer.memory == MemoryClass::Slot ? maxSlots : 1));
  if (buffer.offset < 0)
    return fault("has no offset; run the place phase");
  HPC_RETURN_IF_ERROR(inRange("offset", buffer.offset, 0, maxBytes));
  HPC_RETURN_IF_ERROR(inRange("slot stride", buffer.slotStride, buffer.slots > 1 ? bytes : 0, maxBytes));
  if (buffer.offset % alignment != 0 || (buffer.slots > 1 && buffer.slotStride % alignment != 0))
    return fault("offset " + std::to_string(buffer.offset) + " and slot stride " + std::to_string(buffer.slotStride) +
                 " must be multiples of " + std::to_string(alignment));
  int64_t end = addSizes(addSizes(buffer.offset, multiplySizes(buffer.slots - 1, buffer.slotStride)), bytes);
  if (end > arenaBytes(stage, buffer.memory))
    return fault("ends at byte " + std::to_string(end) + " of an arena of " +
                 std::to_string(arenaBytes(stage, buffer.memory)) + " bytes (" + name(buffer.memory) + ")");
  return Status::success();
}

Status checkBinding(const Plan &plan, const Stage &stage, const WeightBinding &binding) {
  HPC_RETURN_IF_ERROR(inRange("tensor", binding.tensor, 0, int64_t(plan.tensors.size()) - 1));
  HPC_RETURN_IF_ERROR(inRange("buffer", binding.buffer, 0, int64_t(stage.buffers.size()) - 1));
  const Tensor &tensor = plan.tensors[binding.tensor];
  const Buffer &buffer = stage.buffers[binding.buffer];
  std::string where = "tensor '" + tensor.name + "' in " + bufferText(stage, binding.buffer);
  if (buffer.memory != MemoryClass::Weight)
    return fault(where + ": the buffer is of class " + name(buffer.memory) + ", not weight");
  if (buffer.dtype != tensor.dtype)
    return fault(where + ": the tensor is " + hpc::name(tensor.dtype) + ", the buffer " + hpc::name(buffer.dtype));
  HPC_RETURN_IF_ERROR(checkSlice(plan, binding.slice, productOf(tensor.shape), false).at(where));
  int64_t boxBytes = multiplySizes(productOf(binding.slice.box), byteSize(tensor.dtype));
  if (boxBytes != buffer.bytes)
    return fault(where + ": the slice's box " + shapeText(binding.slice.box) + " has " + std::to_string(boxBytes) +
                 " bytes, the buffer " + std::to_string(buffer.bytes));
  return Status::success();
}

/// Slots that every Slot buffer of a program has: a run in slot s needs more than s.
int64_t slotsOf(const Plan &plan, const Stage &stage, const Program &program) {
  int64_t slots = maxSlots;
  for (const Instruction &instruction : program.instructions)
    for (const Access &access : accessesOf(plan, instruction))
      if (stage.buffers[access.ref.buffer].memory == MemoryClass::Slot)
        slots = std::min(slots, stage.buffers[access.ref.buffer].slots);
  return slots;
}

Status checkScheduleSteps(const Plan &plan, const Stage &stage) {
  std::vector<int64_t> slots;
  for (const Program &program : stage.programs)
    slots.push_back(slotsOf(plan, stage, program));
  for (size_t i = 0; i < stage.schedule.size(); ++i) {
    const ScheduleStep &step = stage.schedule[i];
    std::string where = "schedule step " + std::to_string(i) + ": ";
    HPC_RETURN_IF_ERROR(inRange(where + "program", step.program, 0, int64_t(stage.programs.size()) - 1));
    HPC_RETURN_IF_ERROR(inRange(where + "micro-batch", step.microBatch, 0, plan.microBatches - 1));
    HPC_RETURN_IF_ERROR(
        inRange(where + "slot of program " + stage.programs[step.program].name, step.slot, 0, slots[step.program] - 1));
  }
  return Status::success();
}

/// dlsym settles it at load time; a name that occurs nowhere in the code is found here, before any rank starts.
Status checkSymbol(const Plan &plan, const Instruction &instruction, std::set<std::string> &known) {
  const Kernel *kernel = std::get_if<Kernel>(&instruction.action);
  if (!kernel || known.count(kernel->symbol))
    return Status::success();
  if (kernel->symbol.empty() || kernel->symbol.find('\0') != std::string::npos ||
      plan.code.find(kernel->symbol + '\0') == std::string::npos)
    return fault("calls '" + kernel->symbol + "', which the plan's code (" + std::to_string(plan.code.size()) +
                 " bytes) does not define");
  known.insert(kernel->symbol);
  return Status::success();
}

Status checkStage(const Plan &plan, int64_t index, std::set<std::string> &symbols) {
  const Stage &stage = plan.stages[index];
  std::string where = "stage " + std::to_string(index);
  for (int64_t bytes : {stage.weightBytes, stage.stateBytes, stage.workBytes})
    HPC_RETURN_IF_ERROR(inRange(where + ": bytes of an arena", bytes, 0, maxBytes));
  HPC_RETURN_IF_ERROR(inRange(where + ": number of requests", stage.requests, 0, maxRequests));
  for (size_t i = 0; i < stage.buffers.size(); ++i)
    HPC_RETURN_IF_ERROR(checkBuffer(stage, stage.buffers[i]).at(where + ", " + bufferText(stage, int64_t(i))));
  for (size_t i = 0; i < stage.weights.size(); ++i)
    HPC_RETURN_IF_ERROR(
        checkBinding(plan, stage, stage.weights[i]).at(where + ", weight binding " + std::to_string(i)));

  std::set<std::string> names;
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    const Program &program = stage.programs[p];
    if (program.name.empty() || !names.insert(program.name).second)
      return fault(where + ": program name '" + program.name + "' is empty or used twice");
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      Status status = checkInstruction(plan, stage, program.instructions[i]);
      if (status.ok())
        status = checkSymbol(plan, program.instructions[i], symbols);
      if (!status.ok())
        return status.at(instructionText(plan, index, int64_t(p), int64_t(i)));
    }
  }
  return checkScheduleSteps(plan, stage).at(where);
}

} // namespace

Status checkStructure(const Plan &plan) {
  HPC_RETURN_IF_ERROR(checkMesh(plan));
  HPC_RETURN_IF_ERROR(checkPorts(plan.inputs, "input"));
  HPC_RETURN_IF_ERROR(checkPorts(plan.outputs, "output"));
  for (const WeightFile &file : plan.files)
    if (file.path.empty() || file.path.find('\0') != std::string::npos)
      return fault("weight file '" + file.path + "': not the name of a file");
  for (const Tensor &tensor : plan.tensors)
    HPC_RETURN_IF_ERROR(checkTensor(plan, tensor).at("tensor '" + tensor.name + "'"));
  if (!plan.code.empty() && plan.code.compare(0, 4,
                                              "\x7f"
                                              "ELF") != 0)
    return fault("the plan's code is not an ELF shared object");
  std::set<std::string> symbols;
  for (size_t i = 0; i < plan.stages.size(); ++i)
    HPC_RETURN_IF_ERROR(checkStage(plan, int64_t(i), symbols));
  return Status::success();
}

} // namespace hpc::plan
