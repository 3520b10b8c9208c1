// Shards and external data are opened beneath the folder of the file that names them.
#include "runtime/core/TensorFiles.h"

#include "runtime/base/Npz.h"
#include "runtime/core/OnnxTensors.h"
#include "runtime/core/SafeTensors.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace hpc {

namespace {

Status ioError(const std::string &message) { return Status::error(ErrorKind::Io, message); }

std::string baseName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

std::string listText(const std::vector<std::string> &paths) {
  constexpr size_t most = 5;
  std::string text;
  for (size_t i = 0; i < paths.size() && i < most; ++i)
    text += (i ? ", " : "") + baseName(paths[i]);
  return text + (paths.size() > most ? " and " + std::to_string(paths.size() - most) + " more" : "");
}

/// The files of a folder by what is in them, each list sorted. Safetensors files count where they are called so: states of a
/// training run, which lie beside, are not.
struct FolderContent {
  std::vector<std::string> safeTensors, indices, onnx, pickles;
};

FolderContent contentOf(const std::string &folder) {
  FolderContent content;
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file(error))
      paths.push_back(entry->path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    Expected<MappedFile> file = MappedFile::open(path);
    if (!file.ok())
      continue;
    switch (fileKindOf(file->text())) {
    case FileKind::SafeTensors:
      if (std::filesystem::path(path).extension() == ".safetensors")
        content.safeTensors.push_back(path);
      break;
    case FileKind::SafeTensorsIndex:
      content.indices.push_back(path);
      break;
    case FileKind::Onnx:
      content.onnx.push_back(path);
      break;
    case FileKind::TorchArchive:
    case FileKind::Pickle:
      content.pickles.push_back(path);
      break;
    default:
      break;
    }
  }
  return content;
}

/// The file that from_pretrained takes: model.safetensors, else its index; else the only one that there is.
std::optional<std::string> mainFile(const FolderContent &content) {
  for (const std::string &path : content.safeTensors)
    if (baseName(path) == "model.safetensors")
      return path;
  for (const std::string &path : content.indices)
    if (baseName(path) == "model.safetensors.index.json")
      return path;
  const std::vector<std::string> &candidates = content.indices.empty() ? content.safeTensors : content.indices;
  return candidates.size() == 1 ? std::optional(candidates[0]) : std::nullopt;
}

} // namespace

Status TensorFiles::openShards(const std::string &folder, const std::set<std::string> &shards) {
  std::map<std::string, std::string> holders; // of every tensor
  for (const std::string &shard : shards) {
    if (shard.empty() || shard.find('/') != shard.npos || shard == "..")
      return ioError("'" + shown + "': names the shard '" + shard + "', which is not a file beside it");
    Expected<MappedFile> file = MappedFile::open(resolvePath(folder, shard));
    if (!file.ok())
      return ioError(file.status().message() + " (a shard of '" + shown + "')");
    files.push_back(std::make_unique<MappedFile>(std::move(*file)));
    Expected<NamedTensorMap> tensors = readSafeTensors(*files.back());
    HPC_RETURN_IF_ERROR(tensors.status());
    for (auto &[name, tensor] : *tensors) {
      auto [holder, isNew] = holders.try_emplace(name, shard);
      if (!isNew)
        return ioError("'" + shown + "': tensor '" + name + "' is in two shards, " + holder->second + " and " + shard);
      named.emplace(name, std::move(tensor));
    }
  }
  return Status::success();
}

Status TensorFiles::openIndex(const std::string &path) {
  auto wrong = [&](const std::string &what) { return ioError("'" + path + "': " + what); };
  Expected<MappedFile> file = MappedFile::open(path);
  HPC_RETURN_IF_ERROR(file.status());
  constexpr int64_t most = int64_t(256) << 20;
  if (file->size() > most)
    return wrong("is too large for an index of shards");
  nlohmann::json index = nlohmann::json::parse(file->text(), nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    return wrong("is no index of shards: it has no object 'weight_map'");
  std::set<std::string> shards;
  for (const auto &[name, shard] : index["weight_map"].items()) {
    if (!shard.is_string())
      return wrong("its 'weight_map' has no file for tensor '" + name + "'");
    shards.insert(shard.get<std::string>());
  }
  HPC_RETURN_IF_ERROR(openShards(folderOf(path), shards));
  for (const auto &[name, shard] : index["weight_map"].items())
    if (!named.count(name))
      return wrong("tensor '" + name + "' is not in " + shard.get<std::string>() + "; fetch the files again");
  return Status::success();
}

Status TensorFiles::openOnnx(MappedFile model, const TensorFileOptions &options) {
  files.push_back(std::make_unique<MappedFile>(std::move(model)));
  const MappedFile &file = *files.back();
  std::map<std::string, const MappedFile *> external;
  auto open = [&](const std::string &location) -> Expected<const MappedFile *> {
    if (auto found = external.find(location); found != external.end())
      return found->second;
    const bool follow = options.followLinks || options.trusted.count(baseName(location)) > 0;
    Expected<MappedFile> data = MappedFile::openBeneath(folderOf(file.path()), location, follow);
    if (!data.ok())
      return ioError(data.status().message() + " (external data of '" + file.path() + "')");
    files.push_back(std::make_unique<MappedFile>(std::move(*data)));
    return external[location] = files.back().get();
  };
  Expected<NamedTensorMap> tensors = readOnnxTensors(file, open, owned);
  HPC_RETURN_IF_ERROR(tensors.status());
  named = std::move(*tensors);
  return Status::success();
}

Status TensorFiles::openFile(const std::string &path, const TensorFileOptions &options) {
  shown = path;
  Expected<MappedFile> file = MappedFile::open(path);
  HPC_RETURN_IF_ERROR(file.status());
  const FileKind kind = found = fileKindOf(file->text());
  switch (kind) {
  case FileKind::SafeTensors: {
    files.push_back(std::make_unique<MappedFile>(std::move(*file)));
    Expected<NamedTensorMap> tensors = readSafeTensors(*files.back(), &texts);
    HPC_RETURN_IF_ERROR(tensors.status());
    named = std::move(*tensors);
    return Status::success();
  }
  case FileKind::SafeTensorsIndex:
    return openIndex(path);
  case FileKind::Onnx:
    return openOnnx(std::move(*file), options);
  case FileKind::Npz: {
    Expected<NamedArrays> arrays = readNpz(path);
    HPC_RETURN_IF_ERROR(arrays.status());
    for (auto &[name, array] : *arrays) {
      owned.push_back(std::move(array.data));
      named[name] = {array.dtype, hpc::name(array.dtype), array.shape, owned.back().data(), int64_t(owned.back().size())};
    }
    return Status::success();
  }
  case FileKind::Unknown:
    return Status::error(ErrorKind::Usage, options.flag + ": '" + path +
                                               "' has no tensors with names: it is neither a safetensors file, nor an ONNX model, "
                                               "nor an .npz, or it is cut off; of external data give the .onnx file beside it, "
                                               "which says what lies where");
  default:
    const std::string use = kind == FileKind::Plan ? "" : useOf(kind);
    return Status::error(ErrorKind::Usage, options.flag + ": '" + path + "' is " + describe(kind) + (use.empty() ? "" : "; " + use) +
                                               "; weights come from a safetensors file, an ONNX model, an .npz, or a folder with one "
                                               "of these");
  }
}

Status TensorFiles::openFolder(const std::string &path, const TensorFileOptions &options) {
  FolderContent content = contentOf(path);
  auto usage = [&](const std::string &what) { return Status::error(ErrorKind::Usage, options.flag + ": " + what); };
  const bool hasSafeTensors = !content.indices.empty() || !content.safeTensors.empty();
  if (hasSafeTensors && !content.onnx.empty())
    return usage("the folder has " + listText(content.indices.empty() ? content.safeTensors : content.indices) + " and " +
                 listText(content.onnx) + "; name the file that is meant");
  if (hasSafeTensors) {
    std::optional<std::string> main = mainFile(content);
    return main ? openFile(*main, options)
                : usage("the folder has several files of weights (" +
                        listText(content.indices.empty() ? content.safeTensors : content.indices) +
                        "), none of them called model.safetensors, and no one index; name the file that is meant");
  }
  if (content.onnx.size() == 1)
    return openFile(content.onnx[0], options);
  if (content.onnx.size() > 1)
    for (const std::string &own : content.onnx)
      if (options.trusted.count(baseName(own)))
        return openFile(own, options);
  if (content.onnx.size() > 1)
    return usage("the folder has several models (" + listText(content.onnx) + "); name the file that is meant");
  if (!content.pickles.empty())
    return usage("the folder has its weights in " + listText(content.pickles) + " alone, which is " +
                 describe(FileKind::TorchArchive) + "; " + useOf(FileKind::TorchArchive));
  return usage("the folder has no weights: neither a safetensors file (or its index), nor an ONNX model");
}

Expected<TensorFiles> TensorFiles::open(const std::string &path, const TensorFileOptions &options) {
  TensorFiles result;
  std::error_code error;
  HPC_RETURN_IF_ERROR(std::filesystem::is_directory(path, error) ? result.openFolder(path, options)
                                                                 : result.openFile(path, options));
  return result;
}

bool hasTensorFiles(const std::string &folder) {
  FolderContent content = contentOf(folder);
  return !content.safeTensors.empty() || !content.indices.empty() || !content.onnx.empty();
}

std::vector<std::string> tensorFilesAt(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return {path};
  FolderContent content = contentOf(path);
  std::vector<std::string> all = std::move(content.safeTensors);
  all.insert(all.end(), content.indices.begin(), content.indices.end());
  all.insert(all.end(), content.onnx.begin(), content.onnx.end());
  return all;
}

} // namespace hpc
