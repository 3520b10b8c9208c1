// Values that live longer than a micro-batch: states, written parameters, sums over micro-batches. A written value and what it
// replaces are one buffer; every read of the old value comes before the write, which is done as soon as the last of them is
// in the last round of a program, else at its end.
#include "passes/Lower/StageLowering.h"

#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Location.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/Providers.h"

namespace hpc {

using plan::Lifetime;

plan::ByCoord StageLowering::laterMicroBatches(ArrayAttr axes) const {
  const std::vector<std::string> along = dist::axesOf(axes);
  return tables.table(along, [&](const std::vector<int64_t> &at) -> int64_t {
    return llvm::any_of(along, [&](const std::string &axis) { return at[tables.mesh().index(axis)] != 0; });
  });
}

Status StageLowering::lowerAccumulator(dist::AccumulateOp op) {
  if (plan::isPerStep(current.kind))
    return Status::error(ErrorKind::Internal, "the sum over micro-batches of ONNX node '" + nodeName(op.getLoc()) +
                                                  "' is made in a program that runs once a step");
  addBuffer(op.getResult(), Lifetime::Step);
  return Status::success();
}

Status StageLowering::lowerAccumulate(dist::AccumulateOp op) {
  if (buffers.count(op.getResult())) // the product that makes the term adds it
    return Status::success();
  HPC_RETURN_IF_ERROR(lowerAccumulator(op));
  plan::Accumulate sum;
  sum.src = place(op.getOperand());
  sum.dst = place(op.getResult());
  sum.dtype = elementDType(op.getResult());
  sum.count = nn::tensorType(op.getResult()).getNumElements();
  sum.add = laterMicroBatches(op.getAxes());
  emit(std::move(sum), nodeName(op.getLoc()));
  return Status::success();
}

/// How a rank holds the rows of all micro-batches: [rows] cut over time and data becomes [micro-batches, rows of one] cut over data, which lies one
/// micro-batch after the other.
static Expected<dist::Sharding> ofAllMicroBatches(dist::Sharding sharding, const dist::Mesh &mesh) {
  if (!dist::isPerMicroBatch(sharding, mesh))
    return sharding;
  const std::vector<std::string> time = mesh.axesOf(dist::AxisRole::Time);
  dist::DimSharding &rows = sharding.dims[0];
  const int64_t count = mesh.size(time[0]);
  if (rows.empty() || rows[0].axes.empty() || rows[0].axes[0] != time[0] || rows[0].size % count != 0)
    return Status::error(ErrorKind::Internal, "sharding '" + dist::toString(sharding) + "' of a state: micro-batches do not cut its first dim first and evenly");
  rows[0].axes.erase(rows[0].axes.begin());
  rows[0].size /= count;
  rows.insert(rows.begin(), {count, {}});
  return sharding;
}

Status StageLowering::bindState(const ProgramInput &input) {
  auto [known, isNew] = stateBuffers.try_emplace(input.port.state, 0);
  if (!isNew) {
    buffers[input.value] = known->second;
    return Status::success();
  }
  const int32_t number = known->second = addBuffer(input.value, Lifetime::Session);
  const dist::Sharding sharding = dist::shardingOf(input.value);
  Expected<dist::Sharding> whole = ofAllMicroBatches(sharding, tables.mesh());
  if (!whole.ok())
    return whole.status().at("state '" + input.port.state + "'");
  plan::Buffer &buffer = stage.buffers[number];
  buffer.name = input.port.state;
  if (*whole != sharding) {
    constexpr int64_t ofDevice = 16; // what a pointer of a kernel there is a multiple of (plan::Kernel)
    if (buffer.bytes % ofDevice != 0 && hasTarget(cast<BlockArgument>(input.value).getOwner()->getParentOp()->getParentOfType<ModuleOp>(), deviceTarget))
      return Status::error(ErrorKind::Unsupported, "--micro-batches=" + std::to_string(tables.microBatches()) + ": the rows that a micro-batch has of state '" + buffer.name + "' take " +
                                                       std::to_string(buffer.bytes) + " bytes, and on a device they begin at multiples of " + std::to_string(ofDevice) +
                                                       "; choose --max-length as a multiple of 8, or --micro-batches=1");
    microBatchStrides[number] = buffer.bytes;
    buffer.box[0] *= tables.microBatches();
    buffer.bytes *= tables.microBatches();
  }
  stage.bindings.push_back({number, tables.slice(*whole), plan::Number{input.port.initial}, input.port.state,
                            dist::globalShape(sharding)});
  return Status::success();
}

/// Whether nothing behind `op` in its block reads a parameter or state, under whatever shape.
static bool isReadNoMore(const std::string &name, Operation *op, ArrayRef<ProgramInput> inputs) {
  SmallVector<Value> held;
  for (auto parameter : op->getBlock()->getOps<nn::ParameterOp>())
    if (parameter.getName() == name)
      held.push_back(parameter.getResult());
  for (const ProgramInput &input : inputs)
    if (input.port.state == name)
      held.push_back(input.value);
  for (size_t i = 0; i < held.size(); ++i)
    for (Operation *user : held[i].getUsers()) {
      if (isBufferAlias(user))
        held.push_back(user->getResult(0));
      else if (user != op && !user->isBeforeInBlock(op))
        return false;
    }
  return true;
}

void StageLowering::writeEarly(Operation *op, ArrayRef<ProgramInput> inputs, ArrayRef<ProgramOutput> outputs) {
  for (const ProgramOutput &output : outputs) {
    if (output.writes.empty() || output.value.getDefiningOp() != op)
      continue;
    auto target = stateBuffers.find(output.writes);
    plan::Ref from = place(output.value);
    if (target == stateBuffers.end() || stage.buffers[from.buffer].lifetime != Lifetime::Program ||
        !isReadNoMore(output.writes, op, inputs))
      continue;
    emit(plan::Copy{from, placeIn(target->second), bytesOf(output.value)}, nodeName(op->getLoc()));
    writtenEarly.insert(output.writes);
  }
}

Status StageLowering::writeStates(ArrayRef<ProgramOutput> outputs) {
  struct Write {
    plan::Ref from, to;
    int64_t bytes;
    std::string node;
  };
  std::vector<Write> writes;
  for (const ProgramOutput &output : outputs) {
    if (output.writes.empty() || writtenEarly.count(output.writes))
      continue;
    auto target = stateBuffers.find(output.writes);
    if (target == stateBuffers.end())
      return Status::error(ErrorKind::Internal, "stage " + std::to_string(index) + " writes '" + output.writes +
                                                    "', of which it holds nothing");
    Write write{place(output.value), placeIn(target->second), bytesOf(output.value), nodeName(output.value.getLoc())};
    if (write.from.buffer == write.to.buffer)
      continue;
    // One state may become what another was: all are read before the first is written.
    if (stage.buffers[write.from.buffer].lifetime == Lifetime::Session) {
      plan::Buffer old = stage.buffers[write.from.buffer];
      old.lifetime = Lifetime::Program;
      old.box = nn::shapeOf(output.value).vec();
      old.bytes = write.bytes;
      stage.buffers.push_back(std::move(old));
      plan::Ref kept{int32_t(stage.buffers.size()) - 1, 0};
      emit(plan::Copy{write.from, kept, write.bytes}, write.node);
      write.from = kept;
    }
    writes.push_back(std::move(write));
  }
  // A later round may still read what an earlier one writes.
  std::vector<plan::Instruction> &end = plan::isPerStep(current.kind) ? updateEnd : compute.instructions;
  for (const Write &write : writes) {
    end.push_back({plan::Copy{write.from, write.to, write.bytes}, write.node});
    end.back().part = plan::Part::Update;
  }
  return Status::success();
}

} // namespace hpc
