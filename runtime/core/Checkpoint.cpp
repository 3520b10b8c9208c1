// Headers come first and follow from the plan alone, so that one tensor at a time is in memory.
#include "runtime/core/Checkpoint.h"

#include "runtime/base/File.h"
#include "runtime/core/CheckpointContent.h"
#include "runtime/core/CheckpointFiles.h"
#include "runtime/core/CheckpointState.h"
#include "runtime/core/SafeTensors.h"

#include <algorithm>
#include <unistd.h>

namespace hpc {

namespace {

/// A file of tensors that is being written.
class TensorWriter {
public:
  Status open(const std::string &path, const std::vector<CheckpointTensor> &entries, const std::map<std::string, std::string> &metadata) {
    Expected<AtomicFile> created = AtomicFile::create(path);
    HPC_RETURN_IF_ERROR(created.status());
    file.emplace(std::move(*created));
    std::vector<SafeTensorEntry> list;
    for (const CheckpointTensor &entry : entries)
      for (const std::string &name : entry.names)
        list.push_back({name, entry.dtype, entry.shape});
    return file->write(safeTensorsHeader(list, metadata));
  }
  Status add(const CheckpointTensor &entry, const std::byte *data, int64_t bytes) {
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
  const CheckpointContent content = checkpointContent(plan, session);
  std::optional<TensorWriter> weights, states;
  Status status;
  if (session.writes()) {
    std::map<std::string, std::string> metadata = runState;
    metadata["format"] = "pt"; // without it transformers refuses a file
    status = weights.emplace().open(path, content.model, metadata);
  }
  // A process that cannot write says so before the others send anything.
  HPC_RETURN_IF_ERROR(session.agree(status));
  auto writeTensors = [&](const std::vector<CheckpointTensor> &entries, std::optional<TensorWriter> &writer) {
    for (const CheckpointTensor &entry : entries) {
      Array whole;
      if (entry.saved)
        HPC_RETURN_IF_ERROR(session.read(*entry.saved, whole));
      if (!writer || !status.ok())
        continue;
      Expected<const std::byte *> data = entry.saved ? whole.data.data() : session.stored().content(entry.weight);
      status = data.ok() ? writer->add(entry, *data, entry.bytes) : data.status();
    }
    return Status::success();
  };
  HPC_RETURN_IF_ERROR(writeTensors(content.model, weights));
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
  if (isCheckpointFolder(path)) {
    Expected<CheckpointState> state = readCheckpointState(path);
    HPC_RETURN_IF_ERROR(state.status());
    return std::move(state->metadata);
  }
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
