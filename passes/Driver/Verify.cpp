// Three comparisons, each naming the first value that differs: import against propagate (raise, train and the like kept
// the meaning), propagate against all ranks' compiled program, and that program against the running plan (VerifyRun).
#include "passes/Driver/Verify.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interpreter/Follower.h"
#include "compiler/Interpreter/StoredParameters.h"
#include "compiler/ElementType.h"
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

static Status differs(const std::string &what, const std::string &where, const std::string &rank, const Tensor &expected,
                      const Difference &difference) {
  return Status::error(ErrorKind::Plan, what + " differs at ONNX node '" + where + "'" + (rank.empty() ? "" : ", rank " + rank) +
                                            ", index [" + indexText(expected.shape, difference.flatIndex) +
                                            "]: " + differenceText(difference));
}

/// The largest difference of two tensors, in parts of the largest number.
static double partOfLargest(const Tensor &a, const Tensor &b) {
  double largest = 0;
  for (int64_t i = 0; i < b.size(); ++i)
    if (double by = std::abs(a.number(i) - b.number(i)); std::isfinite(by) && std::abs(b.number(i)) < maskMagnitude)
      largest = std::max(largest, by);
  return largest > 0 ? largest / std::max(largestMagnitude(b), 1e-300) : 0;
}

/// Whether an op puts numbers on the grid of an exact sum (`--deterministic`).
static bool isRoundOfDouble(Operation *op) { return isa<nn::RoundOp>(op) && nn::tensorType(op->getResult(0)).getElementType().isF64(); }

static func::FuncOp mainOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

static bool roundsDoubles(ModuleOp module) { return llvm::any_of(mainOf(module).getBody().front(), [](Operation &op) { return isRoundOfDouble(&op); }); }

namespace {
/// The serial values in double, by hpc.id. Parameters are not kept but read again: they are most of a model.
struct Reference {
  std::map<int64_t, std::shared_ptr<const Tensor>> values;
  std::map<int64_t, nn::ParameterOp> parameters;
  std::vector<Tensor> outputs;
};

struct Verifier {
  const Verification &what;
  std::vector<Tensor> inputs;
  Reference reference;
  ParameterLoader parameters; ///< one for all runs: a file is mapped once
  Comparison raise, partition;
  std::optional<double> movedByInt8 = std::nullopt; ///< outputs of the serial program, relative to their largest
  int64_t comparedValues = 0;

  RunOptions doublePrecision() {
    RunOptions options;
    options.doublePrecision = true;
    options.parameters = parameters;
    return options;
  }

  static bool hasInt8Weights(ModuleOp module) {
    auto parameters = mainOf(module).getOps<nn::ParameterOp>();
    return llvm::any_of(parameters, [](nn::ParameterOp op) { return op.getInt8Along().has_value(); });
  }

  /// 1. The serial program before and after the phases that keep it serial.
  Status compareRaised() {
    Expected<std::vector<Tensor>> before = runFunction(mainOf(what.serial), inputs, doublePrecision());
    if (!before.ok())
      return before.status();
    RunOptions options = doublePrecision();
    options.observe = [&](Value value, const LocalTensors &tensors) {
      int64_t id = idOf(value.getDefiningOp());
      if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
        reference.parameters[id] = parameter;
      else if (id >= 0)
        reference.values[id] = tensors.front();
      return Status::success();
    };
    Expected<std::vector<Tensor>> after = runFunction(mainOf(what.propagated), inputs, options);
    if (!after.ok())
      return after.status();
    // What weights in int8 do to numbers is the user's choice, not a difference to find: raise is judged with the weights as
    // they are stored, all that follows by the serial program with those that it has.
    std::vector<Tensor> raised = *after;
    ParameterLoader stored = parameters;
    if (hasInt8Weights(what.propagated) && !hasInt8Weights(what.serial)) {
      RunOptions asStored = doublePrecision();
      asStored.parameters = stored = storedParametersFromFiles(".");
      Expected<std::vector<Tensor>> found = runFunction(mainOf(what.propagated), inputs, asStored);
      if (!found.ok())
        return found.status();
      raised = std::move(*found);
      movedByInt8 = 0;
      for (auto [moved, from] : llvm::zip(*after, raised))
        movedByInt8 = std::max(*movedByInt8, partOfLargest(moved, from));
    }
    reference.outputs = std::move(*after);
    auto areSame = [](const auto &pair) {
      const auto &[a, b] = pair;
      return a.ints == b.ints && llvm::equal(a.floats, b.floats, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
    };
    if (llvm::all_of(llvm::zip(*before, raised), areSame))
      return Status::success();
    Expected<std::vector<double>> bounds = boundsOfRaise(*before, raised, stored);
    HPC_RETURN_IF_ERROR(bounds.status());
    auto compare = [&](const std::vector<Tensor> &expected, const std::vector<Tensor> &found, double part) {
      for (size_t number = 0; number < expected.size(); ++number)
        if (std::optional<Difference> difference = raise.first(found[number], expected[number], nullptr, part * (*bounds)[number]))
          return differs("serial program after raise", outputName(number), "", expected[number], *difference);
      return Status::success();
    };
    if (!roundsDoubles(what.propagated) || roundsDoubles(what.serial))
      return compare(*before, raised, 1);
    // Exact sums round their terms to a grid. Without that, the program has to agree as closely as others do.
    RunOptions offGrid = doublePrecision();
    offGrid.parameters = stored;
    offGrid.follow = [](Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results) {
      if (isRoundOfDouble(op))
        results.front() = operands.front();
      return Status::success();
    };
    Expected<std::vector<Tensor>> unrounded = runFunction(mainOf(what.propagated), inputs, offGrid);
    HPC_RETURN_IF_ERROR(unrounded.status());
    HPC_RETURN_IF_ERROR(compare(*before, *unrounded, 1));
    // A term has 22 bits of the largest one at least, in f32 24 of its own.
    constexpr double grid = 16;
    return compare(*unrounded, raised, grid);
  }

  /// How far outputs of two runs in double may be apart of which one has constants that exporters rounded to f32 (sqrt(2/pi)) where the
  /// other knows them exactly. Each program also runs in its own types: what their roundings do to an output, those few do not exceed.
  Expected<std::vector<double>> boundsOfRaise(const std::vector<Tensor> &before, const std::vector<Tensor> &after, const ParameterLoader &stored) {
    constexpr double safety = 8;
    std::vector<double> bounds(before.size(), 0);
    for (auto [module, exact] : {std::pair(what.serial, &before), std::pair(what.propagated, &after)}) {
      RunOptions options;
      options.ownPrecision = true;
      options.parameters = stored;
      Expected<std::vector<Tensor>> rounded = runFunction(mainOf(module), inputs, options);
      HPC_RETURN_IF_ERROR(rounded.status());
      for (size_t number = 0; number < bounds.size(); ++number) {
        const Tensor &value = (*exact)[number];
        for (int64_t i = 0; i < value.size(); ++i) {
          double by = std::abs((*rounded)[number].number(i) - value.number(i));
          if (std::isfinite(value.number(i)) && std::abs(value.number(i)) < maskMagnitude)
            bounds[number] = std::max(bounds[number], std::isnan(by) ? INFINITY : value.isFloat() ? safety * by : by);
        }
        if (value.isFloat())
          bounds[number] = std::max(bounds[number], safety * epsilonOf(value.dtype) * largestMagnitude(value));
      }
    }
    return bounds;
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

  /// Makes room for the plan's own memory, which reads the weights itself.
  void dropValues() {
    parameters = nullptr;
    reference.values.clear();
  }

  /// Nothing is begun that cannot end: an out-of-memory killer would leave no message.
  Status checkMemory() {
    dist::Mesh mesh = dist::meshOf(what.compiled);
    int64_t kept = 0, recorded = 0, plan = 0;
    for (Operation &op : mainOf(what.propagated).getBody().front())
      if (!isa<nn::ParameterOp>(op) && idOf(&op) >= 0)
        for (Value result : op.getResults())
          kept += nn::tensorType(result).getNumElements() * 8;
    for (Value value : what.lowered.values) {
      auto type = cast<RankedTensorType>(value.getType());
      int64_t terms = dist::shardingAttrOf(value) && !dist::shardingOf(value).partial.empty() ? mesh.numCoordinates() : 1;
      recorded += (dist::shardingAttrOf(value) ? dist::globalType(type) : type).getNumElements() * byteSize(dtypeOf(type)) * terms;
    }
    for (const plan::MemoryFacts &memory : plan::staticFacts(what.lowered.plan).memory)
      plan += memory.total() * what.lowered.plan.ranksPerStage();
    // A run that follows another one also holds what it computes before it takes over the other's numbers.
    int64_t following = 2 * peakBytesOfRun(mainOf(what.compiled), &mesh);
    int64_t needed = std::max({peakBytesOfRun(mainOf(what.serial)), kept + peakBytesOfRun(mainOf(what.propagated)), kept + following,
                               recorded + std::max(plan, following)});
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

  /// 2. Every value of the compiled program of all ranks, put together, against the serial one. Both are in double, and each value is
  /// made of serial ones: what remains is the order of sums in the ops between two that are compared.
  Status comparePartitioned() {
    dist::Mesh mesh = dist::meshOf(what.compiled);
    Follower follower(mesh, /*doublePrecision=*/true, [&](Value value, LocalTensors &tensors, const LocalTensors &bounds) {
      return comparePartitioned(mesh, value, tensors, bounds);
    });
    RunOptions options = doublePrecision();
    options.follow = [&](Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results) {
      return follower.follow(op, operands, results);
    };
    Expected<std::vector<Tensor>> found = runPartitioned(mainOf(what.compiled), inputs, mesh, options);
    if (!found.ok())
      return found.status();
    Operation *terminator = mainOf(what.compiled).getBody().front().getTerminator();
    for (auto [number, pair] : llvm::enumerate(llvm::zip(reference.outputs, *found))) {
      auto &[expected, output] = pair;
      if (output.shape != expected.shape)
        return Status::error(ErrorKind::Plan,
                             "output of ONNX node '" + outputName(number) + "' has another shape than the serial one");
      double bound = 64 * follower.largestBound(terminator->getOperand(number));
      if (std::optional<Difference> difference = partition.first(output, expected, nullptr, bound))
        return differs("output of the partitioned program", outputName(number), "", expected, *difference);
    }
    return Status::success();
  }

  /// Bounds of a value put together. They are many times the local ones: the serial value has errors of its own, of sums with more terms than
  /// a rank's. A fault is larger by far.
  static Tensor globalBound(LocalTensors bounds, const LocalTensors &tensors, const dist::Sharding &sharding, const dist::Mesh &mesh) {
    bounds.resize(tensors.size());
    LocalTensors magnitudes;
    for (auto [bound, tensor] : llvm::zip(bounds, tensors)) {
      if (!bound)
        bound = std::make_shared<Tensor>(DType::F64, tensor->shape);
      auto sizes = std::make_shared<Tensor>(*tensor);
      for (double &value : sizes->floats)
        value = std::abs(value);
      magnitudes.push_back(sizes);
    }
    Tensor bound = gatherGlobal(bounds, sharding, mesh).tensor;
    if (!sharding.partial.empty() && tensors.front()->isFloat()) {
      Tensor sizes = gatherGlobal(magnitudes, sharding, mesh).tensor;
      for (size_t i = 0; i < bound.floats.size(); ++i)
        bound.floats[i] += boundOfSum(mesh.numCoordinates(), sizes.floats[i], 0x1p-52);
    }
    for (double &each : bound.floats)
      each *= 64;
    return bound;
  }

  Status comparePartitioned(const dist::Mesh &mesh, Value value, LocalTensors &tensors, const LocalTensors &bounds) {
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
    Tensor bound = globalBound(bounds, tensors, sharding.getValue(), mesh);
    if (std::optional<Difference> difference = partition.first(global.tensor, wanted, &bound))
      return differs("partitioned program", where, holderOf(sharding.getValue(), mesh, wanted.shape, difference->flatIndex), wanted, *difference);
    if (const std::optional<Disagreement> &two = global.disagreement)
      return differs("partitioned program", where, coordinateText(mesh, two->rankA) + " against " + coordinateText(mesh, two->rankB), wanted,
                     {two->a, two->b, 0, two->index});
    if (sharding.getValue().partial.empty())
      tensors = cutAll(*expected, sharding.getValue(), mesh);
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

Expected<StepReport> verifyStep(const Verification &what, std::vector<Tensor> inputs, VerifySession &session) {
  Verifier verifier{what, std::move(inputs), {}, parametersFromFiles("."), {}, {}};
  HPC_RETURN_IF_ERROR(verifier.checkMemory());
  HPC_RETURN_IF_ERROR(verifier.compareRaised());
  HPC_RETURN_IF_ERROR(verifier.comparePartitioned());
  verifier.dropValues();
  Expected<RunReport> run = runAndJudge(what, verifier.inputs, session, /*keepsStates=*/true);
  HPC_RETURN_IF_ERROR(run.status());
  return StepReport{verifier.raise.worst, verifier.partition.worst, run->worstOfBound, verifier.comparedValues, run->buffers};
}

Expected<std::string> verifyPlan(const Verification &what) {
  Expected<std::vector<Tensor>> inputs = inputsFor(mainOf(what.serial), what.inputs);
  if (!inputs.ok())
    return inputs.status();
  Verifier verifier{what, std::move(*inputs), {}, parametersFromFiles("."), {}, {}};
  HPC_RETURN_IF_ERROR(verifier.checkMemory());
  HPC_RETURN_IF_ERROR(verifier.compareRaised());
  HPC_RETURN_IF_ERROR(verifier.comparePartitioned());
  verifier.dropValues();
  Expected<std::unique_ptr<VerifySession>> session = VerifySession::create(what.lowered.plan, what.planFolder);
  HPC_RETURN_IF_ERROR(session.status());
  Expected<RunReport> run = runAndJudge(what, verifier.inputs, **session);
  if (!run.ok())
    return run.status();
  dist::Mesh mesh = dist::meshOf(what.compiled);
  // Not judged, as errors that grow over a program are no fault: some outputs are nothing but rounding errors.
  constexpr double most = 0.1;
  double worst = 0;
  int64_t ofRounding = 0;
  bool losesNumbers = false; // an output is infinite or NaN where it is a number in double
  for (auto [number, pair] : llvm::enumerate(llvm::zip_first(verifier.reference.outputs, run->results))) {
    const auto &[wanted, found] = pair;
    for (int64_t i = 0; i < wanted.size(); ++i)
      losesNumbers |= std::abs(wanted.number(i)) < maskMagnitude && !std::isfinite(found.number(i));
    nn::ResultPort port = nn::resultPort(mainOf(what.serial), unsigned(number));
    if (!port.writes.empty() || !port.gradient.empty())
      continue;
    double off = partOfLargest(found, wanted);
    ofRounding += off > most;
    worst = off > most ? worst : std::max(worst, off);
  }
  std::string int8 = verifier.movedByInt8
                         ? format("weights in int8 move the serial program's outputs by %.2g of the largest value\n", *verifier.movedByInt8)
                         : "";
  std::string decided = ofRounding ? "; " + countText(ofRounding, "output") + " that rounding errors decide" : "";
  std::string overflow;
  if (const std::optional<Overflow> &first = run->overflow; first && (losesNumbers || std::abs(first->value) < maskMagnitude))
    overflow = format("%s overflows at ONNX node '%s': %.6g is infinite there, and what reads it has that; the file says so, though others may compute "
                      "the node in a wider type\n",
                      name(first->dtype), first->node.c_str(), first->value);
  return int8 + overflow +
         format("verified: serial == raised (%.2g of the bound), serial == %s of %s in double (%.2g of the bound), "
                "serial == plan on %s with poisoned memory (%s; %.2g of the bound; outputs off by %.2g of the largest value%s)\n",
                verifier.raise.worst, countText(verifier.comparedValues, "value").c_str(),
                mesh.numCoordinates() == 1 ? "the only coordinate"
                                           : ("all " + countText(mesh.numCoordinates(), "coordinate")).c_str(),
                verifier.partition.worst, countText(what.lowered.plan.worldSize(), "rank").c_str(),
                countText(run->buffers, "buffer").c_str(), run->worstOfBound, worst, decided.c_str());
}

} // namespace hpc
