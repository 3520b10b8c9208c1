// First the tensors of the framework's state, by name; then their names in the pretrained folder; then files.
#include "passes/Driver/TrainedFolder.h"

#include "compiler/Import/WeightContent.h"
#include "runtime/base/Array.h"
#include "runtime/base/CountText.h"
#include "runtime/core/SafeTensors.h"
#include "runtime/core/TensorNames.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>

namespace hpc {

namespace fs = std::filesystem;

namespace {

using StateTensors = std::map<std::string, TrainedTensor>; ///< by name in the framework's state

std::string quotedList(const std::vector<std::string> &names) {
  constexpr size_t most = 5;
  std::string text;
  for (size_t i = 0; i < std::min(most, names.size()); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return text + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
}

bool isSameTrained(const TrainedTensor &a, const TrainedTensor &b) {
  return a.isTransposed == b.isTransposed && (a.tensor == b.tensor || isSameTensor(*a.tensor, *b.tensor));
}

/// The folder that a path names: itself, or the one that it lies in.
std::string folderAt(const std::string &path) {
  std::error_code error;
  return fs::is_directory(path, error) ? path : folderOf(path);
}

class FolderWriter {
public:
  FolderWriter(const TrainedModel &model, std::string file, const FolderSource &source, std::string folder)
      : model(model), file(std::move(file)), source(source), folder(std::move(folder)) {}

  Status write() {
    if (!source.pretrained.empty()) {
      Expected<TensorFiles> opened = TensorFiles::open(source.pretrained, {"the pretrained weights '" + source.pretrained + "'", {}, false});
      HPC_RETURN_IF_ERROR(opened.status());
      if (opened->kind() == FileKind::SafeTensors || opened->kind() == FileKind::SafeTensorsIndex) // others have no names of Hugging Face
        pretrained.emplace(std::move(*opened));
    }
    HPC_RETURN_IF_ERROR(findState());
    if (pretrained)
      HPC_RETURN_IF_ERROR(takePretrainedNames());
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      return Status::error(ErrorKind::Io, "'" + folder + "' cannot be made: " + error.message() + "; name another folder");
    HPC_RETURN_IF_ERROR(copyFiles());
    return writeWeights();
  }

  std::vector<std::string> notes;

private:
  /// Whether the tensor of the state is the transpose of what the exporter made of it; nothing where that is open.
  std::optional<bool> isTurned(const ModelTensor &tensor) const {
    const std::vector<int64_t> &shape = tensor.place.shape;
    if (pretrained && tensor.stored && tensor.stored->data)
      for (const auto &[name, found] : pretrained->tensors()) {
        const bool isIt = name == tensor.origin || (name.size() > tensor.origin.size() && name.substr(name.size() - tensor.origin.size() - 1) == "." + tensor.origin) ||
                          (tensor.origin.size() > name.size() && tensor.origin.substr(tensor.origin.size() - name.size() - 1) == "." + name);
        if (!isIt || found.dtype != tensor.stored->dtype || found.bytes != tensor.stored->bytes)
          continue;
        if (found.shape == shape && sameContent(found.data, tensor.stored->data, found.bytes))
          return false;
        if (std::vector<int64_t>(found.shape.rbegin(), found.shape.rend()) == shape &&
            isTransposed(found.data, tensor.stored->data, found.shape[0], found.shape[1], byteSize(*found.dtype)))
          return true;
      }
    return shape[0] == shape[1] ? std::nullopt : std::optional(true); // the exporter folds the transpose of a linear layer
  }

  Status findState() {
    std::set<std::string> derived; // names of the checkpoint that are the exporter's
    for (const ModelTensor &tensor : model.tensors()) {
      if (!tensor.trained)
        continue;
      TrainedTensor own = *tensor.trained;
      for (const std::string &other : model.otherNames(tensor.name()))
        if (isStateName(other))
          state.emplace(other, own);
      if (isStateName(own.name)) {
        own.isTransposed = false; // the checkpoint has it as the state does
        state.emplace(own.name, own);
      } else {
        derived.insert(own.name);
      }
      if (tensor.origin.empty() || tensor.origin == own.name || state.count(tensor.origin))
        continue;
      std::optional<bool> turned = isTurned(tensor);
      if (!turned && derived.count(own.name))
        return Status::error(ErrorKind::Usage, "tensor '" + tensor.name() + "' was made of '" + tensor.origin +
                                                   "' by the exporter, perhaps as its transpose, which a square matrix does not show; name the folder of the pretrained "
                                                   "weights, or export with torch.onnx.export(..., dynamo=True, optimize=False)");
      if (!turned)
        continue; // another name has it
      own = *tensor.trained;
      own.isTransposed = own.isTransposed != *turned;
      state.emplace(tensor.origin, own);
    }
    // Further names of tied ones; numbers that no model of the framework has stay away, if nothing has trained them.
    for (const auto &[name, tensor] : model.weights().tensors()) {
      if (isStateName(name))
        state.emplace(name, TrainedTensor{name, &tensor, false, isMapped(model.weights())});
      else if (!derived.count(name) || !hasState(name))
        others.push_back(name);
    }
    for (const ModelTensor &tensor : model.tensors())
      if (tensor.trained && llvm::is_contained(others, tensor.trained->name) && !isUnchanged(tensor))
        return Status::error(ErrorKind::Usage, "tensor '" + tensor.name() + "' was trained, and the file does not show which parameter of the framework it is; export with "
                                                   "torch.onnx.export(..., dynamo=True, optimize=False)");
    return Status::success();
  }
  bool hasState(const std::string &trained) const {
    return llvm::any_of(state, [&](const auto &entry) { return entry.second.name == trained; });
  }
  static bool isUnchanged(const ModelTensor &tensor) {
    const NamedTensor &now = *tensor.trained->tensor;
    return tensor.stored && tensor.stored->data && tensor.stored->dtype == now.dtype && tensor.stored->bytes == now.bytes && !tensor.trained->isTransposed &&
           sameContent(tensor.stored->data, now.data, now.bytes);
  }

  /// Names of the pretrained files in place of the model's.
  Status takePretrainedNames() {
    std::vector<WantedTensor> wanted;
    for (const auto &[name, tensor] : state)
      wanted.push_back({{name}, tensor.shape(), false});
    std::map<std::string, std::vector<int64_t>> available;
    for (const auto &[name, tensor] : pretrained->tensors())
      available.emplace(name, tensor.shape);
    NameMatches matches = matchNames(wanted, available);
    StateTensors renamed;
    std::vector<std::string> problems, copied;
    size_t next = 0;
    for (const auto &[name, tensor] : state) {
      const std::optional<NameMatch> &match = matches.of[next++];
      if (!match) {
        problems.push_back(name);
        continue;
      }
      if (available.at(match->found) != tensor.shape())
        return Status::error(ErrorKind::Usage, "'" + name + "' is " + shapeText(tensor.shape()) + ", and '" + match->found + "' of '" + pretrained->path() + "' " +
                                                   shapeText(available.at(match->found)) + "; name the folder that the training started from");
      auto [entry, isNew] = renamed.emplace(match->found, tensor);
      if (!isNew && !isSameTrained(entry->second, tensor))
        return Status::error(ErrorKind::Usage, "'" + name + "' and '" + entry->second.name + "' were trained apart, and '" + pretrained->path() + "' has one tensor for both, '" +
                                                   match->found + "'; export the model with tied weights");
    }
    // A tensor that the file does not save is a buffer, or tied to one that it saves.
    for (const std::string &name : problems) {
      const TrainedTensor &tensor = state.at(name);
      const bool isTwin = llvm::any_of(renamed, [&](const auto &entry) { return isSameTrained(entry.second, tensor); });
      const bool isFixed = llvm::any_of(model.tensors(), [&](const ModelTensor &each) { return each.trained && each.trained->name == tensor.name && isUnchanged(each); });
      if (!isTwin && !isFixed)
        return Status::error(ErrorKind::Usage, "'" + pretrained->path() + "' has no tensor for '" + name + "'" +
                                                   (problems.size() > 1 ? " and " + std::to_string(problems.size() - 1) + " more" : "") +
                                                   "; name the folder that the training started from");
    }
    for (const auto &[name, tensor] : pretrained->tensors())
      if (!renamed.count(name)) {
        // Tied to one that was trained, it goes on to be.
        auto twin = llvm::find_if(renamed, [&, &tensor = tensor](const auto &entry) {
          auto old = pretrained->tensors().find(entry.first);
          return old != pretrained->tensors().end() && tensor.bytes > 64 && isSameTensor(old->second, tensor);
        });
        if (twin != renamed.end()) {
          renamed.emplace(name, TrainedTensor(twin->second));
        } else {
          renamed.emplace(name, TrainedTensor{name, &tensor, false, true});
          copied.push_back(name);
        }
      }
    if (!copied.empty())
      notes.push_back("the model does not have " + quotedList(copied) + " of '" + pretrained->path() + "', which " + (copied.size() > 1 ? "are" : "is") + " copied");
    state = std::move(renamed);
    return Status::success();
  }

  Status copyFiles() {
    static constexpr const char *ofModel[] = {"config.json", "generation_config.json", "preprocessor_config.json"},
                                *ofTokenizer[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
                                                  "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "chat_template.jinja", "vocab.txt"};
    bool hasConfig = false, hasTokenizer = false;
    auto copyFrom = [&](const std::string &from, llvm::ArrayRef<const char *> names, bool &any) {
      for (const char *name : names) {
        std::error_code error;
        const std::string path = resolvePath(from, name);
        if (!fs::is_regular_file(path, error)) // a link of a hub's cache counts as its file
          continue;
        any = true;
        if (fs::equivalent(path, resolvePath(folder, name), error))
          continue;
        Expected<MappedFile> file = MappedFile::open(path);
        HPC_RETURN_IF_ERROR(file.status());
        HPC_RETURN_IF_ERROR(writeFile(resolvePath(folder, name), file->text()));
      }
      return Status::success();
    };
    if (!source.pretrained.empty()) {
      HPC_RETURN_IF_ERROR(copyFrom(folderAt(source.pretrained), ofModel, hasConfig));
      HPC_RETURN_IF_ERROR(copyFrom(folderAt(source.pretrained), ofTokenizer, hasTokenizer));
    }
    if (!hasConfig)
      HPC_RETURN_IF_ERROR(copyFrom(folderAt(file), ofModel, hasConfig));
    if (!hasTokenizer && !source.tokenizer.empty())
      HPC_RETURN_IF_ERROR(copyFrom(folderAt(source.tokenizer), ofTokenizer, hasTokenizer));
    std::error_code error;
    if (!fs::exists(resolvePath(folder, "config.json"), error))
      notes.push_back("'" + folder + "' has no config.json, which from_pretrained needs; put the model's into it");
    return Status::success();
  }

  /// Files of at most shardBytes of tensors, unless a single one is larger.
  std::vector<std::vector<const StateTensors::value_type *>> shards() const {
    std::vector<std::vector<const StateTensors::value_type *>> result(1);
    int64_t bytes = 0;
    for (const auto &entry : state) {
      const int64_t size = entry.second.tensor->bytes;
      if (bytes > 0 && bytes + size > source.shardBytes) {
        result.emplace_back();
        bytes = 0;
      }
      result.back().push_back(&entry);
      bytes += size;
    }
    return result;
  }

  Status writeShard(const std::string &name, const std::vector<const StateTensors::value_type *> &tensors) {
    Expected<AtomicFile> file = AtomicFile::create(resolvePath(folder, name));
    HPC_RETURN_IF_ERROR(file.status());
    std::vector<SafeTensorEntry> entries;
    for (const auto *entry : tensors)
      entries.push_back({entry->first, *entry->second.tensor->dtype, entry->second.shape()});
    HPC_RETURN_IF_ERROR(file->write(safeTensorsHeader(entries, {{"format", "pt"}}))); // without it transformers refuses a file
    for (const auto *entry : tensors)
      HPC_RETURN_IF_ERROR(writeElements(entry->second, *entry->second.tensor->dtype, [&](const std::byte *data, int64_t bytes) { return file->write(data, bytes); }));
    return file->commit();
  }

  Status writeWeights() {
    std::set<std::string> written;
    for (const auto &[name, tensor] : state)
      if (!tensor.tensor->dtype)
        return Status::error(ErrorKind::Unsupported, "tensor '" + name + "' of '" + pretrained->path() + "' has type " + tensor.tensor->typeName + ", which is not written");
    std::vector<std::vector<const StateTensors::value_type *>> all = shards();
    const std::string index = "model.safetensors.index.json";
    llvm::json::Object map;
    int64_t total = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      char name[64];
      std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", i + 1, all.size());
      const std::string file = all.size() == 1 ? "model.safetensors" : name;
      HPC_RETURN_IF_ERROR(writeShard(file, all[i]));
      written.insert(file);
      for (const auto *entry : all[i]) {
        map[entry->first] = file;
        total += entry->second.tensor->bytes;
      }
    }
    if (all.size() > 1) {
      std::string text;
      llvm::raw_string_ostream(text) << llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{{"metadata", llvm::json::Object{{"total_size", total}}}, {"weight_map", std::move(map)}}));
      HPC_RETURN_IF_ERROR(writeFile(resolvePath(folder, index), text));
      written.insert(index);
    }
    return removeOld(written);
  }

  /// Weights of another time would be read in place of these.
  Status removeOld(const std::set<std::string> &written) const {
    std::error_code error;
    std::vector<fs::path> old;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const StringRef shown = name;
      if (!written.count(name) && shown.starts_with("model") && (shown.ends_with(".safetensors") || shown.ends_with(".safetensors.index.json")))
        old.push_back(entry->path());
    }
    for (const fs::path &path : old)
      if (!fs::remove(path, error))
        return Status::error(ErrorKind::Io, "'" + path.string() + "' of older weights cannot be removed: " + error.message() + "; remove it");
    return Status::success();
  }

  const TrainedModel &model;
  const std::string file; ///< the model's
  const FolderSource &source;
  const std::string folder;
  std::optional<TensorFiles> pretrained;
  StateTensors state;
  std::vector<std::string> others; ///< of the checkpoint, of no name in the state
};

} // namespace

Expected<std::vector<std::string>> writeTrainedFolder(const std::string &model, const TrainedWeights &weights, const FolderSource &source, const std::string &folder) {
  Expected<TrainedModel> trained = TrainedModel::open(model, weights);
  HPC_RETURN_IF_ERROR(trained.status());
  FolderWriter writer(*trained, model, source, folder);
  HPC_RETURN_IF_ERROR(writer.write());
  writer.notes.insert(writer.notes.begin(), trained->notes.begin(), trained->notes.end());
  return std::move(writer.notes);
}

} // namespace hpc
