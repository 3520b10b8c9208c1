// Sorts the given arrays by the plan's inputs and checks each against its port.
#include "tools/hpc-run/Inputs.h"

#include "runtime/base/Hash.h"
#include "runtime/base/Npy.h"
#include "runtime/base/Npz.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace hpc {

namespace {

struct Given {
  Array array;
  std::string place; ///< for errors: "--input=x.npz"
  bool byName = false;
};

const char *numpyName(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return "float32";
  case DType::F64:
    return "float64";
  case DType::F16:
    return "float16";
  case DType::BF16:
    return "bfloat16";
  case DType::I64:
    return "int64";
  case DType::I32:
    return "int32";
  case DType::I16:
    return "int16";
  case DType::I8:
    return "int8";
  case DType::U8:
    return "uint8";
  case DType::U16:
    return "uint16";
  case DType::U32:
    return "uint32";
  case DType::U64:
    return "uint64";
  case DType::Bool:
    return "bool";
  }
  return "?";
}

std::string portText(const plan::Port &port) {
  return "'" + port.name + "' (" + shapeText(port.shape) + " of " + name(port.dtype) + ")";
}

std::string portList(const plan::Plan &plan) {
  std::string list;
  for (const plan::Port &port : plan.inputs)
    list += (list.empty() ? "" : ", ") + portText(port);
  return list.empty() ? "none" : list;
}

bool isNpz(const std::string &flag) { return flag.size() >= 4 && flag.compare(flag.size() - 4, 4, ".npz") == 0; }

Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

/// What may be given: the plan's inputs, and behind them the weights that are defaults of inputs.
struct Targets {
  std::vector<plan::Port> ports;
  std::vector<plan::Weight *> weights; ///< null: an input
};

Targets findTargets(plan::Plan &plan) {
  Targets targets{plan.inputs, std::vector<plan::Weight *>(plan.inputs.size())};
  for (plan::Weight &weight : plan.weights)
    if (weight.isInput) {
      plan::Port &port = targets.ports.emplace_back();
      port.name = weight.name;
      port.dtype = weight.dtype;
      port.shape = weight.shape;
      targets.weights.push_back(&weight);
    }
  return targets;
}

/// -1 if there is none of that name.
int64_t findPort(const std::vector<plan::Port> &ports, const std::string &name) {
  auto found = std::find_if(ports.begin(), ports.end(), [&](const plan::Port &port) { return port.name == name; });
  return found == ports.end() ? -1 : found - ports.begin();
}

/// An input whose value in the model is part of the program.
Status checkNotCompiledIn(const plan::Plan &plan, const std::string &name, const std::string &place) {
  if (std::find(plan.compiledIn.begin(), plan.compiledIn.end(), name) == plan.compiledIn.end())
    return Status::success();
  return usage(place + ": input '" + name + "' has a value in the model, and the plan was compiled for it; compile it for another: "
               "hpc-opt --const " + name + "=FILE");
}

/// The weight is the array from now on, whatever its file holds.
void replace(plan::Weight &weight, const Array &array) {
  weight.file = -1;
  weight.offset = 0;
  weight.inlineData.assign(reinterpret_cast<const char *>(array.data.data()), array.data.size());
  weight.hashes = hashChunks(array.data.data(), int64_t(array.data.size()));
}

/// What is larger than that is not unpacked; what is a little too large is, so that the message can say its shape.
int64_t mostNpyBytes(const plan::Port &port) {
  return checkedBytes(port.dtype, port.shape).value_or(0) + (int64_t(64) << 20);
}

/// Keeps an array for an input; a second one of the same sort is an error.
Status give(std::optional<Given> &slot, const plan::Port &port, Given given) {
  if (slot && slot->byName == given.byName)
    return usage("input '" + port.name + "' is given twice, by " + slot->place + " and by " + given.place);
  if (!slot || given.byName)
    slot = std::move(given);
  return Status::success();
}

Status checkArray(const plan::Port &port, const Given &given) {
  if (given.array.dtype != port.dtype)
    return usage("input '" + port.name + "' of " + given.place + " is " + name(given.array.dtype) +
                 ", the plan takes " + name(port.dtype) + "; convert it: a.astype('" + numpyName(port.dtype) + "')");
  if (given.array.shape != port.shape)
    return usage("input '" + port.name + "' of " + given.place + " has shape " + shapeText(given.array.shape) +
                 ", the plan was compiled for " + shapeText(port.shape) +
                 "; give that shape, or compile for the other one (hpc-opt --dim)");
  return Status::success();
}

/// One line for all arrays of a file that no input takes; long lists are cut short.
std::string ignoredNote(const std::vector<std::string> &names, const std::string &file) {
  std::string text = "note: " + std::string(names.size() == 1 ? "array " : "arrays ");
  constexpr size_t most = 5;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > most)
    text += " and " + std::to_string(names.size() - most) + " more";
  return text + " of '" + file + "' " + (names.size() == 1 ? "is" : "are") + " ignored: the plan has no such input";
}

} // namespace

std::string fileOfInput(const std::string &flag) {
  if (isNpz(flag))
    return flag;
  size_t equals = flag.find('=');
  return equals == std::string::npos ? "" : flag.substr(equals + 1);
}

Expected<std::vector<Array>> readInputs(plan::Plan &plan, const std::vector<std::string> &flags,
                                        std::vector<std::string> &notes) {
  const Targets targets = findTargets(plan);
  std::vector<std::optional<Given>> given(targets.ports.size());
  for (const std::string &flag : flags) {
    std::string place = "--input=" + flag;
    if (size_t equals = flag.find('='); isNpz(flag) && equals != std::string::npos && !std::filesystem::exists(flag) &&
                                        std::filesystem::exists(flag.substr(equals + 1)))
      return usage(place + ": an .npz has names of its own; give --input=" + flag.substr(equals + 1) +
                   ", or NAME=FILE.npy");
    if (isNpz(flag)) {
      std::vector<std::string> ignored;
      Status compiledIn;
      Expected<NamedArrays> arrays = readNpz(flag, [&](const std::string &name) -> std::optional<int64_t> {
        if (int64_t port = findPort(targets.ports, name); port >= 0)
          return mostNpyBytes(targets.ports[size_t(port)]);
        if (compiledIn.ok())
          compiledIn = checkNotCompiledIn(plan, name, place);
        ignored.push_back(name);
        return std::nullopt;
      });
      if (!arrays.ok())
        return arrays.status();
      HPC_RETURN_IF_ERROR(compiledIn);
      for (auto &[name, array] : *arrays) {
        size_t port = size_t(findPort(targets.ports, name));
        HPC_RETURN_IF_ERROR(give(given[port], targets.ports[port], {std::move(array), place, false}));
      }
      if (!ignored.empty())
        notes.push_back(ignoredNote(ignored, flag));
      continue;
    }
    size_t equals = flag.find('=');
    if (equals == std::string::npos)
      return usage(place + ": is neither FILE.npz nor NAME=FILE.npy");
    HPC_RETURN_IF_ERROR(checkNotCompiledIn(plan, flag.substr(0, equals), place));
    int64_t port = findPort(targets.ports, flag.substr(0, equals));
    if (port < 0)
      return usage(place + ": the plan has no input '" + flag.substr(0, equals) +
                   "'; its inputs are: " + portList(plan));
    Expected<Array> array = readNpy(flag.substr(equals + 1));
    if (!array.ok())
      return array.status();
    HPC_RETURN_IF_ERROR(give(given[size_t(port)], targets.ports[size_t(port)], {std::move(*array), place, true}));
  }

  std::vector<Array> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    const plan::Port &port = targets.ports[i];
    plan::Weight *weight = targets.weights[i];
    if (!given[i] && weight)
      continue;
    if (!given[i])
      return usage("input " + portText(port) + " is missing; give it by --input=FILE.npz or --input=" + port.name +
                   "=FILE.npy" + (port.isStepScalar ? "; --train gives it, and --data the others" : ""));
    HPC_RETURN_IF_ERROR(checkArray(port, *given[i]));
    if (weight) {
      replace(*weight, given[i]->array);
      continue;
    }
    inputs.push_back(std::move(given[i]->array));
  }
  return inputs;
}

} // namespace hpc
