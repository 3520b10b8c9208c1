// Headers come first and follow from the plan alone, so that one tensor at a time is in memory.
#include "runtime/core/Checkpoint.h"

#include "runtime/base/File.h"
#include "runtime/core/CheckpointFiles.h"
#include "runtime/core/SafeTensors.h"

#include <algorithm>
#include <unistd.h>

namespace hpc {

namespace {

/// A tensor and the names that it is written under.
struct Entry {
  std::string key; ///< in the session or the plan
  std::vector<std::string> names;
  DType dtype;
  std::vector<int64_t> shape;
};

/// A file of tensors that is being written.
class TensorWriter {
public:
  Status open(const std::string &path, const std::vector<Entry> &entries, const std::map<std::string, std::string> &metadata) {
    Expected<AtomicFile> created = AtomicFile::create(path);
    HPC_RETURN_IF_ERROR(created.status());
    file.emplace(std::move(*created));
    std::vector<SafeTensorEntry> list;
    for (const Entry &entry : entries)
      for (const std::string &name : entry.names)
        list.push_back({name, entry.dtype, entry.shape});
    return file->write(safeTensorsHeader(list, metadata));
  }
  Status add(const Entry &entry, const std::byte *data, int64_t bytes) {
    for (const std::string &name : entry.names) {
      HPC_RETURN_IF_ERROR(file->write(data, bytes));
      const uint64_t named = fingerprintOf(name, 0);
      prints[name] = fingerprintOf(data, bytes, named);
    }
    return Status::success();
  }
  Status commit() { return file->commit(); }
  /// The fingerprint of all that was added.
  uint64_t fingerprint() const { return fingerprintOfPrints(prints); }

private:
  std::optional<AtomicFile> file;
  std::map<std::string, uint64_t> prints; ///< by name
};

/// The tensors that a session saves: stored tensors of the plan, which are the model, and states.
struct Content {
  std::vector<Entry> trained, read, states;
};

Content contentOf(const plan::Plan &plan, const Session &session) {
  std::map<std::string, const plan::Weight *> weights;
  for (const plan::Weight &weight : plan.weights)
    weights.emplace(weight.name, &weight);
  auto namesOf = [](const plan::Weight &weight) {
    // A tensor that an exporter derived cannot be turned back, so it keeps the exporter's name.
    return weight.stateNames.empty() || weight.isMade ? std::vector<std::string>{weight.name} : weight.stateNames;
  };
  Content content;
  for (const SavedTensor &tensor : session.saved()) {
    auto weight = weights.find(tensor.name);
    if (weight == weights.end())
      content.states.push_back({tensor.name, {tensor.name}, tensor.dtype, tensor.shape});
    else
      content.trained.push_back({tensor.name, namesOf(*weight->second), tensor.dtype, tensor.shape});
  }
  for (int32_t index : session.stored().onlyRead()) {
    const plan::Weight &weight = plan.weights[size_t(index)];
    content.read.push_back({weight.name, namesOf(weight), weight.dtype, weight.shape});
  }
  return content;
}

/// Exchanges states and weights so that after a kill in between the weights that are there still have their states.
Status exchange(const std::string &path, std::optional<TensorWriter> &states, TensorWriter &weights) {
  const std::string now = withoutLinks(statesFile(path)), before = withoutLinks(previousStatesFile(path));
  if (states) {
    if (::access(now.c_str(), F_OK) == 0 && std::rename(now.c_str(), before.c_str()) != 0)
      return Status::error(ErrorKind::Io, "'" + now + "': cannot be renamed to '" + before + "'; remove what is there");
    HPC_RETURN_IF_ERROR(states->commit());
  }
  HPC_RETURN_IF_ERROR(weights.commit());
  if (states)
    ::unlink(before.c_str());
  return Status::success();
}

} // namespace

Status writeCheckpoint(const std::string &destination, const plan::Plan &plan, Session &session,
                       const std::map<std::string, std::string> &runState) {
  const std::string path = checkpointFile(destination);
  const Content content = contentOf(plan, session);
  std::optional<TensorWriter> weights, states;
  Status status;
  if (session.writes()) {
    std::vector<Entry> all = content.trained;
    all.insert(all.end(), content.read.begin(), content.read.end());
    std::map<std::string, std::string> metadata = runState;
    metadata["format"] = "pt"; // without it transformers refuses a file
    status = weights.emplace().open(path, all, metadata);
  }
  // A process that cannot write says so before the others send anything.
  HPC_RETURN_IF_ERROR(session.agree(status));
  auto writeTensors = [&](const std::vector<Entry> &entries, std::optional<TensorWriter> &writer) {
    for (const Entry &entry : entries) {
      const std::vector<SavedTensor> &saved = session.saved();
      const auto index = std::find_if(saved.begin(), saved.end(), [&](const SavedTensor &each) { return each.name == entry.key; });
      Array whole;
      HPC_RETURN_IF_ERROR(session.read(size_t(index - saved.begin()), whole));
      if (writer && status.ok())
        status = writer->add(entry, whole.data.data(), int64_t(whole.data.size()));
    }
    return Status::success();
  };
  HPC_RETURN_IF_ERROR(writeTensors(content.trained, weights));
  const std::vector<int32_t> read = session.stored().onlyRead();
  for (size_t i = 0; i < read.size() && weights && status.ok(); ++i) {
    Expected<const std::byte *> data = session.stored().content(read[i]);
    status = data.ok() ? weights->add(content.read[i], *data, plan.weights[size_t(read[i])].bytes) : data.status();
  }
  if (weights && status.ok() && !content.states.empty()) {
    std::map<std::string, std::string> metadata = runState;
    metadata[belongsToKey] = belongsTo(weights->fingerprint());
    status = states.emplace().open(statesFile(path), content.states, metadata);
  }
  HPC_RETURN_IF_ERROR(session.agree(status));
  HPC_RETURN_IF_ERROR(writeTensors(content.states, states));
  if (weights && status.ok())
    status = exchange(path, states, *weights);
  return session.agree(status);
}

Expected<std::map<std::string, std::string>> checkpointMetadata(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(checkpointFile(path));
  if (!file.ok())
    return file.status();
  std::map<std::string, std::string> metadata;
  Expected<NamedTensorMap> tensors = readSafeTensors(*file, &metadata);
  if (!tensors.ok())
    return tensors.status();
  return metadata;
}

} // namespace hpc
