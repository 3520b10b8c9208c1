// The header comes first and follows from the plan alone, so that one tensor at a time is in memory.
#include "runtime/core/Checkpoint.h"

#include "runtime/base/File.h"
#include "runtime/core/SafeTensors.h"

namespace hpc {

Status writeCheckpoint(const std::string &path, const plan::Plan &plan, Session &session,
                       const std::map<std::string, std::string> &metadata) {
  const std::vector<SavedTensor> &tensors = session.saved();
  const std::vector<int32_t> frozen = session.stored().onlyRead();
  std::optional<AtomicFile> file;
  Status status;
  if (session.writes()) {
    Expected<AtomicFile> created = AtomicFile::create(path);
    status = created.status();
    if (created.ok()) {
      file.emplace(std::move(*created));
      std::vector<SafeTensorEntry> entries;
      for (const SavedTensor &tensor : tensors)
        entries.push_back({tensor.name, tensor.dtype, tensor.shape});
      for (int32_t weight : frozen)
        entries.push_back({plan.weights[size_t(weight)].name, plan.weights[size_t(weight)].dtype, plan.weights[size_t(weight)].shape});
      status = file->write(safeTensorsHeader(entries, metadata));
    }
  }
  // A process that cannot write says so before the others send anything.
  HPC_RETURN_IF_ERROR(session.agree(status));
  for (size_t i = 0; i < tensors.size(); ++i) {
    Array whole;
    HPC_RETURN_IF_ERROR(session.read(i, whole));
    if (file && status.ok())
      status = file->write(whole.data.data(), int64_t(whole.data.size()));
  }
  for (size_t i = 0; i < frozen.size() && file && status.ok(); ++i) {
    Expected<const std::byte *> content = session.stored().content(frozen[i]);
    status = content.ok() ? file->write(*content, plan.weights[size_t(frozen[i])].bytes) : content.status();
  }
  if (file && status.ok())
    status = file->commit();
  return session.agree(status);
}

Expected<std::map<std::string, std::string>> checkpointMetadata(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  std::map<std::string, std::string> metadata;
  Expected<std::map<std::string, SafeTensor>> tensors = readSafeTensors(*file, &metadata);
  if (!tensors.ok())
    return tensors.status();
  return metadata;
}

} // namespace hpc
