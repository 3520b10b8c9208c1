// Three comparisons, each naming the first value that differs: import against propagate (raise, train and the like kept
// the meaning), propagate against all ranks' compiled program, and that reference against the buffers of the running
// plan.
#include "passes/Driver/Verify.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interpreter/StoredParameters.h"
#include "compiler/Location.h"
#include "passes/Driver/Difference.h"
#include "passes/Driver/VerifyInputs.h"
#include "passes/Driver/VerifyRun.h"
#include "runtime/base/AvailableMemory.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/PlanPrinter.h"

#include <cmath>
#include <cstdarg>

namespace hpc {

/// printf into a string.
static std::string format(const char *pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

/// The value that an op makes or, as a collective does, moves; -1: none that the serial program has, or one of several
/// that a number does not tell apart.
static int64_t idOf(Operation *op) {
  return op && op->getNumResults() > 1 ? -1 : valueIdsOf(op).held().value_or(-1);
}

static Status differs(const std::string &what, const std::string &where, const Difference &difference) {
  std::string text = what + " differs at ONNX node '" + where + "'";
  if (!difference.rank.empty())
    text += ", rank " + difference.rank;
  return Status::error(ErrorKind::Plan,
                       text + ", index [" + difference.index +
                           "]: " + differenceText(difference.found, difference.expected, difference.bound));
}

static func::FuncOp mainOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

namespace {
struct Verifier {
  const Verification &what;
  std::vector<Tensor> inputs;
  Reference reference;
  ParameterLoader parameters = parametersFromFiles("."); ///< one for all runs: a file is mapped once
  double worstRaise = 0;         ///< difference, as a part of the bound
  double worstPartition = 0;     ///< the same
  std::optional<double> movedByInt8 = std::nullopt; ///< outputs of the serial program, relative to their largest
  int64_t comparedValues = 0;
  std::string overflow = {}; ///< a line about the first number that its type does not hold, or empty

  RunOptions doublePrecision() {
    RunOptions options;
    options.doublePrecision = true;
    options.parameters = parameters;
    return options;
  }

  /// `ofLargest`: a difference relative to the largest value, which of what cancels says nothing.
  static void noteOfBound(double &worst, double ofLargest, const Tensor &value, double bound) {
    if (bound > 0 && ofLargest > 0)
      worst = std::max(worst, ofLargest * std::max(largestMagnitude(value), 1e-300) / bound);
  }

  /// Of two runs in double that sum in other orders, for a value whose bounds in its own type and in double are known.
  static double boundInDouble(const Tensor &value, double bound, double inDouble) {
    if (!value.isFloat())
      return bound;
    double least = 1e-10 * std::max(largestMagnitude(value), 1e-30);
    return std::max({least, inDouble, 8 * bound * epsilonOf(DType::F64) / epsilonOf(value.dtype)});
  }

  bool hasInt8Weights() const {
    auto parameters = mainOf(what.propagated).getOps<nn::ParameterOp>();
    return llvm::any_of(parameters, [](nn::ParameterOp op) { return op.getInt8Along().has_value(); });
  }

  /// 1. The serial program before and after the phases that keep it serial. Exporters round constants (sqrt(2/pi)) to
  /// f32, which raised ops know exactly: hence the type's epsilon, though both runs are in double.
  Status compareRaised() {
    Expected<std::vector<Tensor>> before = runFunction(mainOf(what.serial), inputs, doublePrecision());
    if (!before.ok())
      return before.status();
    RunOptions options = doublePrecision();
    RunningError errors;
    if (dist::meshOf(what.compiled).sizeOf(dist::AxisRole::Tensor) > 1)
      errors.allowRoundedTerms(mainOf(what.propagated));
    options.observe = [&](Value value, const LocalTensors &tensors) {
      HPC_RETURN_IF_ERROR(errors.observe(value, tensors.front()));
      int64_t id = idOf(value.getDefiningOp());
      reference.bounds[id] = errors.bound(value);
      reference.boundsInDouble[id] = boundInDouble(*tensors.front(), errors.finiteBound(value), errors.boundInDouble(value));
      if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
        reference.parameters[id] = parameter;
      else if (id >= 0)
        reference.values[id] = tensors.front();
      return Status::success();
    };
    Expected<std::vector<Tensor>> after = runFunction(mainOf(what.propagated), inputs, options);
    if (!after.ok())
      return after.status();
    if (std::optional<RunningError::Overflow> first = errors.firstOverflow())
      overflow = format("%s overflows at ONNX node '%s': %.6g is infinite there, and what reads it may be anything; the file says so, though others may compute "
                        "the node in a wider type\n",
                        name(first->dtype), nodeName(first->where).c_str(), first->value);
    // What weights in int8 do to numbers is the user's choice, not a difference to find: raise is judged with the weights as
    // they are stored, all that follows by the serial program with those that it has.
    std::vector<Tensor> raised = *after;
    if (hasInt8Weights()) {
      RunOptions asStored = doublePrecision();
      asStored.parameters = storedParametersFromFiles(".");
      Expected<std::vector<Tensor>> found = runFunction(mainOf(what.propagated), inputs, asStored);
      if (!found.ok())
        return found.status();
      raised = std::move(*found);
      movedByInt8 = 0;
      for (auto [moved, from] : llvm::zip(*after, raised))
        (void)firstDifference(moved, from, std::numeric_limits<double>::infinity(), *movedByInt8);
    }
    reference.outputs = hasInt8Weights() ? *after : *before;
    Operation *terminator = mainOf(what.propagated).getBody().front().getTerminator();
    for (auto [number, pair] : llvm::enumerate(llvm::zip(*before, raised))) {
      auto &[expected, found] = pair;
      double bound = errors.bound(terminator->getOperand(number));
      if (expected.isFloat())
        bound += 8 * epsilonOf(expected.dtype) * largestMagnitude(expected);
      reference.outputBounds.push_back(bound);
      double ofLargest = 0;
      if (std::optional<Difference> difference = firstDifference(found, expected, bound, ofLargest))
        return differs("serial program after raise", outputName(number), *difference);
      noteOfBound(worstRaise, ofLargest, expected, bound);
    }
    return Status::success();
  }

  /// The value of the serial program under an id; null where it has none.
  Expected<std::shared_ptr<const Tensor>> serialValue(int64_t id) {
    if (auto known = reference.values.find(id); known != reference.values.end())
      return known->second;
    auto parameter = reference.parameters.find(id);
    if (parameter == reference.parameters.end())
      return std::shared_ptr<const Tensor>();
    Expected<Tensor> stored = parameters(parameter->second, nn::shapeOf(parameter->second));
    if (!stored.ok())
      return stored.status();
    return std::shared_ptr<const Tensor>(std::make_shared<Tensor>(std::move(*stored)));
  }

  /// Makes room for the plan's own memory: a value inside a fused region is never seen there, and it reads the weights
  /// itself.
  void dropWhatNoInstructionMakes() {
    parameters = nullptr;
    llvm::DenseSet<int64_t> made;
    for (const NotedValue &value : what.lowered.noted)
      made.insert(value.id);
    for (auto value = reference.values.begin(); value != reference.values.end();)
      value = made.contains(value->first) ? std::next(value) : reference.values.erase(value);
  }

  /// Nothing is begun that cannot end: an out-of-memory killer would leave no message.
  Status checkMemory() {
    dist::Mesh mesh = dist::meshOf(what.compiled);
    int64_t kept = 0, plan = 0;
    for (Operation &op : mainOf(what.propagated).getBody().front())
      if (!isa<nn::ParameterOp>(op) && idOf(&op) >= 0)
        for (Value result : op.getResults())
          kept += nn::tensorType(result).getNumElements() * 8;
    for (const plan::MemoryFacts &memory : plan::staticFacts(what.lowered.plan).memory)
      plan += memory.total() * what.lowered.plan.ranksPerStage();
    int64_t needed = std::max(peakBytesOfRun(mainOf(what.serial)),
                              // The running error analysis holds three more tensors of each value.
                              kept + std::max({4 * peakBytesOfRun(mainOf(what.propagated)),
                                               peakBytesOfRun(mainOf(what.compiled), &mesh), plan}));
    int64_t available = availableMemory();
    if (needed <= available)
      return Status::success();
    return Status::error(
        ErrorKind::Capacity,
        "--verify needs about " + plan::bytesText(needed) + ", of which " + plan::bytesText(kept) +
            " are the serial program's values in double; " + plan::bytesText(available) +
            " are free. Use smaller sizes (--dim) or fewer ranks, verify on a larger machine, or leave out --verify");
  }

  std::string outputName(size_t number) {
    Value value = mainOf(what.propagated).getBody().front().getTerminator()->getOperand(number);
    return nodeName(value.getLoc());
  }

  /// 2. Every value of the compiled program of all ranks, put together, against the serial one. Both are in double:
  /// what remains is the order of sums.
  Status comparePartitioned() {
    dist::Mesh mesh = dist::meshOf(what.compiled);
    RunOptions options = doublePrecision();
    options.observe = [&](Value value, const LocalTensors &tensors) -> Status {
      dist::ShardingAttr sharding = dist::shardingAttrOf(value);
      if (!sharding || int64_t(tensors.size()) != mesh.numCoordinates())
        return Status::success();
      Expected<std::shared_ptr<const Tensor>> expected = serialValue(idOf(value.getDefiningOp()));
      if (!expected.ok())
        return expected.status();
      if (!*expected)
        return Status::success();
      const Tensor &wanted = **expected;
      GlobalTensor global = gatherGlobal(tensors, sharding.getValue(), mesh);
      std::string where = nodeName(value.getLoc());
      if (global.tensor.shape != wanted.shape)
        return Status::error(ErrorKind::Plan, "partitioned program: value of ONNX node '" + where +
                                                  "' has another global shape than the serial one");
      ++comparedValues;
      double bound = reference.boundsInDouble.at(idOf(value.getDefiningOp()));
      double ofLargest = 0;
      std::optional<Difference> difference = firstDifference(global.tensor, wanted, bound, ofLargest);
      noteOfBound(worstPartition, ofLargest, wanted, bound);
      if (!difference && global.disagreement)
        difference = Difference{indexText(wanted.shape, global.disagreement->index),
                                coordinateText(mesh, global.disagreement->rankA) + " against " +
                                    coordinateText(mesh, global.disagreement->rankB),
                                global.disagreement->a, global.disagreement->b, 0};
      if (!difference)
        return Status::success();
      if (difference->rank.empty())
        difference->rank = holderOf(sharding.getValue(), mesh, wanted.shape, difference->flatIndex);
      return differs("partitioned program", where, *difference);
    };
    Expected<std::vector<Tensor>> found = runPartitioned(mainOf(what.compiled), inputs, mesh, options);
    if (!found.ok())
      return found.status();
    for (auto [number, pair] : llvm::enumerate(llvm::zip(reference.outputs, *found))) {
      auto &[expected, output] = pair;
      double ignored = 0;
      double bound = reference.outputBounds[number];
      if (output.shape != expected.shape)
        return Status::error(ErrorKind::Plan,
                             "output of ONNX node '" + outputName(number) + "' has another shape than the serial one");
      if (std::optional<Difference> difference = firstDifference(output, expected, bound, ignored))
        return differs("output of the partitioned program", outputName(number), *difference);
    }
    return Status::success();
  }

  /// The first coordinate that holds an element.
  static std::string holderOf(const dist::Sharding &sharding, const dist::Mesh &mesh, const std::vector<int64_t> &shape,
                              int64_t flat) {
    std::vector<int64_t> index(shape.size());
    for (size_t dim = shape.size(); dim-- > 0; flat /= shape[dim])
      index[dim] = flat % shape[dim];
    for (int64_t rank = 0; rank < mesh.numCoordinates(); ++rank) {
      bool holds = true;
      for (size_t dim = 0; dim < shape.size(); ++dim)
        holds &= dist::localIndex(sharding.dims[dim], mesh, mesh.coordinate(rank), index[dim]) >= 0;
      if (holds)
        return coordinateText(mesh, rank);
    }
    return "none";
  }
};
} // namespace

Expected<std::string> verifyPlan(const Verification &what) {
  Expected<std::vector<Tensor>> inputs = inputsFor(mainOf(what.serial), what.inputs);
  if (!inputs.ok())
    return inputs.status();
  Verifier verifier{what, std::move(*inputs), {}};
  HPC_RETURN_IF_ERROR(verifier.checkMemory());
  HPC_RETURN_IF_ERROR(verifier.compareRaised());
  HPC_RETURN_IF_ERROR(verifier.comparePartitioned());
  verifier.dropWhatNoInstructionMakes();
  Expected<RunReport> run = runAndCompare(what, verifier.inputs, verifier.reference);
  if (!run.ok())
    return run.status();
  dist::Mesh mesh = dist::meshOf(what.compiled);
  std::string unbounded =
      run->unbounded ? format(", %lld of which could hold anything: their type overflows", (long long)run->unbounded) : "";
  // Of a training step all is judged by bounds: what rounding makes of a gradient of 0, Adam's first step divides by itself.
  const bool trains = !nn::writtenBy(mainOf(what.serial)).empty();
  std::string results = format("loss, gradients, new weights and states %.2g of the bound", run->worstResultOfBound);
  if (!trains)
    results = format("outputs off by %.2g of the largest value", run->worstOutput) +
              (run->outputsOfRounding ? "; " + countText(run->outputsOfRounding, "output") + " of rounding errors alone, within the bound" : "");
  std::string int8 = verifier.movedByInt8
                         ? format("weights in int8 move the serial program's outputs by %.2g of the largest value\n", *verifier.movedByInt8)
                         : "";
  return int8 + verifier.overflow + format("verified: serial == raised (%.2g of the bound), serial == %s of "
                "%s in double (%.2g of the bound), "
                "serial == plan on %s with poisoned memory (%s%s; %.2g of the bound; %s)\n",
                verifier.worstRaise, countText(verifier.comparedValues, "value").c_str(),
                mesh.numCoordinates() == 1 ? "the only coordinate"
                                           : ("all " + countText(mesh.numCoordinates(), "coordinate")).c_str(),
                verifier.worstPartition, countText(what.lowered.plan.worldSize(), "rank").c_str(),
                countText(run->buffers, "buffer").c_str(), unbounded.c_str(), run->worstOfBound,
                results.c_str());
}

} // namespace hpc
