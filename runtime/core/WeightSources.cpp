// Where each tensor of a plan is: in the plan's own files by offset, which hashes prove; in a replacement by name; in a
// checkpoint by the name that it is saved under.
#include "runtime/core/Weights.h"

#include "runtime/base/Array.h"
#include "runtime/base/CountText.h"
#include "runtime/base/Hash.h"
#include "runtime/base/Nearest.h"
#include "runtime/core/CheckpointFiles.h"
#include "runtime/core/CheckpointState.h"
#include "runtime/core/SavedTensors.h"
#include "runtime/core/TensorNames.h"
#include "runtime/core/WideningConversion.h"

#include <algorithm>
#include <functional>
#include <cstring>
#include <filesystem>

namespace hpc {

namespace {

std::string fileNameOf(const std::string &path) { return path.substr(path.rfind('/') + 1); }

std::string tensorText(DType dtype, const std::vector<int64_t> &shape) { return shapeText(shape) + " of " + name(dtype); }

std::vector<std::string> namesOf(const plan::Weight &weight) {
  std::vector<std::string> names = {weight.name};
  for (const std::string &name : weight.stateNames)
    if (name != weight.name)
      names.push_back(name);
  return names;
}

/// The file of the plan that a file without names stands in for.
Expected<size_t> replacedFile(const plan::Plan &plan, const std::string &replacement) {
  if (plan.files.size() == 1)
    return size_t(0);
  std::string names;
  for (size_t i = 0; i < plan.files.size(); ++i) {
    if (fileNameOf(plan.files[i].path) == fileNameOf(replacement))
      return i;
    names += (i ? ", " : "") + fileNameOf(plan.files[i].path);
  }
  return Status::error(ErrorKind::Usage, "--weights=" + replacement + ": the plan reads " +
                                             (names.empty() ? std::string("no weight file")
                                                            : "several files (" + names +
                                                                  "); give a file with one of these names, the folder "
                                                                  "of all, or a .safetensors file"));
}

/// One error of all tensors that do not match, a line each.
Status problemsError(const std::string &flag, const std::string &file, const std::vector<std::string> &problems, int64_t needed) {
  constexpr size_t most = 20;
  std::string text = flag + ": '" + file + "' does not have what the plan needs, in " + std::to_string(problems.size()) + " of " +
                     countText(needed, "tensor");
  for (size_t i = 0; i < std::min(most, problems.size()); ++i)
    text += "\n  " + problems[i];
  if (problems.size() > most)
    text += "\n  and " + std::to_string(problems.size() - most) + " more";
  return Status::error(ErrorKind::Io, text + "\ngive weights of the model that was compiled, under the names of the ONNX model or "
                                             "of the module that was exported (hpc-opt MODEL --list-params prints them); names of the "
                                             "exporter's own (val_12, onnx::MatMul_3) become those of the module by "
                                             "torch.onnx.export(..., dynamo=True, optimize=False)");
}

/// "'a', 'b' and 3 more"
std::string quotedNames(const std::vector<std::string> &names) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return text + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
}

} // namespace

Status Weights::checkContentIsKnown() const {
  const plan::Weight *first = nullptr;
  int64_t count = 0;
  for (const plan::Weight &weight : plan->weights)
    if (weight.isAbsent() && ++count == 1)
      first = &weight;
  if (count == 0)
    return Status::success();
  return Status::error(ErrorKind::Usage, "the plan was compiled without weights: '" + first->name + "' (" +
                                             tensorText(first->dtype, first->shape) + ")" +
                                             (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") +
                                             " must come by --weights: a .safetensors file, an .onnx file or an .npz with the "
                                             "tensors' names, or a folder with one of them");
}

Status Weights::resolveByOffset(const plan::Weight &weight, Source &source) const {
  const MappedFile &file = own[size_t(weight.file)];
  Expected<const std::byte *> range = file.range(weight.offset, weight.bytes, "weight '" + weight.name + "'");
  if (!range.ok())
    return Status::error(ErrorKind::Io, range.status().message() +
                                            "; give the file that the plan was compiled from, or compile again");
  source.data = *range;
  source.path = file.path();
  return Status::success();
}

Status Weights::openOwnFiles(const WeightFiles &files) {
  for (const plan::WeightFile &file : plan->files) {
    Expected<MappedFile> opened = MappedFile::open(resolvePath(files.planFolder, file.path));
    if (!opened.ok())
      return Status::error(ErrorKind::Io,
                           opened.status().message() + " (weights of the plan; --weights=FILE names another place)");
    own.push_back(std::move(*opened));
  }
  for (size_t i = 0; i < sources.size(); ++i)
    if (plan->weights[i].file >= 0)
      HPC_RETURN_IF_ERROR(resolveByOffset(plan->weights[i], sources[i]));
  return Status::success();
}

/// Files without names take the place of the plan's own, whose hashes prove them.
Status Weights::replaceByOffset(const WeightFiles &files) {
  const std::string &replacement = files.replacement;
  std::vector<std::string> paths;
  for (const plan::WeightFile &file : plan->files)
    paths.push_back(resolvePath(files.planFolder, file.path));
  if (std::filesystem::is_directory(replacement)) {
    for (std::string &path : paths)
      path = resolvePath(replacement, fileNameOf(path));
  } else {
    Expected<size_t> index = replacedFile(*plan, replacement);
    HPC_RETURN_IF_ERROR(index.status());
    paths[*index] = replacement;
  }
  for (const std::string &path : paths) {
    Expected<MappedFile> file = MappedFile::open(path);
    if (!file.ok())
      return Status::error(ErrorKind::Io,
                           file.status().message() + " (weights of the plan; --weights=FILE names another place)");
    own.push_back(std::move(*file));
  }
  for (size_t i = 0; i < sources.size(); ++i)
    if (plan->weights[i].file >= 0)
      HPC_RETURN_IF_ERROR(resolveByOffset(plan->weights[i], sources[i]));
  return Status::success();
}

Status Weights::openReplacement(const WeightFiles &files) {
  const std::string &replacement = files.replacement;
  TensorFileOptions options{"--weights=" + replacement, {}, files.followLinks};
  for (const plan::WeightFile &file : plan->files)
    options.trusted.insert(fileNameOf(file.path));
  const bool isProved = std::none_of(plan->weights.begin(), plan->weights.end(), std::mem_fn(&plan::Weight::isAbsent));
  std::error_code error;
  bool hasNames = true;
  if (std::filesystem::is_directory(replacement, error)) {
    hasNames = hasTensorFiles(replacement);
  } else {
    Expected<MappedFile> file = MappedFile::open(replacement);
    HPC_RETURN_IF_ERROR(file.status());
    hasNames = fileKindOf(file->text()) != FileKind::Unknown;
  }
  if (isProved && !hasNames)
    return replaceByOffset(files);
  Expected<TensorFiles> opened = TensorFiles::open(replacement, options);
  HPC_RETURN_IF_ERROR(opened.status());
  replaced.emplace(std::move(*opened));
  return resolveByName(files);
}

/// What keeps `found`, which matched by `name`, from being a tensor of the plan; "": nothing. `isOrigin`: an exporter made the
/// tensor of it, as far as is known by a transpose. `trained`: the type in which training holds it.
std::string Weights::problemOf(size_t index, const std::string &name, const NamedTensor &found, bool isOrigin, std::optional<DType> trained) const {
  const plan::Weight &weight = plan->weights[index];
  const std::string wanted = tensorText(weight.dtype, weight.shape), is = "tensor '" + name + "' is " + shapeText(found.shape) +
                                                                          " of " + found.typeName + ", the plan needs ";
  const std::string of = name == weight.name ? "" : " for '" + weight.name + "'";
  const std::vector<int64_t> turned(weight.shape.rbegin(), weight.shape.rend());
  if (isOrigin && found.shape == weight.shape)
    return "has no tensor '" + weight.name + "', which the exporter derived from '" + name + "' in an unknown way (a square matrix may " +
           "be transposed)";
  if (found.shape != (isOrigin ? turned : weight.shape))
    return is + wanted + of + (weight.shape.size() == 2 && found.shape == turned ? ": it is stored transposed" : "");
  const bool isExact = found.dtype && isExactIn(*found.dtype, !isOrigin && trained ? *trained : weight.dtype);
  if (!isExact)
    return is + wanted + of + (found.dtype && isFloat(*found.dtype) && isFloat(weight.dtype)
                                   ? std::string(": convert the file to ") + hpc::name(weight.dtype)
                                   : std::string());
  return "";
}

/// The names by which a file may have a tensor. What an exporter made goes by numbers of its own, which another export gives to
/// another tensor: it is what the file says to be made of the same one. The last name is then that one.
static std::vector<std::string> namesIn(const NamedTensorMap &tensors, const plan::Weight &weight) {
  if (!weight.isMade || weight.stateNames.empty())
    return namesOf(weight);
  const std::string &origin = weight.stateNames[0];
  for (const auto &[name, tensor] : tensors)
    if (tensor.madeOf == origin && tensor.shape == weight.shape)
      return {name, origin};
  auto own = tensors.find(weight.name);
  return own != tensors.end() && own->second.madeOf.empty() ? std::vector<std::string>{weight.name, origin}
                                                            : std::vector<std::string>{origin};
}

Status Weights::resolveByName(const WeightFiles &files) {
  const NamedTensorMap &tensors = replaced->tensors();
  std::map<std::string, DType> trained;
  for (const SavedTensor &tensor : savedTensors(*plan))
    trained.emplace(tensor.name, tensor.dtype);
  // A tensor that only the model's own file has is taken from there: its hashes prove it.
  std::map<int32_t, bool> isOpen;
  auto takeOwn = [&](size_t i) {
    const plan::Weight &weight = plan->weights[i];
    if (weight.hashes.empty())
      return false;
    if (own.empty())
      own.resize(plan->files.size());
    auto [known, isNew] = isOpen.try_emplace(weight.file, false);
    if (isNew) {
      Expected<MappedFile> file = MappedFile::open(resolvePath(files.planFolder, plan->files[size_t(weight.file)].path));
      known->second = file.ok();
      if (file.ok())
        own[size_t(weight.file)] = std::move(*file);
    }
    return known->second && resolveByOffset(weight, sources[i]).ok();
  };
  std::vector<size_t> indices;
  std::vector<WantedTensor> wanted;
  for (size_t i = 0; i < sources.size(); ++i) {
    const plan::Weight &weight = plan->weights[i];
    if (weight.file < 0 || (weight.isConstant && takeOwn(i)))
      continue;
    indices.push_back(i);
    wanted.push_back({namesIn(tensors, weight), weight.shape, weight.isMade});
  }
  std::map<std::string, std::vector<int64_t>> available;
  std::vector<std::string> allNames;
  for (const auto &[name, tensor] : tensors) {
    available.emplace(name, tensor.shape);
    allNames.push_back(name);
  }
  NameMatches matches = matchNames(wanted, available);
  std::vector<std::string> problems, unread, kept;
  std::set<std::string> read;
  int64_t widened = 0, fuller = 0;
  constexpr size_t mostNearest = 20; // names are compared letter by letter
  for (size_t k = 0; k < indices.size(); ++k) {
    const size_t i = indices[k];
    const plan::Weight &weight = plan->weights[i];
    auto type = trained.find(weight.name);
    const bool isTrained = type != trained.end();
    if (!matches.of[k]) {
      if (!isTrained && takeOwn(i)) {
        kept.push_back(weight.name);
        continue;
      }
      std::vector<std::string> near;
      if (problems.size() < mostNearest)
        near = nearestNames(weight.name, allNames);
      near.resize(std::min<size_t>(near.size(), 3));
      problems.push_back("has no tensor '" + weight.name + "' that the plan needs (" + tensorText(weight.dtype, weight.shape) + ")" +
                         (near.empty() ? "" : "; did you mean " + anyOf(near) + "?"));
      continue;
    }
    const std::string &name = matches.of[k]->found;
    const NamedTensor &found = tensors.at(name);
    read.insert(name);
    const bool isOrigin = weight.isMade && matches.of[k]->name + 1 >= wanted[k].names.size();
    std::string problem = problemOf(i, name, found, isOrigin, isTrained ? std::optional(type->second) : std::nullopt);
    if (!problem.empty() && !isTrained && !isFloat(weight.dtype) && takeOwn(i)) // a mask that others save as floats
      continue;
    for (const std::string &other : namesOf(weight)) {
      auto twin = tensors.find(other);
      if (!problem.empty() || weight.isMade || twin == tensors.end() || other == name)
        continue;
      read.insert(other);
      if (twin->second.typeName != found.typeName || twin->second.bytes != found.bytes ||
          std::memcmp(twin->second.data, found.data, size_t(found.bytes)) != 0)
        problem = "tensors '" + name + "' and '" + other + "' differ, and are one in the plan; export with "
                  "torch.onnx.export(..., dynamo=True, optimize=False), which keeps apart what the model has apart";
    }
    if (!problem.empty()) {
      problems.push_back(problem);
      continue;
    }
    Source &source = sources[i];
    source.data = found.data;
    source.path = replaced->path();
    source.dtype = *found.dtype;
    source.isTransposed = isOrigin;
    source.mayDiffer = !trained.empty() && !weight.hashes.empty();
    for (int64_t chunk = 0; source.mayDiffer && chunk < numHashChunks(weight.bytes); ++chunk)
      source.verified[size_t(chunk)] = 1;
    if (source.dtype != weight.dtype)
      ++(isExactIn(source.dtype, weight.dtype) ? widened : fuller);
  }
  if (!problems.empty())
    return problemsError("--weights=" + files.replacement, replaced->path(), problems, int64_t(indices.size()));
  const std::string place = "--weights=" + files.replacement + ": ";
  for (const std::string &note : matches.notes)
    told.push_back(place + note);
  if (widened > 0)
    told.push_back(place + countText(widened, "tensor") + " of narrower types widened as the plan needs");
  if (fuller > 0)
    told.push_back(place + countText(fuller, "tensor") + " of types with more digits than the model's, which training keeps");
  if (!trained.empty() && !kept.empty())
    told.push_back(place + "it does not have " + quotedNames(kept) + ", which " + (kept.size() > 1 ? "come" : "comes") + " from the model's own file, untrained");
  for (const auto &[name, tensor] : tensors)
    if (!read.count(name))
      unread.push_back(name);
  if (!unread.empty() && replaced->kind() != FileKind::Onnx) // a model has shapes and axes besides
    told.push_back(place + "the plan reads no " + quotedNames(unread));
  return Status::success();
}

void Weights::forget(size_t index, const std::byte *data, const std::string &path) {
  Source &source = sources[index];
  source.data = data;
  source.path = path;
  source.dtype = plan->weights[index].dtype;
  source.isTransposed = false;
  for (int64_t chunk = 0; chunk < numHashChunks(plan->weights[index].bytes); ++chunk)
    source.verified[size_t(chunk)] = 1;
}

/// Opens the weights of the checkpoint.
Status Weights::openSaved(const WeightFiles &files) {
  const bool isFolder = isCheckpointFolder(files.checkpoint);
  const std::string path = isFolder ? files.checkpoint : checkpointFile(files.checkpoint);
  Expected<TensorFiles> opened = TensorFiles::open(path, {"--load=" + files.checkpoint, {}, false});
  HPC_RETURN_IF_ERROR(opened.status());
  if (!isFolder && opened->kind() != FileKind::SafeTensors)
    return Status::error(ErrorKind::Usage, "--load=" + files.checkpoint + ": '" + path + "' is " + describe(opened->kind()) +
                                               "; give a file that hpc-run --save wrote, or a folder of checkpoints");
  saving.emplace(std::move(*opened));
  if (!isFolder)
    return Status::success();
  Expected<CheckpointState> state = readCheckpointState(path);
  HPC_RETURN_IF_ERROR(state.status());
  savedState = state->hash;
  return Status::success();
}

/// Opens the states that belong to the weights of the checkpoint, if there are any.
Status Weights::openStates(const WeightFiles &files) {
  if (isCheckpointFolder(files.checkpoint)) {
    std::error_code error;
    const std::string folder = resolvePath(files.checkpoint, checkpointStatesFolder);
    if (!std::filesystem::is_directory(folder, error))
      return Status::success();
    Expected<TensorFiles> opened = TensorFiles::open(folder, {"--load=" + files.checkpoint, {}, false});
    HPC_RETURN_IF_ERROR(opened.status());
    states.emplace(std::move(*opened));
    return Status::success();
  }
  const std::string weights = saving->path(), wanted = belongsTo(fingerprintOf(saving->tensors()));
  std::string others;
  for (const std::string &path : {statesFile(weights), previousStatesFile(weights)}) {
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      continue;
    Expected<TensorFiles> opened = TensorFiles::open(path, {"--load=" + files.checkpoint, {}, false});
    HPC_RETURN_IF_ERROR(opened.status());
    auto owner = opened->metadata().find(belongsToKey);
    if (owner != opened->metadata().end() && owner->second == wanted) {
      states.emplace(std::move(*opened));
      return Status::success();
    }
    others += (others.empty() ? "'" : ", '") + path + "'";
  }
  return others.empty() ? Status::success()
                        : Status::error(ErrorKind::Usage, "--load=" + files.checkpoint + ": the states in " + others +
                                                              " are of other weights than '" + weights +
                                                              "'; give weights and states of one --save");
}

/// `found` as the data of a tensor that the plan keeps.
Status Weights::takeSaved(const std::string &name, DType dtype, const std::vector<int64_t> &shape, const std::string &path,
                          const NamedTensor &found, const std::byte *&data) const {
  if (found.dtype != dtype || found.shape != shape)
    return Status::error(ErrorKind::Usage, "'" + path + "': tensor '" + name + "' is " + shapeText(found.shape) + " of " +
                                               found.typeName + ", the plan keeps " + tensorText(dtype, shape) +
                                               "; give a checkpoint of this model");
  data = found.data;
  return Status::success();
}

Status Weights::resolveSaved(const WeightFiles &files) {
  HPC_RETURN_IF_ERROR(openSaved(files));
  std::map<std::string, std::vector<std::string>> names; // of the plan's stored tensors
  for (const plan::Weight &weight : plan->weights)
    names.emplace(weight.name, namesOf(weight));
  // Older versions saved states beside the weights, in one file.
  auto isInWeights = [&](const SavedTensor &tensor) { return names.count(tensor.name) || saving->tensors().count(tensor.name); };
  const std::vector<SavedTensor> wanted = savedTensors(*plan);
  if (!std::all_of(wanted.begin(), wanted.end(), isInWeights))
    HPC_RETURN_IF_ERROR(openStates(files));
  for (const SavedTensor &tensor : wanted) {
    const TensorFiles &holder = isInWeights(tensor) || !states ? *saving : *states;
    auto found = holder.tensors().find(tensor.name);
    if (auto known = names.find(tensor.name); known != names.end())
      for (const std::string &other : known->second)
        if (found == holder.tensors().end())
          found = holder.tensors().find(other);
    if (found == holder.tensors().end())
      return Status::error(ErrorKind::Usage, "'" + holder.path() + "': has no tensor '" + tensor.name + "' (" +
                                                 tensorText(tensor.dtype, tensor.shape) +
                                                 "), which the plan keeps from step to step; give a checkpoint of this "
                                                 "model and optimizer, or compile with the --optimizer and --freeze of "
                                                 "the run that wrote it");
    HPC_RETURN_IF_ERROR(takeSaved(tensor.name, tensor.dtype, tensor.shape, holder.path(), found->second, saved[tensor.name]));
  }
  for (int32_t index : onlyRead()) {
    const plan::Weight &weight = plan->weights[size_t(index)];
    auto found = saving->tensors().find(weight.name);
    if (found == saving->tensors().end())
      continue;
    const std::byte *data = nullptr;
    HPC_RETURN_IF_ERROR(takeSaved(weight.name, weight.dtype, weight.shape, saving->path(), found->second, data));
    forget(size_t(index), data, saving->path());
  }
  return Status::success();
}

Expected<Weights> Weights::open(const plan::Plan &plan, const WeightFiles &files) {
  Weights weights;
  weights.plan = &plan;
  for (const plan::Weight &weight : plan.weights) {
    Source source;
    size_t chunks = size_t(numHashChunks(weight.bytes));
    source.verified = std::make_unique<std::atomic<uint8_t>[]>(chunks);
    for (size_t chunk = 0; chunk < chunks; ++chunk)
      source.verified[chunk] = 0;
    source.data = reinterpret_cast<const std::byte *>(weight.inlineData.data());
    source.path = "the plan";
    source.dtype = weight.dtype;
    weights.sources.push_back(std::move(source));
  }
  if (files.replacement.empty()) {
    HPC_RETURN_IF_ERROR(weights.checkContentIsKnown());
    HPC_RETURN_IF_ERROR(weights.openOwnFiles(files));
  } else {
    HPC_RETURN_IF_ERROR(weights.openReplacement(files));
  }
  if (!files.checkpoint.empty())
    HPC_RETURN_IF_ERROR(weights.resolveSaved(files));
  return weights;
}

} // namespace hpc
