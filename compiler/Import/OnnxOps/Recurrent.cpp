// RNN, GRU and LSTM, unrolled step by step: one product with all inputs before, one with the state in each step.
#include "compiler/Import/OnnxOps/Dims.h"
#include "compiler/Import/OnnxOps/Quantization.h"
#include "compiler/Import/OnnxOps/Slopes.h"
#include "runtime/base/CountText.h"

#include <functional>

namespace hpc::onnx {
namespace {

constexpr int64_t mostRecurrentSteps = 2000;

/// Part `which` of `count` equal ones along a dim.
Value part(NodeImport &n, Value x, int64_t dim, int64_t which, int64_t count) {
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes[size_t(dim)] /= count;
  starts[size_t(dim)] = which * sizes[size_t(dim)];
  return n.b.slice(x, starts, steps, sizes);
}
/// One element of dim 0, which is dropped.
Value at(NodeImport &n, Value x, int64_t index) {
  SmallVector<int64_t> shape = n.b.shape(x);
  Value slab = part(n, x, 0, index, shape[0]);
  shape.erase(shape.begin());
  return n.b.reshape(slab, shape);
}

using Activation = std::function<Value(NodeImport &, Value)>;

/// The activation of that name in the standard, in upper or lower case; null, with an error, for an unsupported one.
Activation activationOf(NodeImport &n, const std::string &text, double alpha, double beta) {
  std::string name = StringRef(text).lower();
  if (name == "sigmoid")
    return [](NodeImport &n, Value x) { return n.b.unary<nn::SigmoidOp>(x); };
  if (name == "tanh")
    return [](NodeImport &n, Value x) { return n.b.unary<nn::TanhOp>(x); };
  if (name == "relu")
    return [](NodeImport &n, Value x) { return n.b.unary<nn::ReluOp>(x); };
  auto line = [=](NodeImport &n, Value x) { return n.b.add(n.b.mul(x, n.b.scalar(alpha, x)), n.b.scalar(beta, x)); };
  if (name == "affine")
    return line;
  if (name == "hardsigmoid")
    return [=](NodeImport &n, Value x) {
      return clamped(n, n.b.unary<nn::ReluOp>(line(n, x)), Value(), n.b.scalar(1, x));
    };
  n.unsupported("activation '" + text +
                "' of a recurrent network; Sigmoid, Tanh, Relu, Affine and HardSigmoid are here");
  return nullptr;
}

/// Operands of one direction.
struct Cell {
  int64_t gates = 1;
  SmallVector<Activation> activations;
  Value recurrence;          ///< [gates * hidden, hidden]
  Value recurrentBias;       ///< [gates * hidden], or null
  Value peepholes;           ///< [3 * hidden], or null
  double clip = 0;           ///< 0: none
  bool resetsAfter = false;  ///< GRU: linear_before_reset
  bool couplesGates = false; ///< LSTM: input_forget
  bool roundsState = false;  ///< each row of the state is quantised before a product
};

struct State {
  Value hidden, memory; ///< [batch, hidden]; memory: LSTM alone
};

Value clipped(NodeImport &n, const Cell &cell, Value x) {
  if (cell.clip <= 0)
    return x;
  return clamped(n, x, n.b.scalar(-cell.clip, x), n.b.scalar(cell.clip, x));
}
Value activated(NodeImport &n, const Cell &cell, int which, Value x) {
  return cell.activations[size_t(which)](n, clipped(n, cell, x));
}
Value withBias(NodeImport &n, Value x, Value bias) { return bias ? n.b.add(x, bias) : x; }
Value gate(NodeImport &n, const Cell &cell, Value x, int64_t which) {
  return part(n, x, n.b.rank(x) - 1, which, cell.gates);
}

State stepRnn(NodeImport &n, const Cell &cell, Value input, const State &state) {
  Value product = withBias(n, n.b.matmul(state.hidden, cell.recurrence, false, true), cell.recurrentBias);
  return {activated(n, cell, 0, n.b.add(input, product)), Value()};
}

/// Gates: update, reset, hidden.
State stepGru(NodeImport &n, const Cell &cell, Value input, const State &state) {
  auto weights = [&](int64_t which) { return part(n, cell.recurrence, 0, which, 3); };
  auto bias = [&](int64_t which) { return cell.recurrentBias ? part(n, cell.recurrentBias, 0, which, 3) : Value(); };
  auto recurrent = [&](Value hidden, int64_t which) {
    return withBias(n, n.b.matmul(hidden, weights(which), false, true), bias(which));
  };
  Value update = activated(n, cell, 0, n.b.add(gate(n, cell, input, 0), recurrent(state.hidden, 0)));
  Value reset = activated(n, cell, 0, n.b.add(gate(n, cell, input, 1), recurrent(state.hidden, 1)));
  Value kept =
      cell.resetsAfter ? n.b.mul(reset, recurrent(state.hidden, 2)) : recurrent(n.b.mul(reset, state.hidden), 2);
  Value fresh = activated(n, cell, 1, n.b.add(gate(n, cell, input, 2), kept));
  Value rest = n.b.sub(n.b.scalar(1, update), update);
  return {n.b.add(n.b.mul(rest, fresh), n.b.mul(update, state.hidden)), Value()};
}

/// Gates: input, output, forget, cell.
State stepLstm(NodeImport &n, const Cell &cell, Value input, const State &state) {
  Value hidden = cell.roundsState ? roundedDynamically(n, state.hidden, {1}) : state.hidden;
  Value all = n.b.add(input, withBias(n, n.b.matmul(hidden, cell.recurrence, false, true), cell.recurrentBias));
  auto peeping = [&](Value x, Value memory, int64_t which) {
    return cell.peepholes ? n.b.add(x, n.b.mul(memory, part(n, cell.peepholes, 0, which, 3))) : x;
  };
  Value in = activated(n, cell, 0, peeping(gate(n, cell, all, 0), state.memory, 0));
  Value forget = cell.couplesGates ? n.b.sub(n.b.scalar(1, in), in)
                                   : activated(n, cell, 0, peeping(gate(n, cell, all, 2), state.memory, 2));
  Value fresh = activated(n, cell, 1, gate(n, cell, all, 3));
  Value memory = n.b.add(n.b.mul(forget, state.memory), n.b.mul(in, fresh));
  Value out = activated(n, cell, 0, peeping(gate(n, cell, all, 1), memory, 1));
  return {n.b.mul(out, activated(n, cell, 2, memory)), memory};
}

using Step = State (*)(NodeImport &, const Cell &, Value, const State &);

/// Differences between the three ops.
struct Kind {
  int64_t gates;
  Step step;
  SmallVector<std::string> activations;
  bool roundsState = false;
};

const std::vector<float> *floatsOf(NodeImport &n, const std::string &name) {
  auto found = n.node.attributes.find(name);
  return found == n.node.attributes.end() || found->second.kind != Attribute::Floats ? nullptr : &found->second.floats;
}

/// Activations of a direction: those of the node, each with its alpha and beta, or the op's own.
SmallVector<Activation> activationsOf(NodeImport &n, const Kind &kind, int64_t direction) {
  SmallVector<std::string> names = kind.activations;
  if (auto found = n.node.attributes.find("activations"); found != n.node.attributes.end())
    for (size_t i = 0; i < names.size(); ++i)
      if (size_t place = size_t(direction) * names.size() + i; place < found->second.strings.size())
        names[i] = found->second.strings[place];
  SmallVector<Activation> result;
  for (auto [i, name] : llvm::enumerate(names)) {
    size_t place = size_t(direction) * names.size() + i;
    auto number = [&](const char *attribute, double fallback) {
      const std::vector<float> *given = floatsOf(n, attribute);
      return given && place < given->size() ? double((*given)[place]) : fallback;
    };
    bool isAffine = StringRef(name).lower() == "affine";
    result.push_back(activationOf(n, name, number("activation_alpha", isAffine ? 1 : 0.2),
                                  number("activation_beta", isAffine ? 0 : 0.5)));
  }
  return result;
}

/// X [steps, batch, input], W, R, B?, lengths?, initial h?, (LSTM: initial c?, P?) -> Y [steps, directions, batch,
/// hidden], last h, last c. With layout 1 the batch comes first.
Results recurrent(NodeImport &n, const Kind &kind) {
  bool batchFirst = n.integer("layout", 0);
  Value x = n.in(0), weights = n.in(1), recurrences = n.in(2);
  if (n.b.rank(x) != 3 || n.b.rank(weights) != 3 || n.b.rank(recurrences) != 3)
    return {n.b.fail("its input and weights need three dims")};
  if (batchFirst)
    x = n.b.transpose(x, {1, 0, 2});
  int64_t steps = n.b.shape(x)[0], batch = n.b.shape(x)[1], directions = n.b.shape(weights)[0];
  int64_t hidden = n.b.shape(recurrences)[2];
  std::string direction = n.text("direction", "forward");
  bool isKnown = direction == "forward" || direction == "reverse" || direction == "bidirectional";
  if (!isKnown || directions != (direction == "bidirectional" ? 2 : 1) ||
      n.b.shape(recurrences) != SmallVector<int64_t>{directions, kind.gates * hidden, hidden} ||
      n.b.shape(weights) != SmallVector<int64_t>{directions, kind.gates * hidden, n.b.shape(x)[2]})
    return {n.b.fail("its W of " + shapeText(ArrayRef<int64_t>(n.b.shape(weights)).vec()) + " and R of " +
                     shapeText(ArrayRef<int64_t>(n.b.shape(recurrences)).vec()) +
                     " do not fit an input of " + std::to_string(n.b.shape(x)[2]) + " features and direction '" + direction +
                     "'; they must be directions x " + std::to_string(kind.gates) + " * hidden x features, and x hidden")};
  if (steps < 1 || steps > mostRecurrentSteps)
    return {n.unsupported("a sequence of " + countText(steps, "step") + "; 1 to " + std::to_string(mostRecurrentSteps) +
                          " are unrolled")};
  auto initial = [&](size_t index, int64_t which) {
    if (!n.has(index))
      return n.b.broadcast(n.b.scalar(0, x), {batch, hidden});
    Value state = n.b.settled(n.in(index)), given = batchFirst ? n.b.transpose(state, {1, 0, 2}) : state;
    return at(n, given, which);
  };
  Value lengths = n.has(4) ? insertDim(n, indexInput(n, 4), 1) : Value();
  std::vector<SmallVector<Value>> outputs(static_cast<size_t>(steps));
  SmallVector<Value> lastHidden, lastMemory;
  for (int64_t which = 0; which < directions && n.b.status().ok(); ++which) {
    Cell cell;
    cell.gates = kind.gates;
    cell.activations = activationsOf(n, kind, which);
    cell.recurrence = at(n, recurrences, which);
    cell.clip = n.number("clip", 0);
    cell.resetsAfter = n.integer("linear_before_reset", 0);
    cell.couplesGates = n.integer("input_forget", 0);
    cell.roundsState = kind.roundsState;
    Value inputs = n.b.matmul(x, at(n, weights, which), false, true);
    if (n.has(3)) {
      Value bias = at(n, n.b.isKnown(x) ? n.in(3) : n.b.parameter(n.in(3)), which);
      inputs = n.b.add(inputs, part(n, bias, 0, 0, 2));
      cell.recurrentBias = part(n, bias, 0, 1, 2);
    }
    if (n.has(7))
      cell.peepholes = at(n, n.b.isKnown(x) ? n.in(7) : n.b.parameter(n.in(7)), which);
    State state{initial(5, which), kind.gates == 4 ? initial(6, which) : Value()};
    bool backwards = direction == "reverse" || which == 1;
    for (int64_t i = 0; i < steps && n.b.status().ok(); ++i) {
      int64_t time = backwards ? steps - 1 - i : i;
      State next = kind.step(n, cell, at(n, inputs, time), state);
      Value output = next.hidden;
      if (lengths) { // a sequence that has ended keeps its state and gives 0
        Value isRunning = n.b.compare(nn::ComparePredicate::gt, lengths, n.b.scalar(double(time), lengths));
        output = n.b.select(isRunning, next.hidden, n.b.scalar(0, next.hidden));
        next.hidden = n.b.select(isRunning, next.hidden, state.hidden);
        if (next.memory)
          next.memory = n.b.select(isRunning, next.memory, state.memory);
      }
      state = next;
      outputs[size_t(time)].push_back(output);
    }
    lastHidden.push_back(state.hidden);
    lastMemory.push_back(state.memory);
  }
  if (!n.b.status().ok())
    return {};
  auto stacked = [&](ArrayRef<Value> values) {
    SmallVector<Value> slabs;
    for (Value value : values)
      slabs.push_back(insertDim(n, value, 0));
    return n.b.concat(slabs, 0);
  };
  SmallVector<Value> perStep;
  for (ArrayRef<Value> ofStep : outputs)
    perStep.push_back(stacked(ofStep));
  Value all = stacked(perStep), last = stacked(lastHidden);
  Value memory = kind.gates == 4 ? stacked(lastMemory) : last;
  if (batchFirst) {
    all = n.b.transpose(all, {2, 0, 1, 3});
    last = n.b.transpose(last, {1, 0, 2});
    memory = n.b.transpose(memory, {1, 0, 2});
  }
  Results results = {all, last};
  if (kind.gates == 4)
    results.push_back(memory);
  return results;
}

Results rnn(NodeImport &n) { return recurrent(n, {1, stepRnn, {"Tanh"}}); }
Results gru(NodeImport &n) { return recurrent(n, {3, stepGru, {"Sigmoid", "Tanh"}}); }
Results lstm(NodeImport &n) { return recurrent(n, {4, stepLstm, {"Sigmoid", "Tanh", "Tanh"}}); }

/// Weights of whole numbers [directions, features, gates * hidden] with one scale and zero point a direction, or one a column more, as
/// LSTM's own [directions, gates * hidden, features].
Value plainWeights(NodeImport &n, size_t weight, size_t scale) {
  SmallVector<int64_t> shape = n.b.shape(n.in(weight));
  auto spread = [&](Value x) {
    int64_t count = elementCount(n.b.shape(x));
    if (shape.size() != 3 || (count != shape[0] && count != shape[0] * shape[2]))
      return n.b.fail("its scales and zero points need one number for each direction, or one for each column of its weights");
    return n.b.cast(n.b.reshape(x, {shape[0], 1, count / shape[0]}), DType::F32);
  };
  Scaling scaling{spread(n.in(scale)), spread(n.in(scale + 1))};
  return n.b.status().ok() ? n.b.transpose(dequantized(n, n.in(weight), scaling), {0, 2, 1}) : n.in(weight);
}

/// com.microsoft: an LSTM whose weights are whole numbers. Before its products the input is quantised as one tensor and
/// each row of the state by itself, as ONNX Runtime does if each sequence has a thread.
Results dynamicQuantizeLstm(NodeImport &n) {
  n.ignoreAttributes({"hidden_size", "activations", "activation_alpha", "activation_beta"}); // lists are read by activationsOf
  Value x = n.in(0);
  SmallVector<Value> plain = {roundedDynamically(n, x, llvm::to_vector(llvm::seq<int64_t>(0, n.b.rank(x)))), plainWeights(n, 1, 8), plainWeights(n, 2, 10)};
  for (size_t index = 3; index < 8; ++index)
    plain.push_back(n.has(index) ? n.in(index) : Value());
  if (!n.b.status().ok())
    return {x, x, x};
  const ArrayRef<Value> inputs = n.allInputs();
  n.replaceInputs(plain);
  Results results = recurrent(n, {4, stepLstm, {"Sigmoid", "Tanh", "Tanh"}, true});
  n.replaceInputs(inputs);
  return results;
}

const OnnxOp recurrentTable[] = {
    {"RNN", 7, rnn}, {"GRU", 7, gru}, {"LSTM", 7, lstm}, {"DynamicQuantizeLSTM", 1, dynamicQuantizeLstm, "com.microsoft"}};

} // namespace

ArrayRef<OnnxOp> recurrentOps() { return recurrentTable; }

} // namespace hpc::onnx
