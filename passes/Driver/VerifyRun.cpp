// An observer of the run keeps every known value as its instruction left it. Then the interpreter runs the same program beside it:
// it computes each op from the plan's own operands, compares, and goes on with the plan's result.
#include "passes/Driver/VerifyRun.h"

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Interpreter/Follower.h"
#include "compiler/Location.h"
#include "passes/Lower/Tables.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/Packing.h"
#include "runtime/plan/PlanNames.h"

#include <cmath>
#include <mutex>

namespace hpc {

static func::FuncOp mainFunction(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

/// Buffers that may hold another form of a weight while the plan runs.
static llvm::DenseSet<int32_t> packedBuffers(const plan::Stage &stage) {
  llvm::DenseSet<int32_t> packed;
  for (const plan::Program &program : stage.programs)
    for (const plan::Instruction &instruction : program.instructions)
      if (const auto *gemm = std::get_if<plan::Gemm>(&instruction.action); gemm && plan::packable(*gemm).packed)
        packed.insert(plan::packable(*gemm).place.buffer);
  return packed;
}

/// By the id of an instruction of a program, its index. -1, which says that a value is there from the beginning, stands for
/// the first one.
static llvm::DenseMap<int64_t, int64_t> indicesOf(const plan::Program &program) {
  llvm::DenseMap<int64_t, int64_t> indices;
  for (auto [index, instruction] : llvm::enumerate(program.instructions))
    indices[instruction.id] = int64_t(index);
  indices[-1] = 0;
  return indices;
}

namespace {
/// A value as ranks had it.
struct Recorded {
  NotedValue noted;
  Value value;
  int64_t instruction; ///< index in its program
  plan::Slice slice;
  DType dtype;
  std::vector<int64_t> box;
  bool isPerMicroBatch; ///< cut along micro-batches; others are the same in all of them
  std::vector<std::shared_ptr<const std::vector<std::byte>>> bytes; ///< by coordinate of the mesh; equal ones share theirs
};

struct Recording {
  Recording(const plan::Plan &plan, const dist::Mesh &mesh) : plan(plan), mesh(mesh) {}

  const plan::Plan &plan;
  const dist::Mesh mesh;
  std::vector<Recorded> values;
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<size_t>> made; ///< by stage, program, instruction
  DenseMap<Value, std::vector<size_t>> ofValue;
  std::mutex mutex;

  /// Row-major in the mesh, whose axes of role time are micro-batches.
  size_t coordinateOf(int64_t rankCoordinate, int64_t microBatch) const {
    int64_t coordinate = 0, scale = 1;
    for (const dist::Mesh::Axis &axis : llvm::reverse(mesh.axes)) {
      bool isTime = axis.role == dist::AxisRole::Time;
      int64_t digit = isTime ? microBatch : rankCoordinate % axis.size;
      rankCoordinate = isTime ? rankCoordinate : rankCoordinate / axis.size;
      coordinate += digit * scale;
      scale *= axis.size;
    }
    return size_t(coordinate);
  }

  const plan::Instruction &instructionOf(const Recorded &value) const {
    return plan.stages[size_t(value.noted.stage)].programs[size_t(value.noted.program)].instructions[size_t(value.instruction)];
  }

  /// Whether a value's instruction computes it.
  bool isComputed(const Recorded &value) const {
    const plan::Instruction &instruction = instructionOf(value);
    bool computes = std::holds_alternative<plan::Gemm>(instruction.action) || std::holds_alternative<plan::Kernel>(instruction.action);
    return computes && llvm::any_of(plan::accessesOf(plan, instruction), [&](const plan::BufferAccess &access) {
             return access.write && access.ref.buffer == value.noted.place.buffer;
           });
  }

  void add(const NotedValue &noted, Value value, int64_t instruction, const Tables &tables) {
    dist::Sharding sharding = dist::shardingOf(value);
    auto isTime = [&](const std::string &axis) {
      return mesh.index(axis) >= 0 && mesh.axes[size_t(mesh.index(axis))].role == dist::AxisRole::Time;
    };
    auto type = cast<RankedTensorType>(value.getType());
    Recorded recorded{noted, value, instruction, tables.slice(sharding), dtypeOf(type), type.getShape().vec(),
                      llvm::any_of(dist::cutAxes(sharding), isTime), {}};
    // A buffer with terms of ranks may have their sum a little later, and one with those of micro-batches has the sum so far.
    if (!sharding.partial.empty() && (llvm::any_of(sharding.partial, isTime) || !isComputed(recorded)))
      return;
    made[{noted.stage, noted.program, instruction}].push_back(values.size());
    ofValue[value].push_back(values.size());
    recorded.bytes.resize(size_t(mesh.numCoordinates()));
    values.push_back(std::move(recorded));
  }

  static Status neverMade(Value value, int64_t stage) {
    return Status::error(ErrorKind::Plan, "plan differs at ONNX node '" + nodeName(value.getLoc()) + "': no instruction of stage " +
                                              std::to_string(stage) + " makes it");
  }
  /// After the run.
  Status checkAllMade() const {
    for (const Recorded &value : values)
      if (llvm::none_of(value.bytes, [](const auto &each) { return each != nullptr; }))
        return neverMade(value.value, value.noted.stage);
    return Status::success();
  }

  Status addAll(const Lowered &lowered) {
    Tables tables(mesh);
    std::vector<llvm::DenseSet<int32_t>> packed;
    std::vector<std::vector<llvm::DenseMap<int64_t, int64_t>>> indices; // by stage and program
    for (const plan::Stage &stage : plan.stages) {
      packed.push_back(packedBuffers(stage));
      std::vector<llvm::DenseMap<int64_t, int64_t>> &ofStage = indices.emplace_back();
      for (const plan::Program &program : stage.programs)
        ofStage.push_back(indicesOf(program));
    }
    for (auto [noted, value] : llvm::zip_equal(lowered.noted, lowered.values)) {
      const auto &ofProgram = indices[size_t(noted.stage)][size_t(noted.program)];
      auto index = ofProgram.find(noted.completedBy);
      if (index == ofProgram.end())
        return neverMade(value, noted.stage);
      if (dist::shardingAttrOf(value) && !packed[size_t(noted.stage)].contains(noted.place.buffer))
        add(noted, value, index->second, tables);
    }
    return Status::success();
  }

  Status take(const ObservedInstruction &seen) {
    auto found = made.find({seen.place.stage, seen.program, seen.instruction});
    if (found == made.end())
      return Status::success();
    for (size_t number : found->second) {
      const plan::Ref &place = values[number].noted.place;
      const std::byte *bytes = seen.arena.at(place, seen.microBatch);
      int64_t size = elementCount(values[number].box) * byteSize(values[number].dtype);
      std::lock_guard<std::mutex> lock(mutex);
      auto &all = values[number].bytes;
      auto known = llvm::find_if(all, [&](const auto &each) { return each && std::equal(each->begin(), each->end(), bytes); });
      all[coordinateOf(seen.place.coordinate, seen.microBatch)] =
          known != all.end() ? *known : std::make_shared<std::vector<std::byte>>(bytes, bytes + size);
    }
    return Status::success();
  }

  /// "rank 0 (stage 0), 'forward' of micro-batch 1, instruction 13 (kernel of node 'c0')"
  std::string placeText(const Recorded &value, int64_t coordinate) const {
    const NotedValue &noted = value.noted;
    const plan::Program &program = plan.stages[size_t(noted.stage)].programs[size_t(noted.program)];
    const plan::Instruction &instruction = instructionOf(value);
    auto [rank, microBatch] = rankOf(coordinate);
    return "rank " + std::to_string(noted.stage * plan.ranksPerStage() + rank) + " (stage " + std::to_string(noted.stage) + "), '" +
           programText(program) + "' of micro-batch " + std::to_string(microBatch) + ", instruction " +
           std::to_string(value.instruction) + " (" + plan::actionName(instruction.action) + " of node '" + instruction.node + "')";
  }
  std::pair<int64_t, int64_t> rankOf(int64_t coordinate) const {
    for (int64_t microBatch = 0; microBatch < plan.microBatches; ++microBatch)
      for (int64_t rank = 0; rank < plan.ranksPerStage(); ++rank)
        if (int64_t(coordinateOf(rank, microBatch)) == coordinate)
          return {rank, microBatch};
    return {0, 0};
  }
};

/// A flag per element of a rank's local box: whether it is one of the tensor's, not padding. Empty: they all are.
std::vector<bool> heldElements(const plan::Slice &slice, hpc::Place place) {
  bool isWhole = true;
  for (size_t dim = 0; dim < slice.box.size(); ++dim)
    isWhole &= place(slice.extent[dim]) == slice.box[dim];
  if (isWhole)
    return {};
  std::vector<bool> held = {true};
  for (size_t dim = 0; dim < slice.box.size(); ++dim) {
    std::vector<bool> next;
    next.reserve(held.size() * size_t(slice.box[dim]));
    for (bool outer : held)
      for (int64_t j = 0; j < slice.box[dim]; ++j)
        next.push_back(outer && j < place(slice.extent[dim]));
    held = std::move(next);
  }
  return held;
}

} // namespace

/// The first number of an nn op's result that is infinite in its type though it is made of numbers and double holds it, as a sum beyond 65504
/// in f16. What masks add up to is none.
static Expected<std::optional<Overflow>> findOverflow(Operation *op, ArrayRef<const Tensor *> operands, ArrayRef<const Tensor *> results) {
  auto isInfinite = [](double value) { return std::isinf(value); };
  if (llvm::none_of(results, [&](const Tensor *result) { return llvm::any_of(result->floats, isInfinite); }) ||
      llvm::any_of(operands, [&](const Tensor *operand) { return llvm::any_of(operand->floats, isInfinite); }))
    return std::optional<Overflow>();
  Expected<std::vector<Tensor>> unrounded = evaluateOp(op, operands, {.doublePrecision = true});
  if (!unrounded.ok())
    return unrounded.status();
  for (auto [result, exact] : llvm::zip_equal(results, *unrounded)) {
    const double lowest = result->dtype == DType::F16 ? -65504 : -maskMagnitude;
    bool readsMasks = llvm::any_of(operands, [&](const Tensor *operand) {
      return llvm::any_of(operand->floats, [&](double each) { return each <= lowest; });
    });
    for (auto [value, number] : llvm::zip(result->floats, exact.floats))
      if (std::isinf(value) && std::isfinite(number) && (number > 0 || !readsMasks))
        return std::optional<Overflow>(Overflow{nodeName(op->getLoc()), result->dtype, number});
  }
  return std::optional<Overflow>();
}

namespace {
struct Judge {
  Recording &recording;
  RunReport report;
  Comparison comparison;

  Status noteOverflow(Operation *op, ArrayRef<LocalTensors> operands, ArrayRef<LocalTensors> results) {
    for (size_t c = 0; !report.overflow && isa<nn::NNDialect>(op->getDialect()) && !isa<nn::FusedOp>(op) && c < results.front().size(); ++c) {
      SmallVector<const Tensor *> from, to;
      for (const LocalTensors &operand : operands)
        from.push_back(operand[c].get());
      for (const LocalTensors &result : results)
        to.push_back(result[c].get());
      Expected<std::optional<Overflow>> overflow = findOverflow(op, from, to);
      HPC_RETURN_IF_ERROR(overflow.status());
      report.overflow = *overflow;
    }
    return Status::success();
  }

  /// Within their bounds, the plan's tensors take the place of those that were computed from its operands.
  Status judge(Value value, LocalTensors &tensors, const LocalTensors &bounds) {
    auto found = recording.ofValue.find(value);
    if (found == recording.ofValue.end())
      return Status::success();
    const LocalTensors computed = tensors;
    for (size_t number : found->second)
      HPC_RETURN_IF_ERROR(judge(recording.values[number], computed, bounds, tensors));
    return Status::success();
  }

  Status judge(Recorded &recorded, const LocalTensors &computed, const LocalTensors &bounds, LocalTensors &tensors) {
    std::map<const void *, SharedTensor> read; // what coordinates share
    for (size_t c = 0; c < computed.size(); ++c) {
      auto [rank, microBatch] = recording.rankOf(int64_t(c));
      const auto *bytes = &recorded.bytes[c];
      for (int64_t other = 0; !*bytes && !recorded.isPerMicroBatch && other < recording.plan.microBatches; ++other)
        bytes = &recorded.bytes[recording.coordinateOf(rank, other)];
      if (!*bytes)
        continue;
      SharedTensor &is = read[bytes->get()];
      if (!is)
        is = std::make_shared<Tensor>(tensorFromBytes(recorded.dtype, recorded.box, (*bytes)->data()));
      hpc::Place place{rank, microBatch, recording.plan.ranksPerStage()};
      std::optional<Difference> difference =
          comparison.first(*is, *computed[c], bounds.empty() ? nullptr : bounds[c].get(), 0, heldElements(recorded.slice, place));
      if (difference)
        return Status::error(ErrorKind::Plan,
                             recording.placeText(recorded, int64_t(c)) + ": plan differs at ONNX node '" +
                                 nodeName(recorded.value.getLoc()) + "', rank " +
                                 std::to_string(recorded.noted.stage * recording.plan.ranksPerStage() + rank) + ", micro-batch " +
                                 std::to_string(microBatch) + ", local index [" + indexText(recorded.box, difference->flatIndex) +
                                 "]: " + differenceText(*difference));
      ++report.buffers;
      tensors[c] = is;
    }
    return Status::success();
  }
};
} // namespace

namespace {
/// The plan's run: what it returns, and the values that it has written, by name.
struct PlanRun {
  std::vector<Array> outputs;
  std::map<std::string, Array> written;
};
} // namespace

Expected<std::unique_ptr<VerifySession>> VerifySession::create(const plan::Plan &plan, const std::string &planFolder) {
  auto made = std::make_unique<VerifySession>();
  SessionOptions options;
  options.planFolder = planFolder;
  options.poison = true;
  options.observer = [one = made.get()](const ObservedInstruction &seen) { return one->observer ? one->observer(seen) : Status::success(); };
  Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), options);
  if (!session.ok())
    return session.status();
  made->session = std::move(*session);
  return made;
}

Expected<Tensor> VerifySession::state(const std::string &name) {
  for (size_t tensor = 0; tensor < session->saved().size(); ++tensor)
    if (session->saved()[tensor].name == name) {
      Array whole;
      HPC_RETURN_IF_ERROR(session->read(tensor, whole));
      return tensorFromArray(whole);
    }
  return Status::error(ErrorKind::Plan, "the plan has no state '" + name + "'");
}

static Expected<PlanRun> runPlan(const Verification &what, const std::vector<Tensor> &inputs, Recording &recording, VerifySession &session) {
  func::FuncOp serial = mainFunction(what.serial);
  std::vector<Array> arrays;
  for (auto [number, input] : llvm::enumerate(inputs))
    if (nn::argumentPort(serial, unsigned(number)).isGiven())
      arrays.push_back(tensorToArray(input));
  session.observer = [&](const ObservedInstruction &seen) { return recording.take(seen); };
  PlanRun run;
  Status status = session.session->run(session.entry, arrays, run.outputs, Outputs::All);
  session.observer = {};
  HPC_RETURN_IF_ERROR(status);
  std::map<std::string, unsigned> written = nn::writtenBy(serial);
  for (size_t tensor = 0; tensor < session.session->saved().size(); ++tensor)
    if (const std::string &name = session.session->saved()[tensor].name; written.count(name))
      HPC_RETURN_IF_ERROR(session.session->read(tensor, run.written[name]));
  return run;
}

Expected<RunReport> runAndJudge(const Verification &what, std::vector<Tensor> inputs, VerifySession &session, bool keepsStates) {
  const plan::Plan &plan = what.lowered.plan;
  func::FuncOp serial = mainFunction(what.serial), compiled = mainFunction(what.compiled);
  for (unsigned number = 0; keepsStates && number < serial.getNumArguments(); ++number)
    if (nn::ArgumentPort port = nn::argumentPort(serial, number); port.isState()) {
      Expected<Tensor> state = session.state(port.state);
      HPC_RETURN_IF_ERROR(state.status());
      inputs[number] = std::move(*state);
    }
  Recording recording(plan, dist::meshOf(what.compiled));
  HPC_RETURN_IF_ERROR(recording.addAll(what.lowered));
  Expected<PlanRun> ran = runPlan(what, inputs, recording, session);
  if (!ran.ok())
    return ran.status();
  HPC_RETURN_IF_ERROR(recording.checkAllMade());

  Judge judge{recording, {}, {}};
  Follower follower(recording.mesh, /*doublePrecision=*/false, [&](Value value, LocalTensors &tensors, const LocalTensors &bounds) {
    return judge.judge(value, tensors, bounds);
  });
  RunOptions options;
  options.follow = [&](Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results) {
    HPC_RETURN_IF_ERROR(judge.noteOverflow(op, operands, results));
    return follower.follow(op, operands, results);
  };
  Expected<std::vector<Tensor>> results = runPartitioned(compiled, inputs, recording.mesh, options);
  if (!results.ok()) // such as ranks whose copies of an output differ
    return Status::error(ErrorKind::Plan, results.status().message());

  // Results are copies of what was judged, but for those that no instruction was seen to make.
  auto compare = [&](const Array &array, unsigned result, const std::string &name) {
    Tensor found = tensorFromArray(array);
    const Tensor &expected = (*results)[result];
    double bound = follower.largestBound(compiled.getBody().front().getTerminator()->getOperand(result));
    std::optional<Difference> difference = judge.comparison.first(found, expected, nullptr, bound);
    if (difference)
      return Status::error(ErrorKind::Plan, "plan's " + name + " differs at index [" + indexText(expected.shape, difference->flatIndex) +
                                                "]: " + differenceText(*difference));
    (*results)[result] = std::move(found);
    return Status::success();
  };
  size_t output = 0;
  for (unsigned result = 0; result < serial.getNumResults(); ++result)
    if (nn::resultPort(serial, result).writes.empty()) {
      HPC_RETURN_IF_ERROR(compare(ran->outputs[output], result, "output '" + plan.outputs[output].name + "'"));
      ++output;
    }
  for (const auto &[name, result] : nn::writtenBy(serial))
    if (auto written = ran->written.find(name); written != ran->written.end())
      HPC_RETURN_IF_ERROR(compare(written->second, result, "'" + name + "' after the step"));
  judge.report.worstOfBound = judge.comparison.worst;
  judge.report.results = std::move(*results);
  return std::move(judge.report);
}

} // namespace hpc
