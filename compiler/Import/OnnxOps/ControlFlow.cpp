// If, Loop and Scan, for graphs without control flow: a known branch is inlined, a loop with a known number of rounds
// is unrolled. If the condition of an If is data, both branches are computed and one is selected.
#include "compiler/Import/OnnxOps/Dims.h"
#include "compiler/Import/SymbolicDims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

/// The value of a condition; nullopt if it depends on data.
std::optional<bool> knownCondition(NodeImport &n, Value condition) {
  std::shared_ptr<const KnownTensor> known = n.b.find(condition);
  if (!known || known->compact.size() != 1)
    return std::nullopt;
  return known->compact.number(0) != 0;
}

Results ifThenElse(NodeImport &n) {
  Value condition = n.in(0);
  const Subgraph *onTrue = n.graph("then_branch"), *onFalse = n.graph("else_branch");
  if (!n.b.status().ok())
    return {};
  if (n.b.dtype(condition) != DType::Bool || elementCount(n.b.shape(condition)) != 1)
    return {n.b.fail("its condition must be one bool")};
  if (std::optional<bool> known = knownCondition(n, condition))
    return n.importBody(*known ? *onTrue : *onFalse, {});
  // A plan can only compute both, so an error of either is an error of the condition.
  std::string why = "and its condition" + n.b.unknownText(condition);
  Expected<Results> first = n.tryBody(*onTrue, {});
  if (!first.ok())
    return {n.b.fail("its then_branch cannot be computed, " + why + ": " + first.status().message(), first.status().kind())};
  Expected<Results> second = n.tryBody(*onFalse, {});
  if (!second.ok())
    return {n.b.fail("its else_branch cannot be computed, " + why + ": " + second.status().message(), second.status().kind())};
  Results results;
  if (first->size() != second->size())
    return {n.b.fail("its branches have " + std::to_string(first->size()) + " and " + std::to_string(second->size()) +
                     " outputs")};
  for (auto [a, b] : llvm::zip_equal(*first, *second)) {
    if (n.b.isSequence(a) || n.b.isSequence(b))
      return {n.unsupported("branches that give sequences of tensors, " + why)};
    if (a.getType() != b.getType())
      return {n.unsupported("branches of different shapes, " + why)};
    results.push_back(n.b.select(n.b.reshape(condition, {}), a, b));
  }
  return results;
}

/// The parts of a scan output, one after the other along `axis`.
Value stacked(NodeImport &n, ArrayRef<Value> parts, int64_t axis) {
  SmallVector<Value> slabs;
  for (Value part : parts)
    if (n.b.isSequence(part))
      return n.unsupported("a scan output that is a sequence of tensors; let the body give it as a state");
    else
      slabs.push_back(insertDim(n, part, axis));
  return n.b.concat(slabs, axis);
}

/// The shape that the subgraph declares, where its dims are numbers or symbols with sizes.
std::optional<SmallVector<int64_t>> declaredShape(const ValueInfo &output, const std::map<std::string, int64_t> &sizes) {
  SmallVector<int64_t> shape;
  for (const Dim &dim : output.dims) {
    Expected<int64_t> size = dim.size ? Expected<int64_t>(*dim.size) : evaluateDim(dim.symbol, sizes);
    if (!size.ok() || *size < 0)
      return std::nullopt;
    shape.push_back(*size);
  }
  return output.dtype && output.hasShape ? std::optional(shape) : std::nullopt;
}

/// Scan outputs after no round have no elements, and the shape that the subgraph declares, or else the one that a round
/// on `inputs` would give. `outputs`: of the body, and the axis along which parts are stacked.
Results emptyOutputs(NodeImport &n, const Subgraph &body, ArrayRef<Value> inputs,
                     ArrayRef<std::pair<size_t, int64_t>> outputs) {
  std::optional<Expected<Results>> round;
  Results results;
  for (auto [index, axis] : outputs) {
    const ValueInfo &output = body.outputs[index];
    std::optional<SmallVector<int64_t>> shape = declaredShape(output, {});
    std::optional<DType> dtype = output.dtype;
    const NarrowType *narrow = output.narrow;
    if (!shape && !round) {
      // Nothing reads the round, so all its ops are erased later.
      ImportMode before = n.mode;
      round = n.tryBody(body, inputs);
      n.mode = std::move(before);
    }
    if (!shape && round->ok() && !n.b.isSequence((**round)[index])) {
      Value part = (**round)[index];
      shape = n.b.shape(part);
      dtype = n.b.dtype(part);
      narrow = n.b.narrowType(part);
    }
    if (!shape)
      shape = declaredShape(output, n.mode.dims);
    if (!shape)
      return {n.unsupported("no rounds, and an output '" + output.name + "' whose shape the body does not declare, " +
                            (round->ok() ? "since it is a sequence"
                                         : "nor can a round be computed: " + round->status().message()))};
    shape->insert(shape->begin() + n.axis(axis, int64_t(shape->size()) + 1), 0);
    Value empty = n.b.known(Tensor(*dtype, *shape));
    results.push_back(narrow ? n.b.asNarrow(empty, *narrow) : empty);
  }
  return results;
}

/// Inputs: rounds, condition, states. The body takes (round, condition, states) and gives (condition, states, parts of
/// scan outputs).
Results loop(NodeImport &n) {
  const Subgraph *body = n.graph("body");
  if (!body || n.numInputs() < 2)
    return {n.b.fail("it needs a body, rounds and a condition")};
  size_t numStates = n.numInputs() - 2;
  if (body->inputs.size() != numStates + 2 || body->outputs.size() < numStates + 1)
    return {n.b.fail("its body takes " + countText(body->inputs.size(), "value") + " and gives " +
                     std::to_string(body->outputs.size()) + "; with " + std::to_string(numStates) +
                     " states it must take two more and give at least one more")};
  std::optional<int64_t> rounds;
  if (n.has(0)) {
    SmallVector<int64_t> given = n.b.integers(n.in(0), "number of rounds");
    if (!n.b.status().ok())
      return {};
    if (given.size() != 1)
      return {n.b.fail("its number of rounds must be one number")};
    rounds = given[0];
  }
  Tensor yes(DType::Bool, {});
  yes.ints[0] = 1;
  Value condition = n.has(1) ? n.in(1) : n.b.known(std::move(yes));
  SmallVector<Value> states;
  for (size_t i = 0; i < numStates; ++i)
    states.push_back(n.any(i + 2));
  size_t numScans = body->outputs.size() - numStates - 1;
  std::vector<SmallVector<Value>> parts(numScans);
  auto inputsOf = [&](int64_t round) {
    Tensor number(DType::I64, {});
    number.ints[0] = round;
    SmallVector<Value> inputs = {n.b.known(std::move(number)), condition};
    inputs.append(states.begin(), states.end());
    return inputs;
  };
  for (int64_t round = 0; !rounds || round < *rounds; ++round) {
    std::optional<bool> goesOn = knownCondition(n, condition);
    if (!goesOn)
      return {n.unsupported("its condition" + n.b.unknownText(condition) +
                            "; only loops whose number of rounds is known are unrolled")};
    if (!*goesOn)
      break;
    Results results = n.importBody(*body, inputsOf(round));
    if (!n.b.status().ok())
      return {};
    condition = results[0];
    states.assign(results.begin() + 1, results.begin() + 1 + int64_t(numStates));
    for (size_t scan = 0; scan < numScans; ++scan)
      parts[scan].push_back(results[1 + numStates + scan]);
  }
  Results results(states.begin(), states.end());
  SmallVector<std::pair<size_t, int64_t>> outputs;
  for (size_t scan = 0; scan < numScans; ++scan)
    if (parts[scan].empty())
      outputs.emplace_back(1 + numStates + scan, 0);
    else
      results.push_back(stacked(n, parts[scan], 0));
  llvm::append_range(results, emptyOutputs(n, *body, outputs.empty() ? Results() : inputsOf(0), outputs));
  return results;
}

/// Opset 9 and later. Inputs: states, then scanned tensors; the body takes (states, slices) and gives (states, parts).
Results scan(NodeImport &n) {
  const Subgraph *body = n.graph("body");
  int64_t numScanned = n.integer("num_scan_inputs", 0), numStates = int64_t(n.numInputs()) - numScanned;
  if (!body || numScanned < 1 || numStates < 0 || body->inputs.size() != n.numInputs() ||
      int64_t(body->outputs.size()) < numStates)
    return {n.b.fail("its body must take its states and scanned tensors, and give the states and its outputs")};
  int64_t numOutputs = int64_t(body->outputs.size()) - numStates;
  auto list = [&](const char *name, int64_t count) {
    SmallVector<int64_t> values = n.integers(name).value_or(SmallVector<int64_t>(size_t(count), 0));
    if (int64_t(values.size()) != count)
      n.b.fail(std::string(name) + " must have " + countText(count, "number"));
    values.resize(size_t(count), 0);
    return values;
  };
  SmallVector<int64_t> inputAxes = list("scan_input_axes", numScanned),
                       outputAxes = list("scan_output_axes", numOutputs),
                       inputTurns = list("scan_input_directions", numScanned),
                       outputTurns = list("scan_output_directions", numOutputs);
  SmallVector<Value> states, scanned;
  for (int64_t i = 0; i < numStates; ++i)
    states.push_back(n.in(size_t(i)));
  int64_t rounds = -1;
  for (int64_t i = 0; i < numScanned; ++i) {
    Value value = n.in(size_t(numStates + i));
    inputAxes[size_t(i)] = n.axis(inputAxes[size_t(i)], n.b.rank(value));
    if (!n.b.status().ok())
      return {};
    int64_t size = n.b.shape(value)[size_t(inputAxes[size_t(i)])];
    if (rounds >= 0 && size != rounds)
      return {n.b.fail("it scans dims of " + std::to_string(rounds) + " and " + countText(size, "element"))};
    rounds = size;
    scanned.push_back(value);
  }
  std::vector<SmallVector<Value>> parts(static_cast<size_t>(numOutputs));
  for (int64_t round = 0; round < rounds; ++round) {
    SmallVector<Value> inputs = states;
    for (auto [i, value] : llvm::enumerate(scanned)) {
      SmallVector<int64_t> sizes = n.b.shape(value), starts(sizes.size(), 0), steps(sizes.size(), 1);
      size_t axis = size_t(inputAxes[i]);
      starts[axis] = inputTurns[i] ? rounds - 1 - round : round;
      sizes[axis] = 1;
      Value slab = n.b.slice(value, starts, steps, sizes);
      sizes.erase(sizes.begin() + int64_t(axis));
      inputs.push_back(n.b.reshape(slab, sizes));
    }
    Results results = n.importBody(*body, inputs);
    if (!n.b.status().ok())
      return {};
    states.assign(results.begin(), results.begin() + numStates);
    for (int64_t i = 0; i < numOutputs; ++i)
      parts[size_t(i)].push_back(results[size_t(numStates + i)]);
  }
  Results results(states.begin(), states.end());
  if (rounds == 0) {
    SmallVector<Value> inputs = states;
    for (auto [i, value] : llvm::enumerate(scanned)) {
      SmallVector<int64_t> slab = n.b.shape(value);
      slab.erase(slab.begin() + inputAxes[i]);
      inputs.push_back(n.b.unread(slab, n.b.dtype(value)));
    }
    SmallVector<std::pair<size_t, int64_t>> outputs;
    for (int64_t i = 0; i < numOutputs; ++i)
      outputs.emplace_back(size_t(numStates + i), outputAxes[size_t(i)]);
    llvm::append_range(results, emptyOutputs(n, *body, inputs, outputs));
    return results;
  }
  for (int64_t i = 0; i < numOutputs; ++i) {
    SmallVector<Value> &slabs = parts[size_t(i)];
    if (outputTurns[size_t(i)])
      std::reverse(slabs.begin(), slabs.end());
    results.push_back(stacked(n, slabs, n.axis(outputAxes[size_t(i)], n.b.rank(slabs[0]) + 1)));
  }
  return results;
}

Results oldScan(NodeImport &n) {
  return {
      n.unsupported("Scan of opset 8, with a batch and lengths of sequences; convert the model to opset 9 or later")};
}

const OnnxOp controlFlowTable[] = {{"If", 1, ifThenElse}, {"Loop", 1, loop}, {"Scan", 8, oldScan}, {"Scan", 9, scan}};

} // namespace

ArrayRef<OnnxOp> controlFlowOps() { return controlFlowTable; }

} // namespace hpc::onnx
