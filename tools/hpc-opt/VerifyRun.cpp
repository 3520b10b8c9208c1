// An observer of the run cuts, for each instruction that finishes a known value, what this rank should hold out of the
// serial value.
#include "tools/hpc-opt/VerifyRun.h"

#include "compiler/Location.h"
#include "passes/Lower/Tables.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/core/Slice.h"

#include <cmath>
#include <mutex>

namespace hpc {

namespace {
/// A value that is known at an instruction, and how to cut it.
struct Checkpoint {
  const LoweredValue *lowered;
  plan::Slice slice;
  DType dtype;
  std::vector<int64_t> box;
  const Tensor *expected;
  std::vector<std::byte> numbers; ///< of `expected`, as doubles
  std::vector<std::byte> ones;    ///< a byte 1 per element
  double bound;
};

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
    int64_t elements = elementCount(checkpoint.box);
    std::vector<double> wanted(elements);
    std::vector<uint8_t> isHeld(elements);
    SliceCopy(checkpoint.slice, sizeof(double), place)
        .gather(checkpoint.numbers.data(), reinterpret_cast<std::byte *>(wanted.data()));
    SliceCopy(checkpoint.slice, 1, place).gather(checkpoint.ones.data(), reinterpret_cast<std::byte *>(isHeld.data()));
    const std::byte *bytes = seen.buffer(checkpoint.lowered->place.buffer) + checkpoint.lowered->place.byteOffset;
    Tensor is = tensorFromBytes(checkpoint.dtype, checkpoint.box, bytes);
    double worst = 0;
    for (int64_t i = 0; i < elements; ++i) {
      if (!isHeld[i])
        continue;
      double found = is.number(i);
      if (!agree(found, wanted[i], checkpoint.bound)) {
        char numbers[160];
        std::snprintf(numbers, sizeof(numbers), "is %.9g, should be %.9g (bound %.3g)", found, wanted[i],
                      checkpoint.bound);
        return Status::error(ErrorKind::Plan,
                             "plan differs at ONNX node '" + nodeName(checkpoint.lowered->value.getLoc()) + "', rank " +
                                 std::to_string(seen.place.rank) + ", micro-batch " + std::to_string(seen.microBatch) +
                                 ", local index [" + indexText(checkpoint.box, i) + "]: " + numbers);
      }
      if (std::isfinite(found) && std::abs(wanted[i]) < maskMagnitude && checkpoint.bound > 0)
        worst = std::max(worst, std::abs(found - wanted[i]) / checkpoint.bound);
    }
    std::lock_guard<std::mutex> lock(mutex);
    ++report.buffers;
    report.worstOfBound = std::max(report.worstOfBound, worst);
    return Status::success();
  }
};
} // namespace

/// Doubles of all elements, in order. What the dtype cannot hold is infinite there: two masks may sum to -inf in f32.
static std::vector<std::byte> numbersOf(const Tensor &tensor) {
  std::vector<double> numbers(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i)
    numbers[i] = tensor.isFloat() && std::isinf(roundTo(tensor.dtype, tensor.number(i)))
                     ? roundTo(tensor.dtype, tensor.number(i))
                     : tensor.number(i);
  std::vector<std::byte> bytes(numbers.size() * sizeof(double));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

static void addCheckpoints(Comparison &comparison, const Verification &what, const Reference &reference) {
  Tables tables(dist::meshOf(what.compiled));
  for (const LoweredValue &lowered : what.lowered.values) {
    auto expected = reference.values.find(lowered.id);
    dist::ShardingAttr sharding = dist::shardingAttrOf(lowered.value);
    // A partial value is whole nowhere; it is compared once it is reduced.
    if (expected == reference.values.end() || !sharding || !sharding.getValue().partial.empty())
      continue;
    const Tensor &tensor = *expected->second;
    if (dist::globalShape(sharding.getValue()) != tensor.shape)
      continue;
    auto relative = reference.relativeBound.find(lowered.id);
    double bound = tensor.isFloat() ? (relative == reference.relativeBound.end() ? 1e-4 : relative->second) *
                                          largestMagnitude(tensor)
                                    : 0;
    auto type = cast<RankedTensorType>(lowered.value.getType());
    comparison.checkpoints[{lowered.stage, lowered.program, lowered.instruction}].push_back(
        {&lowered, tables.slice(sharding.getValue()), tensor.dtype, type.getShape().vec(), &tensor, numbersOf(tensor),
         std::vector<std::byte>(tensor.size(), std::byte(1)), bound});
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
  std::vector<Array> arrays;
  for (const Tensor &input : inputs)
    arrays.push_back(tensorToArray(input));
  Expected<std::vector<Array>> outputs = (*session)->run(arrays);
  if (!outputs.ok())
    return outputs.status();

  for (size_t number = 0; number < outputs->size(); ++number) {
    Tensor found = tensorFromArray((*outputs)[number]);
    const Tensor &expected = reference.outputs[number];
    double bound = reference.outputBound[number] * largestMagnitude(expected);
    if (std::optional<Difference> difference = firstDifference(found, expected, bound, comparison.report.worstOutput)) {
      char numbers[160];
      std::snprintf(numbers, sizeof(numbers), "is %.9g, should be %.9g (bound %.3g)", difference->found,
                    difference->expected, bound);
      return Status::error(ErrorKind::Plan, "plan's output '" + plan.outputs[number].name + "' differs at index [" +
                                                difference->index + "]: " + numbers);
    }
  }
  return comparison.report;
}

} // namespace hpc
