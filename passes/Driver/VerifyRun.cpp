// An observer of the run cuts, for each instruction that finishes a known value, what this rank should hold out of the
// serial value.
#include "passes/Driver/VerifyRun.h"

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"
#include "passes/Lower/Tables.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/core/Slice.h"
#include "runtime/plan/Packing.h"

#include <cmath>
#include <mutex>

namespace hpc {

namespace {
/// A value that is known at an instruction, and how to cut it.
struct Checkpoint {
  plan::Ref place;
  Value value; ///< of the compiled program
  plan::Slice slice;
  DType dtype; ///< of the buffer, which may be narrower than the serial value's
  std::vector<int64_t> box;
  std::shared_ptr<const Tensor> expected; ///< the global value; a rank's part is cut when it is compared
  double bound;
};

/// A flag per element of a rank's local box: whether it is one of the tensor's, not padding.
std::vector<bool> heldElements(const plan::Slice &slice, hpc::Place place) {
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

template <typename T> const std::byte *bytesOf(const std::vector<T> &elements) {
  return reinterpret_cast<const std::byte *>(elements.data());
}
template <typename T> std::byte *bytesOf(std::vector<T> &elements) {
  return reinterpret_cast<std::byte *>(elements.data());
}

/// A number that the dtype cannot hold is infinite: two masks may sum to -inf in f32.
double representable(const Tensor &tensor, int64_t index) {
  double number = tensor.number(index);
  if (!tensor.isFloat())
    return number;
  double rounded = roundTo(tensor.dtype, number);
  return std::isinf(rounded) ? rounded : number;
}

struct Comparison {
  const plan::Plan &plan;
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<Checkpoint>>
      checkpoints; ///< by stage, program, instruction
  std::mutex mutex;
  RunReport report;

  Status observe(const ObservedInstruction &seen) {
    auto found = checkpoints.find({seen.place.stage, seen.program, seen.instruction});
    if (found == checkpoints.end())
      return Status::success();
    for (const Checkpoint &checkpoint : found->second)
      HPC_RETURN_IF_ERROR(compare(checkpoint, seen));
    return Status::success();
  }

  Status compare(const Checkpoint &checkpoint, const ObservedInstruction &seen) {
    hpc::Place place{seen.place.coordinate, seen.microBatch, plan.ranksPerStage()};
    const Tensor &global = *checkpoint.expected;
    Tensor wanted(checkpoint.dtype, checkpoint.box); // as the interpreter holds it: 8 bytes an element
    if (global.isFloat())
      SliceCopy(checkpoint.slice, 8, place).gather(bytesOf(global.floats), bytesOf(wanted.floats));
    else
      SliceCopy(checkpoint.slice, 8, place).gather(bytesOf(global.ints), bytesOf(wanted.ints));
    std::vector<bool> isHeld = heldElements(checkpoint.slice, place);
    const std::byte *bytes = seen.buffer(checkpoint.place.buffer) + checkpoint.place.byteOffset;
    Tensor is = tensorFromBytes(checkpoint.dtype, checkpoint.box, bytes);
    double worst = 0;
    for (int64_t i = 0; i < is.size(); ++i) {
      if (!isHeld[i])
        continue;
      double found = is.number(i), should = wanted.number(i);
      if (found == should)
        continue;
      should = representable(wanted, i);
      if (!agree(found, should, checkpoint.bound)) {
        return Status::error(ErrorKind::Plan,
                             "plan differs at ONNX node '" + nodeName(checkpoint.value.getLoc()) + "', rank " +
                                 std::to_string(seen.place.rank) + ", micro-batch " + std::to_string(seen.microBatch) +
                                 ", local index [" + indexText(checkpoint.box, i) +
                                 "]: " + differenceText(found, should, checkpoint.bound));
      }
      if (std::isfinite(found) && std::abs(should) < maskMagnitude && checkpoint.bound > 0 && std::isfinite(checkpoint.bound))
        worst = std::max(worst, std::abs(found - should) / checkpoint.bound);
    }
    std::lock_guard<std::mutex> lock(mutex);
    ++report.buffers;
    report.unbounded += std::isinf(checkpoint.bound);
    report.worstOfBound = std::max(report.worstOfBound, worst);
    return Status::success();
  }
};
} // namespace

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

static void addCheckpoints(Comparison &comparison, const Verification &what, const Reference &reference) {
  Tables tables(dist::meshOf(what.compiled));
  std::vector<llvm::DenseSet<int32_t>> packed;
  std::vector<std::vector<llvm::DenseMap<int64_t, int64_t>>> indices; // by stage and program
  for (const plan::Stage &stage : comparison.plan.stages) {
    packed.push_back(packedBuffers(stage));
    std::vector<llvm::DenseMap<int64_t, int64_t>> &ofStage = indices.emplace_back();
    for (const plan::Program &program : stage.programs)
      ofStage.push_back(indicesOf(program));
  }
  for (auto [noted, value] : llvm::zip_equal(what.lowered.noted, what.lowered.values)) {
    auto expected = reference.values.find(noted.id);
    dist::ShardingAttr sharding = dist::shardingAttrOf(value);
    // A partial value is whole nowhere; it is compared once it is reduced.
    if (expected == reference.values.end() || !sharding || !sharding.getValue().partial.empty() ||
        packed[size_t(noted.stage)].contains(noted.place.buffer))
      continue;
    const Tensor &tensor = *expected->second;
    if (dist::globalShape(sharding.getValue()) != tensor.shape)
      continue;
    double bound = reference.bounds.at(noted.id);
    auto type = cast<RankedTensorType>(value.getType());
    int64_t index = indices[size_t(noted.stage)][size_t(noted.program)].at(noted.completedBy);
    comparison.checkpoints[{noted.stage, noted.program, index}].push_back(
        {noted.place, value, tables.slice(sharding.getValue()), dtypeOf(type), type.getShape().vec(), expected->second, bound});
  }
}

Expected<RunReport> runAndCompare(const Verification &what, const std::vector<Tensor> &inputs,
                                  const Reference &reference) {
  const plan::Plan &plan = what.lowered.plan;
  Comparison comparison{plan, {}, {}, {}};
  addCheckpoints(comparison, what, reference);

  SessionOptions options;
  options.planFolder = what.planFolder;
  options.poison = true;
  options.observer = [&](const ObservedInstruction &seen) { return comparison.observe(seen); };
  Expected<std::unique_ptr<Session>> session = Session::create(plan, host::createHostBackend(), options);
  if (!session.ok())
    return session.status();
  func::FuncOp serial = ModuleOp(what.serial).lookupSymbol<func::FuncOp>("main");
  std::vector<Array> arrays;
  for (auto [number, input] : llvm::enumerate(inputs))
    if (nn::argumentPort(serial, unsigned(number)).isGiven())
      arrays.push_back(tensorToArray(input));
  Expected<std::vector<Array>> outputs = (*session)->run(arrays, Outputs::All);
  if (!outputs.ok())
    return outputs.status();

  // The results of the step, and the values that it has written.
  auto compare = [&](const Array &array, size_t result, const std::string &name) {
    Tensor found = tensorFromArray(array), expected = reference.outputs[result];
    for (size_t i = 0; i < expected.floats.size(); ++i)
      expected.floats[i] = representable(expected, int64_t(i));
    double bound = reference.outputBounds[result];
    double ofLargest = 0;
    std::optional<Difference> difference = firstDifference(found, expected, bound, ofLargest);
    if (bound > 0)
      comparison.report.worstResultOfBound = std::max(comparison.report.worstResultOfBound, ofLargest * largestMagnitude(expected) / bound);
    if (ofLargest > 0 && bound >= largestMagnitude(expected))
      ++comparison.report.outputsOfRounding;
    else
      comparison.report.worstOutput = std::max(comparison.report.worstOutput, ofLargest);
    return difference ? Status::error(ErrorKind::Plan, "plan's " + name + " differs at index [" + difference->index +
                                                           "]: " +
                                                           differenceText(difference->found, difference->expected, bound))
                      : Status::success();
  };
  size_t output = 0;
  for (size_t result = 0; result < reference.outputs.size(); ++result)
    if (nn::resultPort(serial, unsigned(result)).writes.empty()) {
      HPC_RETURN_IF_ERROR(compare((*outputs)[output], result, "output '" + plan.outputs[output].name + "'"));
      ++output;
    }
  std::map<std::string, unsigned> written = nn::writtenBy(serial);
  for (size_t tensor = 0; tensor < (*session)->saved().size(); ++tensor) {
    const std::string &name = (*session)->saved()[tensor].name;
    auto result = written.find(name);
    if (result == written.end())
      continue;
    Array whole;
    HPC_RETURN_IF_ERROR((*session)->read(tensor, whole));
    HPC_RETURN_IF_ERROR(compare(whole, result->second, "'" + name + "' after the step"));
  }
  return comparison.report;
}

} // namespace hpc
