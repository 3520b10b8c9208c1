// Errors are collected: all tensors that do not fit are named at once.
#include "passes/Driver/TrainedModel.h"

#include "compiler/Import/WeightContent.h"
#include "compiler/Import/WeightTable.h"
#include "runtime/base/Array.h"
#include "runtime/base/CountText.h"
#include "runtime/base/Nearest.h"
#include "runtime/core/CheckpointState.h"
#include "runtime/core/TensorNames.h"

#include <filesystem>

namespace hpc {

using onnx::StoredTensor, onnx::WeightKind;

namespace {

template <typename Visit> void eachNode(const std::vector<onnx::Node> &nodes, const Visit &visit) {
  for (const onnx::Node &node : nodes) {
    visit(node);
    for (const auto &[name, attribute] : node.attributes)
      if (attribute.graph)
        eachNode(attribute.graph->nodes, visit);
  }
}

std::string tensorText(const std::string &typeName, const std::vector<int64_t> &shape) { return shapeText(shape) + " of " + typeName; }

Status listed(ErrorKind kind, const std::string &head, const std::vector<std::string> &problems, const std::string &remedy) {
  constexpr size_t most = 20;
  std::string text = head;
  for (size_t i = 0; i < std::min(most, problems.size()); ++i)
    text += "\n  " + problems[i];
  if (problems.size() > most)
    text += "\n  and " + std::to_string(problems.size() - most) + " more";
  return Status::error(kind, text + "\n" + remedy);
}

std::string someNames(const std::vector<std::string> &names) {
  constexpr size_t most = 5;
  std::string text;
  for (size_t i = 0; i < std::min(most, names.size()); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return text + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
}

/// Whether the file says, or the name and shape suggest, that training changes the tensor.
bool seemsTrained(const ModelTensor &tensor) {
  const StoredTensor *stored = tensor.stored;
  if (!stored || !tensor.isRead || stored->isExporters || !stored->dtype || !isFloat(*stored->dtype) || !onnx::isWeight(*stored))
    return false;
  if (stored->kind == WeightKind::Parameter || !tensor.origin.empty() || !stored->madeOf.empty())
    return true;
  const std::string leaf = tensor.name().substr(tensor.name().rfind('.') + 1);
  return stored->kind == WeightKind::Unsaid && isStateName(tensor.name()) && (leaf == "weight" || leaf == "bias" || stored->shape.size() > 1);
}

/// Equal for tensors that could be one weight, one of them perhaps transposed.
std::string contentKey(const StoredTensor &stored) {
  std::vector<int64_t> shape = stored.shape;
  if (shape.size() == 2)
    std::sort(shape.begin(), shape.end());
  const size_t width = size_t(byteSize(*stored.dtype));
  const char *data = reinterpret_cast<const char *>(stored.data);
  return stored.typeName + shapeText(shape) + std::string(data, width) + std::string(data + stored.bytes - int64_t(width), width);
}

bool hasContent(const StoredTensor *stored) {
  return stored && stored->dtype && isFloat(*stored->dtype) && stored->data && stored->bytes > 0;
}

/// Whether `b` is `a`, or its transpose.
std::optional<bool> isTransposeOf(const StoredTensor &a, const StoredTensor &b) {
  if (a.shape == b.shape && sameContent(a.data, b.data, a.bytes))
    return false;
  const bool isMirrored = a.shape.size() == 2 && b.shape.size() == 2 && a.shape[0] == b.shape[1] && a.shape[1] == b.shape[0];
  if (isMirrored && isTransposed(a.data, b.data, a.shape[0], a.shape[1], byteSize(*a.dtype)))
    return true;
  return std::nullopt;
}

} // namespace

bool isStateName(const std::string &name) {
  return name.find("::") == std::string::npos && name.find('/') == std::string::npos && name.compare(0, 4, "val_") != 0;
}

bool isMapped(const TensorFiles &files) { return files.kind() == FileKind::SafeTensors || files.kind() == FileKind::SafeTensorsIndex; }

Status TrainedModel::read(const std::string &path, bool followLinks) {
  Expected<onnx::Model> opened = onnx::readOnnx(path, {false, followLinks});
  HPC_RETURN_IF_ERROR(opened.status());
  model = std::move(*opened);
  HPC_RETURN_IF_ERROR(onnx::inlineFunctions(model).at(path));
  onnx::separateNames(model);
  Expected<std::vector<onnx::TensorPlace>> places = onnx::tensorPlaces(file());
  HPC_RETURN_IF_ERROR(places.status());
  for (const StoredTensor *tensor : onnx::storedTensors(model))
    stored.emplace(tensor->name, tensor);
  eachNode(model.nodes, [&](const onnx::Node &node) {
    auto value = node.attributes.find("value");
    if (node.op == "Constant" && value != node.attributes.end() && value->second.tensor)
      stored.emplace(value->second.tensor->name, value->second.tensor.get());
  });
  for (onnx::TensorPlace &place : *places) {
    ModelTensor tensor;
    for (size_t i = 0; i < place.names.size() && !tensor.stored; ++i)
      if (auto found = stored.find(place.names[i]); found != stored.end()) {
        tensor.stored = found->second;
        std::swap(place.names[0], place.names[i]);
      }
    tensor.place = std::move(place);
    list.push_back(std::move(tensor));
  }
  noteReaders();
  return Status::success();
}

/// Finds out what reads each tensor, as far as names depend on it (WeightTable::setStateNames).
void TrainedModel::noteReaders() {
  std::set<std::string> read;
  if (Expected<std::vector<const onnx::Node *>> nodes = onnx::orderedNodes(model); nodes.ok())
    for (const onnx::Node *node : *nodes) {
      read.insert(node->inputs.begin(), node->inputs.end());
      read.insert(node->captured.begin(), node->captured.end());
    }
  for (const onnx::ValueInfo &output : model.outputs)
    read.insert(output.name);
  std::map<std::string, std::set<std::string>> readers;
  eachNode(model.nodes, [&](const onnx::Node &node) {
    for (const std::string &input : node.inputs)
      if (!node.modulePath.empty())
        readers[input].insert(node.modulePath);
    if (node.op == "Identity" && node.inputs.size() == 1 && node.outputs.size() == 1)
      passedOn[node.inputs[0]].push_back(node.outputs[0]);
  });
  for (ModelTensor &tensor : list) {
    const std::string &name = tensor.name();
    tensor.isRead = read.count(name) || tensor.place.names.size() > 1; // a name of a subgraph is not looked for
    if (!tensor.stored || tensor.stored->shape.size() != 2)
      continue;
    if (tensor.stored->madeOf.size() == 1 && tensor.stored->madeOf[0].find('.') != std::string::npos)
      tensor.origin = tensor.stored->madeOf[0];
    else if (name.compare(0, 6, "onnx::") == 0 && readers[name].size() == 1)
      tensor.origin = *readers[name].begin() + ".weight";
  }
}

std::vector<std::string> TrainedModel::otherNames(const std::string &name) const {
  auto found = passedOn.find(name);
  return found == passedOn.end() ? std::vector<std::string>() : found->second;
}

Status TrainedModel::matchByName(const std::string &flag) {
  std::map<std::string, std::vector<int64_t>> available;
  for (const auto &[name, tensor] : trained->tensors())
    available.emplace(name, tensor.shape);
  std::vector<WantedTensor> wanted;
  std::vector<size_t> indices;
  for (size_t i = 0; i < list.size(); ++i) {
    const ModelTensor &tensor = list[i];
    if (!tensor.place.dtype || (!isFloat(*tensor.place.dtype) && !available.count(tensor.name())))
      continue;
    std::vector<std::string> names = {tensor.name()};
    // Numbers of an exporter ("val_12") are other tensors in another export.
    const bool isForeign = !tensor.origin.empty() && !isCheckpoint;
    if (!tensor.origin.empty() && !available.count(tensor.name()))
      names.push_back(tensor.origin);
    else if (isForeign)
      names = {tensor.origin};
    wanted.push_back({names, tensor.place.shape, !tensor.origin.empty()});
    indices.push_back(i);
  }
  NameMatches matches = matchNames(wanted, available);
  std::vector<std::string> problems;
  for (size_t k = 0; k < indices.size(); ++k) {
    if (!matches.of[k])
      continue;
    ModelTensor &tensor = list[indices[k]];
    const NamedTensor &found = trained->tensors().at(matches.of[k]->found);
    const std::vector<int64_t> &shape = tensor.place.shape, turned(shape.rbegin(), shape.rend());
    const bool isOrigin = !tensor.origin.empty() && matches.of[k]->found != tensor.name();
    const std::string is = "tensor '" + matches.of[k]->found + "' is " + tensorText(found.typeName, found.shape) + ", the model's '" + tensor.name() + "' " +
                           tensorText(name(*tensor.place.dtype), shape);
    if (isOrigin && found.shape == shape && shape[0] == shape[1])
      problems.push_back(is + ", and nothing shows whether the exporter transposed it; export with torch.onnx.export(..., dynamo=True, optimize=False)");
    else if (found.shape != shape && !(isOrigin && found.shape == turned))
      problems.push_back(is);
    else if (!found.dtype || !canBecome(*found.dtype, *tensor.place.dtype))
      problems.push_back(is + "; convert it");
    else
      tensor.trained = TrainedTensor{matches.of[k]->found, &found, found.shape != shape, isMapped(*trained)};
  }
  for (const std::string &note : matches.notes)
    notes.push_back(flag + ": " + note);
  if (!problems.empty())
    return listed(ErrorKind::Io, flag + ": '" + trained->path() + "' does not fit the model '" + model.path + "':", problems, "give weights of this model");
  return Status::success();
}

/// A tensor without a trained one of its name was one parameter with another, which the untrained content shows.
void TrainedModel::matchByContent() {
  std::map<std::string, std::vector<ModelTensor *>> matched;
  std::map<std::tuple<std::string, int64_t, int64_t>, ModelTensor *> byPlace; // of external data
  for (ModelTensor &tensor : list) {
    if (!tensor.trained)
      continue;
    if (tensor.place.isExternal)
      byPlace.emplace(std::tuple(tensor.place.location, tensor.place.offset, tensor.place.bytes), &tensor);
    if (hasContent(tensor.stored))
      matched[contentKey(*tensor.stored)].push_back(&tensor);
  }
  for (ModelTensor &tensor : list) {
    if (tensor.trained || !tensor.place.dtype || !isFloat(*tensor.place.dtype))
      continue;
    auto twin = byPlace.find({tensor.place.location, tensor.place.offset, tensor.place.bytes});
    if (tensor.place.isExternal && twin != byPlace.end() && twin->second->place.shape == tensor.place.shape) {
      tensor.trained = twin->second->trained;
      continue;
    }
    // Fresh biases and norms are all zeros and ones, whose equality proves nothing.
    if (!hasContent(tensor.stored) || tensor.stored->isExporters || isFilled(tensor.stored->data, tensor.stored->bytes, byteSize(*tensor.stored->dtype)))
      continue;
    for (ModelTensor *other : matched[contentKey(*tensor.stored)]) {
      const bool areApart = tensor.stored->kind == WeightKind::Parameter && other->stored->kind == WeightKind::Parameter;
      std::optional<bool> turned = areApart ? std::nullopt : isTransposeOf(*other->stored, *tensor.stored);
      if (!turned)
        continue;
      tensor.trained = other->trained;
      tensor.trained->isTransposed = other->trained->isTransposed != *turned;
      notes.push_back("'" + tensor.name() + "' has the trained values of '" + other->name() + "'" + (*turned ? ", transposed" : "") +
                      ": they were one weight before the training");
      break;
    }
  }
}

Status TrainedModel::checkMissing(const TrainedWeights &weights) {
  std::vector<std::string> names, problems, kept;
  for (const auto &[name, tensor] : trained->tensors())
    names.push_back(name);
  constexpr size_t mostNearest = 20; // names are compared letter by letter
  for (const ModelTensor &tensor : list) {
    if (tensor.trained || !seemsTrained(tensor))
      continue;
    kept.push_back(tensor.name());
    const std::string &wanted = tensor.origin.empty() ? tensor.name() : tensor.origin;
    std::vector<std::string> near = problems.size() < mostNearest ? nearestNames(wanted, names) : std::vector<std::string>();
    near.resize(std::min<size_t>(near.size(), 3));
    problems.push_back("has no tensor '" + wanted + "' (" + tensorText(tensor.stored->typeName, tensor.place.shape) + ")" +
                       (near.empty() ? "" : "; did you mean " + anyOf(near) + "?"));
  }
  if (problems.empty())
    return Status::success();
  if (!isCheckpoint)
    return listed(ErrorKind::Io, weights.flag + ": '" + trained->path() + "' lacks what the model '" + model.path + "' has:", problems,
                  "give all weights of the model");
  notes.push_back(countText(int64_t(kept.size()), "tensor") + " of the model " + (kept.size() == 1 ? "keeps its value" : "keep their values") +
                  ", since the checkpoint has none: " + someNames(kept));
  return Status::success();
}

/// A trained tensor without a place is an error, unless it is what another one is, or was never trained.
Status TrainedModel::checkUnused(const TrainedWeights &weights) {
  std::set<std::string> used;
  for (const ModelTensor &tensor : list)
    if (tensor.trained)
      used.insert(tensor.trained->name);
  std::vector<std::string> additional, problems;
  const std::set<std::string> known = onnx::allNames(model);
  // A number of the compilation, as a dequantised weight is (GraphBuilder::computedParameter).
  auto isComputed = [&](const std::string &name) { return (known.count(name) && !stored.count(name)) || name.find(".float") != name.npos; };
  auto isUnchanged = [&](const std::string &name, const NamedTensor &tensor) {
    auto found = stored.find(name);
    return found != stored.end() && found->second->dtype == tensor.dtype && found->second->shape == tensor.shape && found->second->data &&
           sameContent(found->second->data, tensor.data, tensor.bytes);
  };
  for (const auto &[name, tensor] : trained->tensors()) {
    if (used.count(name))
      continue;
    bool isTwin = false;
    for (const std::string &other : used)
      isTwin = isTwin || isSameTensor(trained->tensors().at(other), tensor);
    const bool isPassedOn = std::any_of(passedOn.begin(), passedOn.end(), [&, &name = name](const auto &entry) { return llvm::is_contained(entry.second, name); });
    if (isTwin || isUnchanged(name, tensor))
      continue;
    if (isPassedOn)
      problems.push_back("tensor '" + name + "' differs from the one that is its initializer in the model, where both are one");
    else if (isCheckpoint && !isComputed(name))
      problems.push_back("tensor '" + name + "' (" + tensorText(tensor.typeName, tensor.shape) + ") is no initializer of the model");
    else
      additional.push_back(name);
  }
  if (!problems.empty())
    return listed(ErrorKind::Usage, weights.flag + ": the model '" + model.path + "' has no place for what was trained:", problems,
                  "give the model that was trained; constants in the model's own functions cannot be replaced");
  if (!additional.empty())
    notes.push_back(weights.flag + ": the model does not have " + someNames(additional));
  return Status::success();
}

/// The hashes of the weights of a checkpoint.
static Status checkWeights(const std::string &folder) {
  Expected<CheckpointState> state = readCheckpointState(folder);
  HPC_RETURN_IF_ERROR(state.status());
  for (const CheckpointFile &file : state->files)
    if (folderOf(file.path) == ".") // of the model
      HPC_RETURN_IF_ERROR(checkCheckpointFile(folder, file));
  return Status::success();
}

Expected<TrainedModel> TrainedModel::open(const std::string &path, const TrainedWeights &weights) {
  TrainedModel result;
  Expected<TensorFiles> opened = TensorFiles::open(weights.path, {weights.flag, {}, weights.followLinks});
  HPC_RETURN_IF_ERROR(opened.status());
  result.trained.emplace(std::move(*opened));
  const bool isFolder = isCheckpointFolder(weights.path);
  if (isFolder)
    HPC_RETURN_IF_ERROR(checkWeights(weights.path));
  result.isCheckpoint = isFolder || isCheckpointFolder(folderOf(weights.path)) || result.trained->metadata().count("steps") > 0;
  HPC_RETURN_IF_ERROR(result.read(path, weights.followLinks));
  HPC_RETURN_IF_ERROR(result.matchByName(weights.flag));
  result.matchByContent();
  HPC_RETURN_IF_ERROR(result.checkMissing(weights));
  HPC_RETURN_IF_ERROR(result.checkUnused(weights));
  return result;
}

} // namespace hpc
