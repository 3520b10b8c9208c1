// The header comes first and follows from the plan alone, so that one tensor at a time is in memory.
#include "runtime/core/Checkpoint.h"

#include "runtime/base/File.h"
#include "runtime/core/SafeTensors.h"

#include <charconv>

namespace hpc {

static constexpr const char *stepsKey = "steps";

Status writeCheckpoint(const std::string &path, Session &session, int64_t steps) {
  const std::vector<SavedTensor> &tensors = session.saved();
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
      status = file->write(safeTensorsHeader(entries, {{stepsKey, std::to_string(steps)}}));
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
  if (file && status.ok())
    status = file->commit();
  return session.agree(status);
}

Expected<int64_t> stepsOfCheckpoint(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  std::map<std::string, std::string> metadata;
  Expected<std::map<std::string, SafeTensor>> tensors = readSafeTensors(*file, &metadata);
  if (!tensors.ok())
    return tensors.status();
  const std::string &text = metadata[stepsKey];
  int64_t steps = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || steps < 0)
    return Status::error(ErrorKind::Io, "'" + path + "': is no checkpoint of hpc-run --save: its metadata has no '" +
                                            std::string(stepsKey) + "'; give such a file");
  return steps;
}

} // namespace hpc
