// The programs of one stage, each with its receives and drains, and every op of nn and dist that is left.
#include "passes/Lower/StageLowering.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/ElementType.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/Interfaces/Cost.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/LibraryKernel.h"
#include "compiler/Location.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/Providers.h"
#include "compiler/StepPart.h"
#include "passes/Lower/KernelWork.h"
#include "runtime/plan/Schedule.h"

namespace hpc {

using plan::CollectiveKind;
using plan::Lifetime;

DType elementDType(Value value) { return dtypeOf(value.getType()); }
int64_t bytesOf(Value value) { return nn::tensorType(value).getNumElements() * byteSize(elementDType(value)); }

static Status unsupported(Operation *op, const Twine &message) {
  return Status::error(
      ErrorKind::Unsupported,
      (op->getName().getStringRef() + " of ONNX node '" + nodeName(op->getLoc()) + "': " + message).str());
}

static plan::Reason reasonOf(CollectiveOpInterface op) {
  auto text = [](StringAttr attr) { return attr ? attr.str() : std::string(); };
  return {nodeName(op->getLoc()), modulePath(op->getLoc()), text(op.getCauseAttr()), text(op.getAvoidAttr())};
}

// ---- buffers ------------------------------------------------------------------------------------

int32_t StageLowering::addBuffer(Value value, Lifetime lifetime) {
  plan::Buffer buffer;
  buffer.name = nodeName(value.getLoc());
  buffer.dtype = elementDType(value);
  buffer.box = nn::shapeOf(value).vec();
  buffer.lifetime = lifetime;
  buffer.bytes = bytesOf(value);
  stage.buffers.push_back(std::move(buffer));
  int32_t number = int32_t(stage.buffers.size()) - 1;
  buffers[value] = number;
  return number;
}

int32_t StageLowering::addSpanBuffer(Value value, const plan::SlotSpan &span) {
  int32_t number = addBuffer(value, Lifetime::MicroBatch);
  stage.buffers[number].slots = plan::slotsNeeded(schedule, span);
  return number;
}

int32_t StageLowering::addRequest(const plan::SlotSpan &span) {
  stage.requests.push_back(int32_t(plan::slotsNeeded(schedule, span)));
  return int32_t(stage.requests.size()) - 1;
}

int32_t StageLowering::addResult(Value value) {
  auto outside = readers.find(value);
  return outside == readers.end() ? addBuffer(value, Lifetime::Program)
                                  : addSpanBuffer(value, {current, outside->second});
}

void StageLowering::alias(Value value, Value of) { buffers[value] = buffers.lookup(of); }

void StageLowering::emit(plan::Action action, const std::string &node) {
  compute.instructions.push_back({std::move(action), node});
  compute.instructions.back().part = part;
}

static plan::Part partOf(StepPart part) {
  switch (part) {
  case StepPart::Forward:
    return plan::Part::Forward;
  case StepPart::Repeated:
    return plan::Part::Repeated;
  case StepPart::Gradient:
    return plan::Part::Gradient;
  case StepPart::Update:
    break;
  }
  return plan::Part::Update;
}

/// What a region makes first is what it runs with: a norm of forward also makes what only gradients read.
static StepPart stepPartOf(Operation *op) {
  StepPart part = hpc::stepPartOf(op->getLoc());
  auto region = dyn_cast<nn::FusedOp>(op);
  if (!region)
    return part;
  std::optional<StepPart> first;
  for (Value made : region.getBody().front().getTerminator()->getOperands())
    if (Operation *maker = made.getDefiningOp())
      first = std::min(first.value_or(StepPart::Update), hpc::stepPartOf(maker->getLoc()));
  return first.value_or(part);
}

plan::Part StageLowering::partOfProgram() const {
  if (plan::isPerStep(current.kind))
    return plan::Part::Update;
  bool isBackward = current.kind == plan::ProgramKind::Backward || current.kind == plan::ProgramKind::WeightGradient;
  return isBackward ? plan::Part::Gradient : plan::Part::Forward;
}

/// Notes what the op's instruction computes. A product that adds to a sum shows the addition's result. Aliases show what is noted already, and a sum over micro-batches is whole in the last one alone.
void StageLowering::note(Operation *op) {
  if (compute.instructions.empty() || (isBufferAlias(op) && !addsInProduct(op)) || isa<dist::AccumulateOp>(op))
    return;
  if (auto product = dyn_cast<nn::MatmulOp>(op); product && summandOf(product))
    return;
  for (OpResult result : op->getResults()) {
    Value computed = result;
    if (auto fused = dyn_cast<nn::FusedOp>(op)) // the op inside, whose result others in the region read too
      if (Value inside = fused.getBody().front().getTerminator()->getOperand(result.getResultNumber()); inside.getDefiningOp())
        computed = inside;
    noted.push_back({index, 0, int32_t(compute.instructions.size()) - 1, place(result)});
    values.push_back(computed);
  }
}

// ---- the stage's edges --------------------------------------------------------------------------

plan::ByCoord StageLowering::ranksOf(int64_t otherStage) const {
  plan::ByCoord ranks;
  ranks.values.clear();
  for (int64_t rank = 0; rank < tables.ranksPerStage(); ++rank)
    ranks.values.push_back(otherStage * tables.ranksPerStage() + rank);
  return ranks;
}

/// Whether a value that is read outside lies in a buffer that outlives the program: what it computes or receives. The
/// rest (weights, graph inputs, what another program keeps for this one) is copied.
static bool outlives(Value root, ArrayRef<ProgramInput> inputs) {
  if (Operation *producer = root.getDefiningOp())
    return !isa<nn::ParameterOp, nn::ConstantOp>(producer);
  return llvm::any_of(inputs, [&](const ProgramInput &input) { return input.value == root && input.channel >= 0; });
}

/// Who reads results outside: the drain of what is sent, other programs of the stage.
Status StageLowering::findReaders(ArrayRef<ProgramOutput> outputs) {
  readers.clear();
  for (const ProgramOutput &output : outputs) {
    bool isSum = aliasRoot(output.value).getDefiningOp<dist::AccumulateOp>() != nullptr;
    if (output.reader && plan::isPerStep(output.reader->kind) && !plan::isPerStep(current.kind) && !isSum &&
        tables.microBatches() > 1)
      return Status::error(ErrorKind::Unsupported, "value of ONNX node '" + nodeName(output.value.getLoc()) +
                                                       "' is made in each micro-batch and read once a step, but is no "
                                                       "sum over micro-batches; use --micro-batches=1");
    if (plan::isPerStep(current.kind))
      continue; // an update sends and waits itself, and only its own later rounds read what it makes
    if (output.channel >= 0)
      readers[aliasRoot(output.value)].push_back(drainProgram());
    if (output.reader)
      readers[aliasRoot(output.value)].push_back(*output.reader);
  }
  return Status::success();
}

/// Values of other stages that an update reads come while it runs: all posts of a round, then its waits.
void StageLowering::exchange(ArrayRef<ProgramInput> inputs) {
  std::vector<plan::Wait> waits;
  for (const ProgramInput &input : inputs) {
    if (input.channel < 0)
      continue;
    int32_t buffer = addBuffer(input.value, Lifetime::Program);
    plan::Recv recv;
    recv.dst = {buffer, 0};
    recv.bytes = stage.buffers[buffer].bytes;
    recv.peer = ranksOf(input.peerStage);
    recv.channel = input.channel;
    recv.request = addRequest({current, {current}});
    recv.reason = input.reason;
    waits.push_back({recv.request});
    emit(recv, input.reason.node);
  }
  for (const plan::Wait &wait : waits)
    emit(wait, "");
}

void StageLowering::postReceives(ArrayRef<ProgramInput> inputs) {
  if (plan::isPerStep(current.kind))
    return exchange(inputs);
  plan::StageProgram receiver{plan::receiveOf(current.kind), current.chunk};
  for (const ProgramInput &input : inputs) {
    if (input.channel < 0)
      continue;
    plan::SlotSpan span{receiver, {current}};
    if (auto outside = readers.find(input.value); outside != readers.end())
      llvm::append_range(span.last, outside->second);
    int32_t buffer = addSpanBuffer(input.value, span);
    plan::Recv recv;
    recv.dst = {buffer, 0};
    recv.bytes = stage.buffers[buffer].bytes;
    recv.peer = ranksOf(input.peerStage);
    recv.channel = input.channel;
    recv.request = addRequest({receiver, {current}});
    recv.reason = input.reason;
    receive.instructions.push_back({recv, input.reason.node});
    receive.instructions.back().part = part;
    emit(plan::Wait{recv.request}, input.reason.node);
  }
}

Status StageLowering::loadInputs(ArrayRef<ProgramInput> inputs) {
  for (const ProgramInput &input : inputs) {
    if (input.source)
      alias(input.value, input.source);
    if (input.port.isState())
      HPC_RETURN_IF_ERROR(bindState(input));
    if (input.graphPort < 0)
      continue;
    int32_t buffer = addBuffer(input.value, Lifetime::Program);
    emit(plan::LoadInput{input.graphPort, {buffer, 0}, tables.slice(dist::shardingOf(input.value))},
         stage.buffers[buffer].name);
  }
  return Status::success();
}

/// A value that leaves, but lies in a buffer that ends with the program, gets one that outlives it.
void StageLowering::copyOut(ArrayRef<ProgramInput> inputs, ArrayRef<ProgramOutput> outputs) {
  llvm::DenseSet<Value> copied;
  for (const ProgramOutput &output : outputs) {
    Value root = aliasRoot(output.value);
    auto outside = readers.find(root);
    if (outside == readers.end() || outlives(root, inputs) || !copied.insert(output.value).second)
      continue;
    plan::Ref src = place(output.value);
    int32_t copy = addSpanBuffer(output.value, {current, outside->second});
    emit(plan::Copy{src, {copy, 0}, bytesOf(output.value)}, nodeName(output.value.getLoc()));
  }
}

void StageLowering::store(const ProgramOutput &output) {
  dist::Sharding sharding = dist::shardingOf(output.value);
  bool isSum = aliasRoot(output.value).getDefiningOp<dist::AccumulateOp>() != nullptr;
  emit(plan::StoreOutput{output.graphPort, place(output.value), tables.slice(sharding), tables.owner(sharding, isSum)},
       nodeName(output.value.getLoc()));
  compute.instructions.back().onRequest = output.onRequest;
}

void StageLowering::storeRequested(Operation *op, ArrayRef<ProgramOutput> outputs) {
  for (const ProgramOutput &output : outputs)
    if (output.onRequest && output.value.getDefiningOp() == op)
      store(output);
}

void StageLowering::storeAndSend(ArrayRef<ProgramInput> inputs, ArrayRef<ProgramOutput> outputs) {
  for (const ProgramOutput &output : outputs)
    if (output.graphPort >= 0 && !(output.onRequest && output.value.getDefiningOp()))
      store(output);
  copyOut(inputs, outputs);
  for (const ProgramOutput &output : outputs) {
    if (output.channel < 0)
      continue;
    plan::Send send;
    send.src = place(output.value);
    send.bytes = bytesOf(output.value);
    send.peer = ranksOf(output.peerStage);
    send.channel = output.channel;
    bool isPerStep = plan::isPerStep(current.kind);
    send.request = addRequest({current, {isPerStep ? current : drainProgram()}});
    send.reason = output.reason;
    emit(send, output.reason.node);
    std::vector<plan::Instruction> &waits = isPerStep ? updateEnd : drain.instructions;
    waits.push_back({plan::Wait{send.request}, output.reason.node});
    waits.back().part = part;
  }
}

Status StageLowering::bindSchedule() {
  if (!stage.programs.empty() && plan::isPerStep(stage.programs.back().kind))
    llvm::append_range(stage.programs.back().instructions, updateEnd);
  Expected<std::vector<plan::ScheduleStep>> steps = plan::bindSchedule(schedule, stage.programs);
  if (!steps.ok())
    return steps.status().at("stage " + std::to_string(index));
  stage.schedule = *steps;
  return Status::success();
}

// ---- ops ----------------------------------------------------------------------------------------

/// The slice of what is stored, given that of the part: the outermost sub-dim of each dim grows, and starts later.
static plan::Slice placePart(const plan::Slice &part, const dist::Sharding &sharding, ArrayRef<int64_t> stored,
                             ArrayRef<int64_t> starts) {
  plan::Slice slice;
  size_t sub = 0;
  for (auto [dim, subDims] : llvm::enumerate(sharding.dims)) {
    if (subDims.empty()) { // one element, which has no sub-dim of its own
      slice.view.push_back(stored[dim]);
      slice.start.push_back(starts[dim]);
      slice.extent.push_back(1);
      slice.box.push_back(1);
      continue;
    }
    size_t outermost = slice.view.size();
    int64_t inner = 1;
    for (const dist::SubDim &other : llvm::drop_begin(subDims))
      inner *= other.size;
    for (size_t end = sub + subDims.size(); sub < end; ++sub) {
      slice.view.push_back(part.view[sub]);
      slice.start.push_back(part.start[sub]);
      slice.extent.push_back(part.extent[sub]);
      slice.box.push_back(part.box[sub]);
    }
    slice.view[outermost] = stored[dim] / inner; // hpc-bind-parts checks that both divide
    for (int64_t &start : slice.start[outermost].values)
      start += starts[dim] / inner;
  }
  return slice;
}

/// How a parameter's buffer starts.
static decltype(plan::Binding::start) startOf(nn::ParameterOp op, int32_t weight) {
  if (!op.getInt8Along())
    return plan::StoredWeight{weight};
  return plan::Int8Weight{weight, int32_t(*op.getInt8Along()), nn::int8FormOf(op)};
}

Status StageLowering::lowerParameter(nn::ParameterOp op) {
  std::string key = op.getName().str() + " ";
  llvm::raw_string_ostream(key) << op.getResult().getType();
  if (op.isPart())
    llvm::raw_string_ostream(key) << " from " << op.getStorageAttr().getStarts();
  if (op.getInt8Along())
    key += " in int8 along " + std::to_string(*op.getInt8Along()) + ", form " + std::to_string(int(nn::int8FormOf(op)));
  auto [known, isNew] = weightBuffers.try_emplace(key, 0);
  if (!isNew) {
    buffers[op.getResult()] = known->second;
    return Status::success();
  }
  int32_t buffer = known->second = addBuffer(op.getResult(), Lifetime::Session);
  std::string name = stage.buffers[buffer].name = op.getName().str();
  dist::Sharding sharding = dist::shardingOf(op.getResult());
  plan::Binding binding{buffer, tables.slice(sharding), startOf(op, weights.weight(op)), "", {}};
  if (op.isPart())
    binding.slice = placePart(binding.slice, sharding, *op.getStoredShape(), *op.getPartStarts());
  if (written.count(name)) {
    binding.saved = name;
    binding.shape = dist::globalShape(sharding);
    if (!stateBuffers.emplace(name, buffer).second)
      return unsupported(op, "'" + name + "' is written and held in two layouts in stage " + Twine(index));
  }
  stage.bindings.push_back(std::move(binding));
  return Status::success();
}

Status StageLowering::lowerConstant(nn::ConstantOp op) {
  int32_t buffer = addBuffer(op.getResult(), Lifetime::Session);
  stage.bindings.push_back({buffer,
                            tables.slice(dist::replicated(nn::shapeOf(op.getResult()).vec())),
                            plan::StoredWeight{weights.constant(op)},
                            "",
                            {}});
  return Status::success();
}

Status StageLowering::lowerFused(nn::FusedOp op) {
  plan::Kernel kernel;
  kernel.symbol = op.getSymbol().str();
  if (!op.getRows() || !op.getScalars())
    return Status::error(ErrorKind::Internal, "nn.fused '" + kernel.symbol + "' has no code; run hpc-emit-kernels");
  kernel.rows = int64_t(*op.getRows());
  if (std::optional<ArrayRef<int64_t>> launch = op.getLaunch())
    kernel.launch = {(*launch)[0], (*launch)[1], (*launch)[2]};
  if (op.getAttentionAttr())
    kernel.attention = toPlan(op.getAttentionAttr());
  if (op.getEpilogueAttr())
    kernel.epilogue = toPlan(op.getEpilogueAttr());
  for (Operation &inside : op.getBody().front()) {
    if (auto cost = dyn_cast<CostOpInterface>(inside); cost && effortOf(&inside) == Effort::Product)
      kernel.flops += cost.getFlops();
    kernel.operations += elementOperations(&inside);
  }
  dist::AccumulateOp sum = op.getAddsOver() ? accumulationOf(op.getResult(0)) : dist::AccumulateOp();
  if (op.getAddsOver() && !sum)
    return Status::error(ErrorKind::Internal, "nn.fused '" + kernel.symbol + "' adds to a sum that is none");
  if (sum)
    HPC_RETURN_IF_ERROR(lowerAccumulator(sum));
  for (OpResult result : op.getResults())
    if (int64_t operand = op.inPlaceOperand(result.getResultNumber()); operand >= 0)
      alias(result, op.getOperand(unsigned(operand)));
    else if (sum)
      alias(result, sum.getResult());
    else
      addResult(result);
  auto addArg = [&](Value value, bool isWritten) { kernel.args.push_back({place(value), bytesOf(value), !isWritten, isWritten}); };
  for (Value operand : op.getOperands())
    addArg(operand, false);
  for (Value result : op.getResults())
    addArg(result, true);
  for (auto scalar : op.getScalarsAttr().getAsRange<nn::KernelScalarAttr>()) {
    dist::SubDim sub = cast<dist::ShardingAttr>(scalar.getDim()).getValue().dims.at(0).at(0);
    kernel.scalars.push_back(tables.table(sub.axes, [&](const auto &at) {
      dist::Range range = dist::heldDigits(sub, tables.mesh(), sub.axes.empty() ? at : dist::further(at, tables.mesh(), sub.axes.back(), scalar.getShift()));
      return scalar.getKind() == nn::KernelScalarKind::extent ? range.extent : range.start;
    }));
  }
  if (!sum) {
    emit(std::move(kernel), nodeName(op.getLoc()));
    return Status::success();
  }
  // The first micro-batch reads nothing of what the others add to, so it is a call of its own.
  plan::ByCoord later = laterMicroBatches(sum.getAxes()), first = later;
  for (int64_t &value : first.values)
    value = 1 - value;
  emit(kernel, nodeName(op.getLoc()));
  compute.instructions.back().when = first;
  kernel.args.back().reads = true;
  emit(std::move(kernel), nodeName(op.getLoc()));
  compute.instructions.back().when = later;
  return Status::success();
}

static CollectiveKind kindOf(CollectiveOpInterface op) {
  switch (op.getCollectiveKind()) {
  case dist::ReshardStep::AllGather:
    return CollectiveKind::AllGather;
  case dist::ReshardStep::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case dist::ReshardStep::AllToAll:
    return CollectiveKind::AllToAll;
  case dist::ReshardStep::Permute:
    return CollectiveKind::Permute;
  default:
    return CollectiveKind::AllReduce;
  }
}

Status StageLowering::lowerCollective(CollectiveOpInterface op) {
  Value operand = op->getOperand(0), result = op->getResult(0);
  plan::Collective collective;
  collective.kind = kindOf(op);
  collective.reduce = op.getReduction().value_or(ReduceKind::Sum);
  collective.axes = op.getGroup();
  collective.dtype = elementDType(result);
  // The elements of a block: what a rank gives to a gather, what it gets of a scatter.
  collective.count = std::min(nn::tensorType(operand).getNumElements(), nn::tensorType(result).getNumElements());
  if (collective.kind == CollectiveKind::AllToAll)
    collective.count /= tables.mesh().size(collective.axes[0]);
  collective.src = place(operand);
  // In place where nobody else reads the operand and its buffer is this program's own temporary.
  bool isInPlace = collective.kind == CollectiveKind::AllReduce && operand.hasOneUse() && aliasRoot(operand) == operand &&
                   !readers.count(result) && stage.buffers[collective.src.buffer].lifetime == Lifetime::Program;
  if (isInPlace)
    alias(result, operand);
  else
    addResult(result);
  collective.dst = place(result);
  if (collective.kind == CollectiveKind::Permute)
    collective.source = op.getStep() ? tables.permuteSource(*op.getStep())
                                     : tables.permuteSource(cast<dist::RawPermuteOp>(op.getOperation()));
  collective.reason = reasonOf(op);
  emit(std::move(collective), nodeName(op->getLoc()));
  return Status::success();
}

Status StageLowering::lowerAlias(Operation *op) {
  alias(op->getResult(0), op->getOperand(0));
  if (auto block = dyn_cast<dist::RawBlockOp>(op)) {
    std::vector<std::string> along = {block.getCut().getValue().dims[0][0].axes[0]};
    if (block.getSkew())
      along.push_back(block.getSkew()->str());
    blocks[block.getResult()] = {tables.table(along, [&](const auto &at) { return block.rangeAt(tables.mesh(), at).start; }),
                                 tables.table(along, [&](const auto &at) { return block.rangeAt(tables.mesh(), at).extent; })};
  }
  auto fill = dyn_cast<dist::FillTailOp>(op);
  if (!fill)
    return Status::success();
  // Read by matmuls alone, as an exact extent of their contracted dim.
  const dist::DimSharding dim = dist::shardingOf(fill.getResult()).dims[fill.getDims().front()];
  exactK[fill.getResult()] = tables.table(dim.front().axes, [&](const auto &at) {
    int64_t extent = dist::heldDigits(dim.front(), tables.mesh(), at).extent;
    for (size_t sub = 1; sub < dim.size(); ++sub)
      extent *= dist::boxSize(dim[sub], tables.mesh());
    return extent;
  });
  return Status::success();
}

static Status noLowering(Operation *op) {
  return Status::error(ErrorKind::Internal, "no lowering of " + op->getName().getStringRef().str() + " at ONNX node '" +
                                                nodeName(op->getLoc()) + "'");
}

Status StageLowering::lower(Operation *op) {
  switch (providerOf(op)) {
  case Provider::Storage:
    if (auto constant = dyn_cast<nn::ConstantOp>(op))
      return lowerConstant(constant);
    return lowerParameter(cast<nn::ParameterOp>(op));
  case Provider::Library:
    if (auto matmul = dyn_cast<nn::MatmulOp>(op))
      return lowerMatmul(matmul);
    break;
  case Provider::Generated:
    return lowerFused(cast<nn::FusedOp>(op));
  case Provider::Alias:
    return lowerAlias(op);
  case Provider::Collective:
    return lowerCollective(cast<CollectiveOpInterface>(op));
  case Provider::Time:
    return lowerAccumulate(cast<dist::AccumulateOp>(op));
  case Provider::None:
  case Provider::Region:
  case Provider::Structure:
    break;
  }
  return noLowering(op);
}

Status StageLowering::addProgram(plan::StageProgram program, Block &body, ArrayRef<ProgramInput> inputs,
                                 ArrayRef<ProgramOutput> outputs, bool isLast) {
  current = program;
  part = partOfProgram();
  writtenEarly.clear();
  receive = {plan::receiveOf(program.kind), program.chunk, {}};
  compute = {program.kind, program.chunk, {}};
  drain = {plan::drainOf(program.kind), program.chunk, {}};
  if (plan::isPerStep(program.kind) && !stage.programs.empty() && plan::isPerStep(stage.programs.back().kind)) {
    compute = std::move(stage.programs.back()); // the next round
    stage.programs.pop_back();
  }
  size_t firstValue = noted.size();
  // 1. What comes in.
  HPC_RETURN_IF_ERROR(findReaders(outputs));
  postReceives(inputs);
  HPC_RETURN_IF_ERROR(loadInputs(inputs));
  // 2. The ops.
  for (Operation &op : body.without_terminator()) {
    part = partOf(stepPartOf(&op));
    HPC_RETURN_IF_ERROR(lower(&op));
    if (!isa<nn::ParameterOp, nn::ConstantOp>(op) && !(op.getNumResults() == 1 && isSeenAsWindows(op.getResult(0))))
      note(&op);
    storeRequested(&op, outputs);
    if (isLast)
      writeEarly(&op, inputs, outputs);
  }
  part = partOfProgram();
  // 3. What goes out. A stage lists the programs that do something.
  storeAndSend(inputs, outputs);
  HPC_RETURN_IF_ERROR(writeStates(outputs));
  if (!receive.instructions.empty())
    stage.programs.push_back(std::move(receive));
  for (size_t i = firstValue; i < noted.size(); ++i)
    noted[i].program = int64_t(stage.programs.size());
  stage.programs.push_back(std::move(compute));
  if (!drain.instructions.empty())
    stage.programs.push_back(std::move(drain));
  return Status::success();
}

} // namespace hpc
