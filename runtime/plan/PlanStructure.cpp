// The plan's structure from the outside in: mesh, ports, tensors, code, then each stage's buffers, bindings, programs,
// schedule. The order matters: each step uses only what the ones before it have shown to be sound.
#include "runtime/plan/PlanStructure.h"

#include "runtime/base/Hash.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"

#include <algorithm>
#include <map>
#include <set>

namespace hpc::plan {

namespace {

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

Status checkLookup(const Lookup &lookup, const Port &port) {
  int64_t rank = int64_t(port.shape.size());
  HPC_RETURN_IF_ERROR(inRange("number of dims", int64_t(lookup.begin.size()), rank, rank));
  HPC_RETURN_IF_ERROR(inRange("number of dims", int64_t(lookup.end.size()), rank, rank));
  for (size_t dim = 0; dim < port.shape.size(); ++dim) {
    HPC_RETURN_IF_ERROR(inRange("begin", lookup.begin[dim], 0, port.shape[dim]));
    HPC_RETURN_IF_ERROR(inRange("end", lookup.end[dim], lookup.begin[dim], port.shape[dim]));
  }
  if (isFloat(port.dtype))
    return fault("by numbers of " + std::string(hpc::name(port.dtype)) + "; only integers name something");
  return Status::success();
}

Status checkPorts(const std::vector<Port> &ports, const char *kind) {
  std::set<std::string> names;
  for (const Port &port : ports) {
    std::string where = std::string(kind) + " '" + port.name + "'";
    if (port.name.empty() || !names.insert(port.name).second)
      return fault(where + ": the name is empty or used twice");
    HPC_RETURN_IF_ERROR(checkShape(port.shape, port.dtype).at(where));
    if (port.onRequest && std::string_view(kind) == "input")
      return fault(std::string(kind) + " '" + port.name + "' is on request; only outputs are");
    if (port.isStepScalar && !port.shape.empty())
      return fault(where + ": a step scalar of shape " + shapeText(port.shape) + "; it has no dims");
    if (port.largest) {
      if (std::string_view(kind) != "input" || !port.isStepScalar || port.dtype != DType::I64)
        return fault(where + ": has a range; only step scalars of i64 have one");
      HPC_RETURN_IF_ERROR(inRange(where + ": its largest value", *port.largest, 0, maxBytes));
    }
    if (!port.defaultInput.empty()) {
      auto other = std::find_if(ports.begin(), ports.end(), [&](const Port &each) { return each.name == port.defaultInput; });
      if (std::string_view(kind) != "input" || other == ports.end() || other->dtype != port.dtype ||
          other->shape != port.shape || !other->defaultInput.empty())
        return fault(where + ": its data may not be those of '" + port.defaultInput +
                     "', which is no input of its type and shape with data of its own");
    }
    for (const Lookup &lookup : port.lookups)
      HPC_RETURN_IF_ERROR(checkLookup(lookup, port).at(where + ": a lookup by '" + lookup.reader + "'"));
  }
  return Status::success();
}

Status checkWeight(const Plan &plan, const Weight &weight) {
  HPC_RETURN_IF_ERROR(checkShape(weight.shape, weight.dtype));
  int64_t bytes = productOf(weight.shape) * byteSize(weight.dtype);
  if (weight.bytes != bytes)
    return fault("has " + std::to_string(weight.bytes) + " bytes; its shape " + shapeText(weight.shape) + " needs " +
                 std::to_string(bytes));
  HPC_RETURN_IF_ERROR(inRange("file", weight.file, -1, int64_t(plan.files.size()) - 1));
  HPC_RETURN_IF_ERROR(inRange("offset", weight.offset, 0, saturated - bytes));
  if (weight.file >= 0 && !weight.inlineData.empty())
    return fault("is in a file and inline at once");
  if (weight.file < 0 && int64_t(weight.inlineData.size()) != bytes)
    return fault("has " + std::to_string(weight.inlineData.size()) + " bytes of inline data; it needs " +
                 std::to_string(bytes));
  int64_t hashes = int64_t(weight.hashes.size());
  if (hashes != 0 && hashes != numHashChunks(bytes))
    return fault("has " + std::to_string(hashes) + " hashes; " + std::to_string(bytes) + " bytes need one per MiB, " +
                 std::to_string(numHashChunks(bytes)));
  return Status::success();
}

int64_t arenaBytes(const Stage &stage, ArenaKind arena) {
  return arena == ArenaKind::Session ? stage.sessionBytes
         : arena == ArenaKind::Work  ? stage.workBytes
                                     : stage.hostBytes;
}

Status checkBuffer(const Stage &stage, const Buffer &buffer) {
  HPC_RETURN_IF_ERROR(checkShape(buffer.box, buffer.dtype));
  int64_t bytes = productOf(buffer.box) * byteSize(buffer.dtype);
  if (buffer.bytes != bytes)
    return fault("has " + std::to_string(buffer.bytes) + " bytes; its box " + shapeText(buffer.box) + " needs " +
                 std::to_string(bytes));
  HPC_RETURN_IF_ERROR(
      inRange("number of slots", buffer.slots, 1, buffer.lifetime == Lifetime::MicroBatch ? maxSlots : 1));
  if (buffer.space == Space::Host && buffer.lifetime == Lifetime::Program)
    return fault("lives for one program and lies in host memory; what is offloaded lives longer");
  if (buffer.offset < 0)
    return fault("has no offset; run the place phase");
  HPC_RETURN_IF_ERROR(inRange("offset", buffer.offset, 0, maxBytes));
  HPC_RETURN_IF_ERROR(inRange("slot stride", buffer.slotStride, buffer.slots > 1 ? bytes : 0, maxBytes));
  if (buffer.offset % alignment != 0 || (buffer.slots > 1 && buffer.slotStride % alignment != 0))
    return fault("offset " + std::to_string(buffer.offset) + " and slot stride " + std::to_string(buffer.slotStride) +
                 " must be multiples of " + std::to_string(alignment));
  int64_t end = addSizes(addSizes(buffer.offset, multiplySizes(buffer.slots - 1, buffer.slotStride)), bytes);
  ArenaKind arena = arenaOf(buffer);
  if (end > arenaBytes(stage, arena))
    return fault("ends at byte " + std::to_string(end) + " of the " + name(arena) + " arena, which has " +
                 std::to_string(arenaBytes(stage, arena)) + " bytes");
  return Status::success();
}

/// The initial content of a buffer: the stored tensor fits it.
Status checkStored(const Plan &plan, const Binding &binding, const Buffer &buffer, int32_t index) {
  HPC_RETURN_IF_ERROR(inRange("weight", index, 0, int64_t(plan.weights.size()) - 1));
  const Weight &weight = plan.weights[index];
  auto isHalf = [](DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; };
  bool isRounded = weight.dtype == DType::F32 && isHalf(buffer.dtype), isWidened = isHalf(weight.dtype) && buffer.dtype == DType::F32,
       isBytes = (weight.dtype == DType::I8 || weight.dtype == DType::U8) && isHalf(buffer.dtype);
  if (buffer.dtype != weight.dtype && !isRounded && !isWidened && !isBytes)
    return fault("weight '" + weight.name + "' is " + hpc::name(weight.dtype) + ", the buffer " +
                 hpc::name(buffer.dtype) + "; only f32 is rounded when it is loaded, to f16 or bf16, only these are widened, to f32, and bytes to these");
  if ((isRounded || isBytes) && !binding.saved.empty())
    return fault("weight '" + weight.name + "' is saved as '" + binding.saved + "' from a buffer that holds it rounded to " +
                 hpc::name(buffer.dtype));
  return checkSlice(plan, binding.slice, productOf(weight.shape), false).at("weight '" + weight.name + "'");
}

/// The same of a weight in int8.
Status checkInt8(const Plan &plan, const Binding &binding, const Buffer &buffer, const Int8Weight &int8) {
  HPC_RETURN_IF_ERROR(inRange("weight", int8.weight, 0, int64_t(plan.weights.size()) - 1));
  const Weight &weight = plan.weights[int8.weight];
  std::string what = "weight '" + weight.name + "'";
  if (weight.dtype != DType::F32)
    return fault(what + " is " + hpc::name(weight.dtype) + "; only f32 is held in int8");
  HPC_RETURN_IF_ERROR(inRange("dim of " + what + " along which lines run", int8.along, 0, int64_t(weight.shape.size()) - 1));
  bool fits = int8.form == Int8Form::Codes    ? buffer.dtype == DType::I8
              : int8.form == Int8Form::Scales ? buffer.dtype == DType::F32
                                              : buffer.dtype == DType::F32 || buffer.dtype == DType::F16 ||
                                                    buffer.dtype == DType::BF16;
  if (!fits)
    return fault(what + " is held in int8, and a buffer of " + hpc::name(buffer.dtype) + " does not take its " +
                 name(int8.form) + "; codes are i8, scales f32, values f32, f16 or bf16");
  if (!binding.saved.empty())
    return fault(what + " is saved as '" + binding.saved + "' from a buffer that holds it in int8");
  std::vector<int64_t> shape = weight.shape;
  if (int8.form == Int8Form::Scales)
    shape.erase(shape.begin() + int8.along);
  return checkSlice(plan, binding.slice, productOf(shape), false).at(what);
}

Status checkBinding(const Plan &plan, const Stage &stage, const Binding &binding) {
  HPC_RETURN_IF_ERROR(inRange("buffer", binding.buffer, 0, int64_t(stage.buffers.size()) - 1));
  const Buffer &buffer = stage.buffers[binding.buffer];
  if (buffer.lifetime != Lifetime::Session)
    return fault(bufferText(stage, binding.buffer) + " has lifetime " + name(buffer.lifetime) + ", not session");
  std::string where = bufferText(stage, binding.buffer);
  if (const auto *stored = std::get_if<StoredWeight>(&binding.start))
    HPC_RETURN_IF_ERROR(checkStored(plan, binding, buffer, stored->weight).at(where));
  if (const auto *int8 = std::get_if<Int8Weight>(&binding.start))
    HPC_RETURN_IF_ERROR(checkInt8(plan, binding, buffer, *int8).at(where));
  if (binding.saved.empty() && !binding.shape.empty())
    return fault(where + ": has a shape to be saved with, " + shapeText(binding.shape) + ", but no key");
  if (!binding.saved.empty())
    HPC_RETURN_IF_ERROR(checkShape(binding.shape, buffer.dtype).at(where));
  int64_t elements = binding.saved.empty() ? productOf(binding.slice.view) : productOf(binding.shape);
  HPC_RETURN_IF_ERROR(checkSlice(plan, binding.slice, elements, false).at(where));
  int64_t boxBytes = multiplySizes(productOf(binding.slice.box), byteSize(buffer.dtype));
  if (boxBytes != buffer.bytes)
    return fault(where + ": the slice's box " + shapeText(binding.slice.box) + " has " + std::to_string(boxBytes) +
                 " bytes, the buffer " + std::to_string(buffer.bytes));
  return Status::success();
}

Status checkScheduleSteps(const Plan &plan, const Stage &stage) {
  for (size_t i = 0; i < stage.schedule.size(); ++i) {
    const ScheduleStep &step = stage.schedule[i];
    std::string where = "schedule step " + std::to_string(i) + ": ";
    HPC_RETURN_IF_ERROR(inRange(where + "program", step.program, 0, int64_t(stage.programs.size()) - 1));
    bool isUpdate = stage.programs[step.program].kind == ProgramKind::Update;
    HPC_RETURN_IF_ERROR(inRange(where + (isUpdate ? "micro-batch of an update" : "micro-batch"), step.microBatch, 0,
                                isUpdate ? 0 : plan.microBatches - 1));
  }
  return Status::success();
}

Status checkModule(const CodeModule &module) {
  bool isHost = module.target == "x86-64";
  if (!isHost && module.target != "ptx")
    return fault("of an unknown target; this program knows x86-64 and ptx");
  if (isHost && module.bytes.compare(0, 4,
                                     "\x7f"
                                     "ELF") != 0)
    return fault("is not an ELF shared object");
  HPC_RETURN_IF_ERROR(inRange("compute capability", module.capability, 0, isHost ? 0 : 1000));
  std::set<std::string> symbols;
  for (const std::string &symbol : module.symbols) {
    if (symbol.empty() || symbol.find('\0') != std::string::npos || !symbols.insert(symbol).second)
      return fault("lists symbol '" + symbol + "', which is empty, no name, or there twice");
    // dlsym settles it at load time; a name that occurs nowhere is found here, before any rank starts.
    if (module.bytes.find(isHost ? symbol + '\0' : symbol) == std::string::npos)
      return fault("lists symbol '" + symbol + "', which its " + std::to_string(module.bytes.size()) +
                   " bytes do not define");
  }
  return Status::success();
}

/// By symbol: the targets whose modules define it.
using Definitions = std::map<std::string, std::set<std::string>>;

Status checkModules(const Plan &plan) {
  Definitions seen;
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    const CodeModule &module = plan.modules[i];
    const std::string where = "code module " + std::to_string(i) + " '" + module.target + "'";
    HPC_RETURN_IF_ERROR(checkModule(module).at(where));
    for (const std::string &symbol : module.symbols)
      if (!seen[symbol].insert(module.target).second)
        return fault(where + ": defines '" + symbol + "', as another module of its target does");
  }
  return Status::success();
}

Definitions definitionsOf(const Plan &plan) {
  Definitions definitions;
  for (const CodeModule &module : plan.modules)
    for (const std::string &symbol : module.symbols)
      definitions[symbol].insert(module.target);
  return definitions;
}

Status checkSymbol(const Plan &plan, const Instruction &instruction, const Definitions &definitions) {
  const Kernel *kernel = std::get_if<Kernel>(&instruction.action);
  if (!kernel)
    return Status::success();
  auto targets = definitions.find(kernel->symbol);
  for (const CodeModule &module : plan.modules)
    if (targets == definitions.end() || !targets->second.count(module.target))
      return fault("calls '" + kernel->symbol + "', which none of the plan's code for '" + module.target + "' defines");
  return Status::success();
}

Status checkPrograms(const Plan &plan, int64_t index, const Definitions &definitions) {
  const Stage &stage = plan.stages[index];
  std::set<std::pair<ProgramKind, int32_t>> programs;
  for (size_t p = 0; p < stage.programs.size(); ++p) {
    const Program &program = stage.programs[p];
    std::string where = "stage " + std::to_string(index) + ", program " + programText(program);
    HPC_RETURN_IF_ERROR(inRange(where + ": chunk", program.chunk, 0, maxChunks - 1));
    if (!programs.emplace(program.kind, program.chunk).second)
      return fault(where + ": is there twice");
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      Status status = checkInstruction(plan, stage, program.instructions[i]);
      if (status.ok())
        status = checkSymbol(plan, program.instructions[i], definitions);
      if (!status.ok())
        return status.at(instructionText(plan, index, int64_t(p), int64_t(i)));
    }
  }
  return Status::success();
}

Status checkStage(const Plan &plan, int64_t index, const Definitions &definitions) {
  const Stage &stage = plan.stages[index];
  std::string where = "stage " + std::to_string(index);
  for (int64_t bytes : {stage.sessionBytes, stage.workBytes, stage.hostBytes})
    HPC_RETURN_IF_ERROR(inRange(where + ": bytes of an arena", bytes, 0, maxBytes));
  HPC_RETURN_IF_ERROR(inRange(where + ": number of requests", int64_t(stage.requests.size()), 0, maxRequests));
  for (size_t i = 0; i < stage.requests.size(); ++i)
    HPC_RETURN_IF_ERROR(inRange(where + ": slots of request " + std::to_string(i), stage.requests[i], 1, maxSlots));
  for (size_t i = 0; i < stage.buffers.size(); ++i)
    HPC_RETURN_IF_ERROR(checkBuffer(stage, stage.buffers[i]).at(where + ", " + bufferText(stage, int64_t(i))));
  for (size_t i = 0; i < stage.bindings.size(); ++i)
    HPC_RETURN_IF_ERROR(checkBinding(plan, stage, stage.bindings[i]).at(where + ", binding " + std::to_string(i)));
  HPC_RETURN_IF_ERROR(checkPrograms(plan, index, definitions));
  return checkScheduleSteps(plan, stage).at(where);
}

} // namespace

/// Of one entry: what instructions and schedules are made of. The rest is the same for all entries.
static Status checkEntry(const Plan &plan) {
  HPC_RETURN_IF_ERROR(checkPorts(plan.inputs, "input"));
  HPC_RETURN_IF_ERROR(checkPorts(plan.outputs, "output"));
  const Definitions definitions = definitionsOf(plan);
  for (size_t i = 0; i < plan.stages.size(); ++i)
    HPC_RETURN_IF_ERROR(checkStage(plan, int64_t(i), definitions));
  return Status::success();
}

Status checkStructure(const Plan &plan) {
  HPC_RETURN_IF_ERROR(checkMesh(plan));
  HPC_RETURN_IF_ERROR(checkEntries(plan));
  for (const WeightFile &file : plan.files)
    if (file.path.empty() || file.path.find('\0') != std::string::npos)
      return fault("weight file '" + file.path + "': not the name of a file");
  for (const Weight &weight : plan.weights)
    HPC_RETURN_IF_ERROR(checkWeight(plan, weight).at("weight '" + weight.name + "'"));
  HPC_RETURN_IF_ERROR(checkModules(plan));
  if (plan.entries.empty())
    return checkEntry(plan);
  for (size_t i = 0; i < plan.entries.size(); ++i)
    HPC_RETURN_IF_ERROR(checkEntry(planOf(plan, i)).at("entry '" + plan.entries[i].name + "'"));
  return Status::success();
}

} // namespace hpc::plan
