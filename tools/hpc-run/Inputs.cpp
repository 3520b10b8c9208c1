// Sorts the given arrays by the plan's inputs and checks each against its port.
#include "tools/hpc-run/Inputs.h"

#include "runtime/base/File.h"
#include "runtime/base/FileKind.h"
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

Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

/// Names that --input may give: the plan's inputs, and after them the weights that are defaults of inputs.
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

/// Replaces the content of the weight by the array.
void replace(plan::Weight &weight, const Array &array) {
  weight.file = -1;
  weight.offset = 0;
  weight.inlineData.assign(reinterpret_cast<const char *>(array.data.data()), array.data.size());
  weight.hashes = hashChunks(array.data.data(), int64_t(array.data.size()));
}

/// Larger arrays are not unpacked; one that is a little too large is, so that the message has its shape.
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

/// Takes the arrays of an archive that are inputs of the plan.
Status takeArchive(const plan::Plan &plan, const Targets &targets, const MappedFile &file, const std::string &place,
                   std::vector<std::optional<Given>> &given, std::vector<std::string> &notes) {
  std::vector<std::string> ignored;
  Status compiledIn;
  Expected<NamedArrays> arrays = parseNpz(file.text(), file.path(), [&](const std::string &name) -> std::optional<int64_t> {
    if (int64_t port = findPort(targets.ports, name); port >= 0)
      return mostNpyBytes(targets.ports[size_t(port)]);
    if (compiledIn.ok())
      compiledIn = checkNotCompiledIn(plan, name, place);
    ignored.push_back(name);
    return std::nullopt;
  });
  HPC_RETURN_IF_ERROR(arrays.status());
  HPC_RETURN_IF_ERROR(compiledIn);
  for (auto &[name, array] : *arrays) {
    size_t port = size_t(findPort(targets.ports, name));
    HPC_RETURN_IF_ERROR(give(given[port], targets.ports[port], {std::move(array), place, false}));
  }
  if (!ignored.empty())
    notes.push_back(ignoredNote(ignored, file.path()));
  return Status::success();
}

/// FILE, or NAME=FILE; a file whose name has a '=' is taken for itself where it is there.
bool hasName(const std::string &flag) {
  std::error_code error;
  return flag.find('=') != std::string::npos && !std::filesystem::exists(flag, error);
}

} // namespace

std::string fileOfInput(const std::string &flag) { return hasName(flag) ? flag.substr(flag.find('=') + 1) : flag; }

Expected<std::vector<Array>> readInputs(plan::Plan &plan, const std::vector<std::string> &flags,
                                        std::vector<std::string> &notes) {
  const Targets targets = findTargets(plan);
  std::vector<std::optional<Given>> given(targets.ports.size());
  for (const std::string &flag : flags) {
    const std::string place = "--input=" + flag, path = fileOfInput(flag);
    const std::string name = hasName(flag) ? flag.substr(0, flag.find('=')) : "";
    const int64_t port = findPort(targets.ports, name);
    if (hasName(flag))
      HPC_RETURN_IF_ERROR(checkNotCompiledIn(plan, name, place));
    if (hasName(flag) && port < 0 && !std::filesystem::exists(path))
      return usage(place + ": the plan has no input '" + name + "'; its inputs are: " + portList(plan));
    Expected<MappedFile> file = MappedFile::open(path);
    HPC_RETURN_IF_ERROR(file.status());
    const FileKind kind = fileKindOf(file->text());
    const bool isArchive = kind == FileKind::Npz || kind == FileKind::Zip;
    if (!isArchive && kind != FileKind::Npy)
      return usage(place + ": '" + path + "' is " + describe(kind) + ", neither an .npz nor an .npy" +
                   (useOf(kind).empty() ? "" : "; " + useOf(kind)));
    if (isArchive && hasName(flag))
      return usage(place + ": an .npz has names of its own; give --input=" + path + ", or NAME=FILE.npy");
    if (!isArchive && !hasName(flag))
      return usage(place + ": is one array, an .npy: say of which input, --input=NAME=" + path + "; inputs are: " + portList(plan));
    if (isArchive) {
      HPC_RETURN_IF_ERROR(takeArchive(plan, targets, *file, place, given, notes));
      continue;
    }
    if (port < 0)
      return usage(place + ": the plan has no input '" + name + "'; its inputs are: " + portList(plan));
    Expected<Array> array = parseNpy(file->text(), "'" + path + "'");
    HPC_RETURN_IF_ERROR(array.status());
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
                   "=FILE.npy" + (port.largest ? "; hpc-generate gives it" : port.isStepScalar ? "; --train gives it, and --data the others" : ""));
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
