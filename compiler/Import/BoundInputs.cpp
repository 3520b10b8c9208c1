// Inputs that --const NAME=FILE binds: they become stored tensors of the model with known content, so that shapes may
// depend on them.
#include "compiler/Import/BoundInputs.h"

#include "compiler/Import/SymbolicDims.h"
#include "runtime/base/FileKind.h"
#include "runtime/base/Npz.h"

#include <algorithm>

namespace hpc::onnx {
namespace {

Status boundUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

StoredTensor fromArray(const std::string &name, Array array) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.dtype = array.dtype;
  tensor.typeName = hpc::name(array.dtype);
  tensor.shape = array.shape;
  tensor.bytes = int64_t(array.data.size());
  tensor.owned = std::make_shared<std::vector<std::byte>>(std::move(array.data));
  tensor.data = tensor.owned->data();
  return tensor;
}

/// The array of that name in an archive, or its only one.
Expected<StoredTensor> readArchive(const std::string &name, const std::string &path) {
  std::string names;
  size_t count = 0;
  Expected<NamedArrays> arrays = readNpz(path, [&](const std::string &key) -> std::optional<int64_t> {
    names += (names.empty() ? "" : ", ") + key;
    return ++count == 1 || key == name ? std::optional(INT64_MAX) : std::nullopt;
  });
  if (!arrays.ok())
    return arrays.status();
  for (auto &[key, array] : *arrays)
    if (key == name || count == 1)
      return fromArray(name, std::move(array));
  return boundUsage("it has no array '" + name + "'; it has " + (names.empty() ? "none" : names));
}

/// The content of a file decides its kind: .npz, .npy, or a TensorProto, which has no magic number.
Expected<StoredTensor> readBound(const std::string &name, const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  const FileKind kind = fileKindOf(file->text());
  switch (kind) {
  case FileKind::Npy: {
    Expected<Array> array = readNpy(path);
    return array.ok() ? Expected<StoredTensor>(fromArray(name, std::move(*array))) : array.status();
  }
  case FileKind::Npz:
  case FileKind::Zip:
    return readArchive(name, path);
  case FileKind::Unknown: {
    Expected<StoredTensor> tensor = readTensor(path);
    if (tensor.ok())
      tensor->name = name;
    return tensor;
  }
  default:
    return boundUsage("a constant is read from a .npy, .npz or .pb file, and this one is " + std::string(describe(kind)));
  }
}

} // namespace

/// Removes an input's default value.
static void dropDefault(Model &model, const std::string &name) {
  auto isNamed = [&](const auto &each) { return each.name == name; };
  auto input = std::find_if(model.defaults.begin(), model.defaults.end(), isNamed);
  if (input == model.defaults.end())
    return;
  model.inputs.push_back(std::move(*input));
  model.defaults.erase(input);
  model.initializers.erase(std::find_if(model.initializers.begin(), model.initializers.end(), isNamed));
}

Expected<std::vector<StoredTensor>> readBoundInputs(Model &model, const std::map<std::string, std::string> &files,
                                                    std::map<std::string, int64_t> &dims) {
  std::vector<StoredTensor> bound;
  for (const auto &[name, path] : files) {
    std::string flag = "--const " + name + "=" + path;
    dropDefault(model, name);
    auto input = std::find_if(model.inputs.begin(), model.inputs.end(),
                              [&, &name = name](const ValueInfo &each) { return each.name == name; });
    if (input == model.inputs.end()) {
      std::string names;
      for (const std::vector<ValueInfo> *list : {&model.inputs, &model.defaults})
        for (const ValueInfo &each : *list)
          names += (names.empty() ? "" : ", ") + each.name;
      return boundUsage(flag + " names no input of the model; it has " + (names.empty() ? "none" : names));
    }
    Expected<StoredTensor> tensor = readBound(name, path);
    if (!tensor.ok())
      return tensor.status().at(flag);
    if (!tensor->dtype || !input->dtype)
      return Status::error(ErrorKind::Unsupported, flag + ": input '" + name + "' has type " + input->typeName);
    bool fits = *tensor->dtype == *input->dtype && (!input->hasShape || tensor->shape.size() == input->dims.size());
    for (size_t dim = 0; fits && input->hasShape && dim < input->dims.size(); ++dim) {
      int64_t size = tensor->shape[dim];
      const Dim &wanted = input->dims[dim];
      if (auto given = dims.find(placeText(*input, dim)); wanted.size || wanted.symbol.empty() || given != dims.end()) {
        fits = (!wanted.size || *wanted.size == size) && (given == dims.end() || given->second == size);
        if (!wanted.size)
          dims.try_emplace(placeText(*input, dim), size);
      } else if (namesIn(wanted.symbol) == std::vector<std::string>{wanted.symbol}) {
        auto [known, isNew] = dims.try_emplace(wanted.symbol, size);
        if (!isNew && known->second != size)
          return boundUsage(flag + " makes " + wanted.symbol + " " + std::to_string(size) + ", but it is " +
                       std::to_string(known->second) + " elsewhere; give arrays and --dim of one size");
      }
    }
    if (!fits) {
      std::string wanted;
      for (size_t dim = 0; dim < input->dims.size(); ++dim)
        wanted += (dim ? "x" : "") + dimText(*input, dim);
      return boundUsage(flag + " holds " + hpc::name(*tensor->dtype) + " " + shapeText(tensor->shape) +
                   ", but the input is " + hpc::name(*input->dtype) +
                   (input->hasShape ? " " + (wanted.empty() ? "scalar" : wanted) : ""));
    }
    tensor->isConstant = true;
    tensor->narrow = input->narrow;
    bound.push_back(std::move(*tensor));
  }
  return bound;
}

Status bindInputs(Model &model, std::vector<StoredTensor> bound, std::vector<std::vector<int64_t>> &shapes) {
  for (StoredTensor &tensor : bound) {
    size_t index = size_t(std::find_if(model.inputs.begin(), model.inputs.end(),
                                       [&](const ValueInfo &input) { return input.name == tensor.name; }) -
                          model.inputs.begin());
    if (model.inputs[index].hasShape && shapes[index] != tensor.shape)
      return boundUsage("--const " + tensor.name + " holds an array of shape " + shapeText(tensor.shape) +
                   ", but the sizes given make the input " + shapeText(shapes[index]));
    model.inputs.erase(model.inputs.begin() + std::ptrdiff_t(index));
    shapes.erase(shapes.begin() + std::ptrdiff_t(index));
    model.initializers.push_back(std::move(tensor));
  }
  return Status::success();
}

} // namespace hpc::onnx
