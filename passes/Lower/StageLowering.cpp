// One stage: its programs receive, forward and drain, and every op of nn and dist that is left.
#include "passes/Lower/StageLowering.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"
#include "runtime/plan/Schedule.h"

namespace hpc {

using plan::CollectiveKind;
using plan::Lifetime;

DType elementDType(Value value) { return dtypeOf(value.getType()); }

static Status unsupported(Operation *op, const Twine &message) {
  return Status::error(
      ErrorKind::Unsupported,
      (op->getName().getStringRef() + " of ONNX node '" + nodeName(op->getLoc()) + "': " + message).str());
}

static std::string stringAttr(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<StringAttr>(name);
  return attr ? attr.str() : std::string();
}
static plan::Reason reasonOf(Operation *op) {
  return {nodeName(op->getLoc()), modulePath(op->getLoc()), stringAttr(op, "cause"), stringAttr(op, "avoid")};
}

/// The op whose buffer a value shares: through reshapes and fill_tails, which are aliases here.
static Value aliasRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<nn::ReshapeOp, dist::FillTailOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

// ---- buffers ------------------------------------------------------------------------------------

int32_t StageLowering::addBuffer(Value value, Lifetime lifetime) {
  plan::Buffer buffer;
  buffer.name = nodeName(value.getLoc());
  buffer.dtype = elementDType(value);
  buffer.box = nn::shapeOf(value).vec();
  buffer.lifetime = lifetime;
  buffer.bytes = nn::tensorType(value).getNumElements() * byteSize(buffer.dtype);
  buffer.slots = lifetime == Lifetime::MicroBatch ? plan::inferenceSlots(tables.microBatches()) : 1;
  stage.buffers.push_back(std::move(buffer));
  int32_t number = int32_t(stage.buffers.size()) - 1;
  buffers[value] = number;
  return number;
}

int32_t StageLowering::addRequest() {
  stage.requests.push_back(int32_t(plan::inferenceSlots(tables.microBatches())));
  return int32_t(stage.requests.size()) - 1;
}

int32_t StageLowering::addResult(Value value) {
  return addBuffer(value, sent.contains(value) ? Lifetime::MicroBatch : Lifetime::Program);
}

void StageLowering::alias(Value value, Value of) { buffers[value] = buffers.lookup(of); }

void StageLowering::emit(plan::Action action, const std::string &node) {
  forward.instructions.push_back({std::move(action), node});
}

void StageLowering::note(Operation *op) {
  auto add = [&](int64_t id, Value value, Value typed) {
    if (id >= 0)
      values.push_back({id, index, 0, int64_t(forward.instructions.size()) - 1, place(value), typed});
  };
  if (forward.instructions.empty())
    return;
  auto idOf = [](Operation *maker) {
    auto id = maker ? maker->getAttrOfType<IntegerAttr>(valueIdAttrName) : IntegerAttr();
    if (!id && isa_and_nonnull<dist::AllReduceOp, dist::PermuteOp>(maker))
      id = maker->getAttrOfType<IntegerAttr>(movedIdAttrName); // the same value, elsewhere
    return id && maker->getNumResults() == 1 ? id.getInt() : -1;
  };
  // What a region yields is known by the op inside that makes it.
  if (auto fused = dyn_cast<nn::FusedOp>(op)) {
    for (auto [inside, result] : llvm::zip(fused.getBody().front().getTerminator()->getOperands(), op->getResults()))
      add(idOf(inside.getDefiningOp()), result, inside);
  } else if (op->getNumResults() == 1) {
    add(idOf(op), op->getResult(0), op->getResult(0));
  }
}

// ---- the stage's edges --------------------------------------------------------------------------

void StageLowering::postReceives(ArrayRef<StageInput> inputs) {
  for (const StageInput &input : inputs) {
    if (input.channel < 0)
      continue;
    int32_t buffer = addBuffer(input.value, Lifetime::MicroBatch);
    int64_t perStage = tables.ranksPerStage();
    plan::Recv recv;
    recv.dst = {buffer, 0};
    recv.bytes = stage.buffers[buffer].bytes;
    recv.peer.values.clear();
    for (int64_t rank = 0; rank < perStage; ++rank)
      recv.peer.values.push_back(input.peerStage * perStage + rank);
    recv.channel = input.channel;
    recv.request = addRequest();
    recv.reason = input.reason;
    receive.instructions.push_back({recv, input.reason.node});
    emit(plan::Wait{recv.request}, input.reason.node);
  }
}

void StageLowering::loadInputs(ArrayRef<StageInput> inputs) {
  for (const StageInput &input : inputs) {
    if (input.graphPort < 0)
      continue;
    int32_t buffer = addBuffer(input.value, Lifetime::Program);
    emit(plan::LoadInput{input.graphPort, {buffer, 0}, tables.slice(dist::shardingOf(input.value))},
         stage.buffers[buffer].name);
  }
}

/// Buffers that a send reads must outlive the program. What the forward program computes itself goes to a slot of its
/// own; the rest is copied there when it is sent.
void StageLowering::prepareSends(ArrayRef<StageOutput> outputs) {
  for (const StageOutput &output : outputs)
    if (output.channel >= 0)
      if (Value root = aliasRoot(output.value);
          root.getDefiningOp() && !isa<nn::ParameterOp, nn::ConstantOp>(root.getDefiningOp()))
        sent.insert(root);
}

void StageLowering::storeAndSend(ArrayRef<StageOutput> outputs) {
  for (const StageOutput &output : outputs) {
    if (output.graphPort < 0)
      continue;
    dist::Sharding sharding = dist::shardingOf(output.value);
    emit(plan::StoreOutput{output.graphPort, place(output.value), tables.slice(sharding), tables.owner(sharding)},
         nodeName(output.value.getLoc()));
  }
  for (const StageOutput &output : outputs) {
    if (output.channel < 0)
      continue;
    plan::Ref src = place(output.value);
    int64_t bytes = stage.buffers[src.buffer].bytes;
    if (!sent.contains(aliasRoot(output.value))) {
      int32_t copy = addBuffer(output.value, Lifetime::MicroBatch);
      emit(plan::Copy{src, {copy, 0}, bytes}, output.reason.node);
      src = {copy, 0};
    }
    plan::Send send;
    send.src = src;
    send.bytes = bytes;
    send.peer.values.clear();
    for (int64_t rank = 0; rank < tables.ranksPerStage(); ++rank)
      send.peer.values.push_back(output.peerStage * tables.ranksPerStage() + rank);
    send.channel = output.channel;
    send.request = addRequest();
    send.reason = output.reason;
    emit(send, output.reason.node);
    drain.instructions.push_back({plan::Wait{send.request}, output.reason.node});
  }
}

/// The programs that the schedule runs, and the schedule.
Status StageLowering::bindSchedule() {
  int64_t slots = plan::inferenceSlots(tables.microBatches());
  plan::StageSchedule schedule = plan::inferenceSchedule(index, stages, tables.microBatches(), slots);
  auto runs = [&](const plan::Program &program) {
    char letter = plan::programLetter(program.kind);
    return llvm::any_of(schedule, [&](const plan::ScheduleAction &action) { return action.program == letter; });
  };
  for (plan::Program *program : {&receive, &forward, &drain}) {
    if (!runs(*program))
      continue;
    for (LoweredValue &value : values)
      if (program == &forward)
        value.program = int64_t(stage.programs.size());
    stage.programs.push_back(std::move(*program));
  }
  Expected<std::vector<plan::ScheduleStep>> steps = plan::bindSchedule(schedule, stage.programs);
  if (!steps.ok())
    return steps.status();
  stage.schedule = *steps;
  return Status::success();
}

// ---- ops ----------------------------------------------------------------------------------------

Status StageLowering::lowerParameter(nn::ParameterOp op) {
  int32_t buffer = addBuffer(op.getResult(), Lifetime::Session);
  stage.buffers[buffer].name = op.getName().str();
  stage.bindings.push_back({buffer, tables.slice(dist::shardingOf(op.getResult())),
                            plan::StoredTensor{weights.tensor(op)}, "", {}});
  return Status::success();
}

Status StageLowering::lowerConstant(nn::ConstantOp op) {
  int32_t buffer = addBuffer(op.getResult(), Lifetime::Session);
  stage.bindings.push_back({buffer, tables.slice(dist::replicated(nn::shapeOf(op.getResult()).vec())),
                            plan::StoredTensor{weights.constant(op)}, "", {}});
  return Status::success();
}

Status StageLowering::lowerFused(nn::FusedOp op) {
  plan::Kernel kernel;
  kernel.symbol = op.getSymbol().str();
  auto rows = op->getAttrOfType<IntegerAttr>("rows");
  if (!rows)
    return Status::error(ErrorKind::Internal, "nn.fused '" + kernel.symbol + "' has no code; run hpc-emit-kernels");
  kernel.rows = rows.getInt();
  for (Value result : op.getResults())
    addResult(result);
  auto addArg = [&](Value value, bool isWritten) {
    int64_t bytes = nn::tensorType(value).getNumElements() * byteSize(elementDType(value));
    kernel.args.push_back({place(value), bytes, !isWritten, isWritten});
  };
  for (Value operand : op.getOperands())
    addArg(operand, false);
  for (Value result : op.getResults())
    addArg(result, true);
  if (auto scalars = op->getAttrOfType<ArrayAttr>("scalars"))
    for (auto scalar : scalars.getAsRange<DictionaryAttr>()) {
      dist::SubDim sub = scalar.getAs<dist::ShardingAttr>("dim").getValue().dims.at(0).at(0);
      bool isExtent = scalar.getAs<StringAttr>("kind").getValue() == "extent";
      kernel.scalars.push_back(tables.table([&](const auto &at) {
        dist::Range range = dist::heldDigits(sub, tables.mesh(), at);
        return isExtent ? range.extent : range.start;
      }));
    }
  emit(std::move(kernel), nodeName(op.getLoc()));
  return Status::success();
}

Status StageLowering::lowerAllReduce(dist::AllReduceOp op) {
  plan::Collective collective;
  collective.kind = CollectiveKind::AllReduce;
  collective.reduce = op.getKind() == dist::CollectiveReduction::sum   ? plan::ReduceKind::Sum
                      : op.getKind() == dist::CollectiveReduction::max ? plan::ReduceKind::Max
                                                                       : plan::ReduceKind::Min;
  for (auto axis : op.getAxes().getAsRange<StringAttr>())
    collective.axes.push_back(axis.str());
  collective.dtype = elementDType(op.getResult());
  collective.count = nn::tensorType(op.getResult()).getNumElements();
  collective.src = place(op.getOperand());
  // In place where nobody else reads the operand and its buffer is this program's own temporary.
  Value operand = op.getOperand();
  bool isOwn = operand.hasOneUse() && aliasRoot(operand) == operand && !sent.contains(op.getResult()) &&
               stage.buffers[collective.src.buffer].lifetime == Lifetime::Program;
  if (isOwn)
    alias(op.getResult(), operand);
  else
    addResult(op.getResult());
  collective.dst = place(op.getResult());
  collective.reason = reasonOf(op);
  emit(std::move(collective), nodeName(op.getLoc()));
  return Status::success();
}

Status StageLowering::lowerPermute(dist::PermuteOp op) {
  plan::Collective collective;
  collective.kind = CollectiveKind::Permute;
  for (auto axis : op.getAxes().getAsRange<StringAttr>())
    collective.axes.push_back(axis.str());
  collective.dtype = elementDType(op.getResult());
  collective.count = nn::tensorType(op.getResult()).getNumElements();
  collective.src = place(op.getOperand());
  addResult(op.getResult());
  collective.dst = place(op.getResult());
  collective.source = tables.permuteSource(op.getBefore().getValue(), op.getAfter().getValue(), collective.axes);
  collective.reason = reasonOf(op);
  emit(std::move(collective), nodeName(op.getLoc()));
  return Status::success();
}

Status StageLowering::lowerRaw(Operation *op, CollectiveKind kind, int64_t count) {
  plan::Collective collective;
  collective.kind = kind;
  collective.axes = {stringAttr(op, "axis")};
  collective.dtype = elementDType(op->getResult(0));
  collective.count = count;
  collective.src = place(op->getOperand(0));
  addResult(op->getResult(0));
  collective.dst = place(op->getResult(0));
  collective.reason = reasonOf(op);
  emit(std::move(collective), nodeName(op->getLoc()));
  return Status::success();
}

Status StageLowering::lower(Operation *op) {
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return lowerParameter(parameter);
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    return lowerConstant(constant);
  if (auto matmul = dyn_cast<nn::MatmulOp>(op))
    return lowerMatmul(matmul);
  if (auto fused = dyn_cast<nn::FusedOp>(op))
    return lowerFused(fused);
  if (isa<nn::ReshapeOp>(op)) {
    alias(op->getResult(0), op->getOperand(0));
    return Status::success();
  }
  if (auto fill = dyn_cast<dist::FillTailOp>(op)) {
    // Read by matmuls alone, as an exact extent of their contracted dim.
    alias(fill.getResult(), fill.getOperand());
    const dist::DimSharding dim = dist::shardingOf(fill.getResult()).dims[fill.getDims().front()];
    exactK[fill.getResult()] = tables.table([&](const auto &at) {
      int64_t extent = dist::heldDigits(dim.front(), tables.mesh(), at).extent;
      for (size_t sub = 1; sub < dim.size(); ++sub)
        extent *= dist::boxSize(dim[sub], tables.mesh());
      return extent;
    });
    return Status::success();
  }
  auto elements = [](Value value) { return nn::tensorType(value).getNumElements(); };
  if (auto reduce = dyn_cast<dist::AllReduceOp>(op))
    return lowerAllReduce(reduce);
  if (auto permute = dyn_cast<dist::PermuteOp>(op))
    return lowerPermute(permute);
  if (auto gather = dyn_cast<dist::RawAllGatherOp>(op))
    return lowerRaw(op, CollectiveKind::AllGather, elements(gather.getOperand()));
  if (auto scatter = dyn_cast<dist::RawReduceScatterOp>(op))
    return lowerRaw(op, CollectiveKind::ReduceScatter, elements(scatter.getResult()));
  if (auto exchange = dyn_cast<dist::RawAllToAllOp>(op))
    return lowerRaw(op, CollectiveKind::AllToAll,
                    elements(exchange.getOperand()) / tables.mesh().size(exchange.getAxis().str()));
  return Status::error(ErrorKind::Internal, "no lowering of " + op->getName().getStringRef().str() + " at ONNX node '" +
                                                nodeName(op->getLoc()) + "'");
}

Status StageLowering::run(Block &body, ArrayRef<StageInput> inputs, ArrayRef<StageOutput> outputs) {
  prepareSends(outputs);
  // 1. Receives, and waits for them and for what the slot still sends.
  postReceives(inputs);
  size_t firstWait = forward.instructions.size();
  loadInputs(inputs);
  // 2. The ops.
  for (Operation &op : body.without_terminator()) {
    if (auto matmul = dyn_cast<nn::MatmulOp>(op);
        matmul && !nn::tensorType(matmul.getResult()).getElementType().isF32())
      return unsupported(&op, "matrix products are f32 here; got " + Twine(name(elementDType(matmul.getResult()))));
    HPC_RETURN_IF_ERROR(lower(&op));
    if (!isa<nn::ParameterOp, nn::ConstantOp>(op))
      note(&op);
  }
  // 3. Results out; the waits of step 1 for the sends that are known only now.
  storeAndSend(outputs);
  std::vector<plan::Instruction> waits = drain.instructions;
  forward.instructions.insert(forward.instructions.begin() + firstWait, waits.begin(), waits.end());
  for (LoweredValue &value : values)
    value.instruction += int64_t(waits.size());
  return bindSchedule();
}

} // namespace hpc
