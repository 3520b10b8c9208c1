// Made-up integers are ids: numbers that whatever is looked up by them has.
#include "passes/Driver/VerifyInputs.h"

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "runtime/base/Npz.h"

namespace hpc {

/// The numbers from 0 on that all lookups by an input take; nullopt where there is none.
static std::optional<int64_t> indexedSize(BlockArgument input) {
  std::optional<int64_t> size;
  for (const nn::Lookup &lookup : nn::findLookups(input))
    size = std::min(size.value_or(lookup.high), lookup.high);
  return size;
}

/// The number of the input whose data stand for that one's, always or where none are given; nullopt where there is none.
static std::optional<unsigned> defaultOf(func::FuncOp serial, unsigned number) {
  nn::ArgumentPort port = nn::argumentPort(serial, number);
  std::string name = port.isGiven() ? port.defaultInput : port.wholeOf;
  for (unsigned other = 0; !name.empty() && other < number; ++other)
    if (nn::argumentPort(serial, other).name == name)
      return other;
  return std::nullopt;
}

/// Values that no input gives: a state is as before the first step, a step scalar is 1, which every formula allows.
static std::optional<Tensor> knownInput(BlockArgument argument, const nn::ArgumentPort &port) {
  if (!port.isState() && port.stepScalar.empty())
    return std::nullopt;
  Tensor tensor(dtypeOf(argument.getType()), nn::shapeOf(argument));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.setNumber(i, port.isState() ? port.initial : 1);
  round(tensor);
  return tensor;
}

static std::vector<Tensor> madeUpInputs(func::FuncOp serial) {
  uint64_t state = 0x9e3779b97f4a7c15; // xorshift64*, Vigna 2016
  auto next = [&]() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 0x2545f4914f6cdd1d) >> 11; // 53 bits
  };
  std::vector<Tensor> inputs;
  for (BlockArgument argument : serial.getArguments()) {
    if (std::optional<unsigned> other = defaultOf(serial, argument.getArgNumber())) {
      inputs.push_back(inputs[*other]);
      continue;
    }
    if (std::optional<Tensor> known = knownInput(argument, nn::argumentPort(serial, argument.getArgNumber()))) {
      inputs.push_back(std::move(*known));
      continue;
    }
    Tensor tensor(dtypeOf(argument.getType()), nn::shapeOf(argument));
    int64_t limit = indexedSize(argument).value_or(2);
    for (BlockArgument other : serial.getArguments()) // ids that are labels, too: what both allow
      if (defaultOf(serial, other.getArgNumber()) == argument.getArgNumber())
        limit = std::min(limit, indexedSize(other).value_or(limit));
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (tensor.isFloat())
        tensor.floats[i] = 2.0 * double(next()) / double(uint64_t(1) << 53) - 1.0;
      else
        tensor.ints[i] = limit > 0 ? int64_t(next() % uint64_t(limit)) : 0;
    round(tensor);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Expected<std::vector<Tensor>> inputsFor(func::FuncOp serial, const std::string &path) {
  if (path.empty())
    return madeUpInputs(serial);
  Expected<NamedArrays> arrays = readNpz(path, [&](const std::string &name) -> std::optional<int64_t> {
    for (BlockArgument argument : serial.getArguments())
      if (nn::argumentPort(serial, argument.getArgNumber()).name == name)
        return INT64_MAX;
    return std::nullopt;
  });
  if (!arrays.ok())
    return arrays.status();
  std::vector<Tensor> inputs;
  for (BlockArgument argument : serial.getArguments()) {
    nn::ArgumentPort port = nn::argumentPort(serial, argument.getArgNumber());
    if (std::optional<Tensor> known = knownInput(argument, port)) {
      inputs.push_back(std::move(*known));
      continue;
    }
    std::string label = port.name;
    const Array *found = nullptr;
    for (const auto &[key, array] : *arrays)
      if (key == label && port.isGiven())
        found = &array;
    if (std::optional<unsigned> other = defaultOf(serial, argument.getArgNumber()); !found && other) {
      inputs.push_back(inputs[*other]);
      continue;
    }
    if (!found)
      return Status::error(ErrorKind::Usage, "--verify=" + path + " has no array for input '" + label + "'");
    Tensor expected(dtypeOf(argument.getType()), nn::shapeOf(argument));
    if (found->dtype != expected.dtype || found->shape != expected.shape)
      return Status::error(ErrorKind::Usage,
                           "--verify=" + path + ": input '" + label + "' is " + hpc::name(found->dtype) + " " +
                               shapeText(found->shape) + ", the model was compiled for " + hpc::name(expected.dtype) +
                               " " + shapeText(expected.shape) + "; compile with other --dim, or give another file");
    inputs.push_back(tensorFromArray(*found));
  }
  return inputs;
}

} // namespace hpc
