// A tied tensor is written under each of its names, and hashed once.
#include "runtime/core/CheckpointShards.h"

#include "runtime/base/Hash.h"
#include "runtime/core/SafeTensors.h"

#include <nlohmann/json.hpp>

namespace hpc {

static const std::string modelName = "model", statesName = "optimizer", statesFolder = checkpointStatesFolder;

/// Bytes in files, under all names.
static int64_t bytesInFiles(const CheckpointTensor &tensor) { return tensor.bytes * int64_t(tensor.names.size()); }

/// "model-00001-of-00003.safetensors"; of a single shard "model.safetensors".
static std::string shardName(const std::string &name, size_t number, size_t count) {
  char part[64] = "";
  if (count > 1)
    std::snprintf(part, sizeof(part), "-%05zu-of-%05zu", number + 1, count);
  return name + part + ".safetensors";
}

static std::string inFolder(const std::string &folder, const std::string &name) { return folder.empty() ? name : folder + "/" + name; }

void CheckpointShards::addShards(const std::string &folder, const std::string &name, size_t first, size_t end, int64_t processes,
                                 int64_t shardBytes) {
  const size_t begin = files.size();
  for (int64_t process = 0; process < processes; ++process) {
    int64_t bytes = shardBytes + 1; // the first tensor begins a shard
    for (size_t i = first; i < end; ++i) {
      if (processOf(list[i]) != process)
        continue;
      if (bytes + bytesInFiles(list[i]) > shardBytes) {
        files.push_back({{}, process, {}, {}});
        bytes = 0;
      }
      files.back().tensors.push_back(i);
      bytes += bytesInFiles(list[i]);
    }
  }
  for (size_t i = begin; i < files.size(); ++i) {
    files[i].path = inFolder(folder, shardName(name, i - begin, files.size() - begin));
    std::vector<SafeTensorEntry> entries;
    for (size_t tensor : files[i].tensors)
      for (const std::string &each : list[tensor].names)
        entries.push_back({each, list[tensor].dtype, list[tensor].shape});
    files[i].header = safeTensorsHeader(entries, {{"format", "pt"}}); // without it transformers refuses a file
  }
}

CheckpointShards::CheckpointShards(const plan::Plan &plan, const Session &session, int64_t shardBytes)
    : ranksPerProcess(session.ownRanks().count) {
  CheckpointContent content = checkpointContent(plan, session);
  numModel = content.model.size();
  list = std::move(content.model);
  list.insert(list.end(), content.states.begin(), content.states.end());
  const int64_t processes = (plan.worldSize() + ranksPerProcess - 1) / ranksPerProcess;
  addShards("", modelName, 0, numModel, processes, shardBytes);
  addShards(statesFolder, statesName, numModel, list.size(), processes, shardBytes);
}

int64_t CheckpointShards::bytes() const {
  int64_t bytes = 0;
  for (const CheckpointShard &shard : files)
    bytes += int64_t(shard.header.size());
  for (const CheckpointTensor &tensor : list)
    bytes += bytesInFiles(tensor);
  return bytes;
}

/// The format of transformers' save_pretrained.
std::optional<CheckpointShards::TextFile> CheckpointShards::indexOf(const std::string &folder, const std::string &name) const {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  int64_t bytes = 0, count = 0;
  for (const CheckpointShard &shard : files) {
    if (folderOf(shard.path) != (folder.empty() ? "." : folder))
      continue;
    ++count;
    for (size_t tensor : shard.tensors) {
      bytes += bytesInFiles(list[tensor]);
      for (const std::string &each : list[tensor].names)
        map[each] = shard.path.substr(shard.path.rfind('/') + 1);
    }
  }
  if (count < 2)
    return std::nullopt;
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  return TextFile{inFolder(folder, name + ".safetensors.index.json"),
                  index.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
}

std::vector<CheckpointShards::TextFile> CheckpointShards::indices() const {
  std::vector<TextFile> found;
  for (std::optional<TextFile> index : {indexOf("", modelName), indexOf(statesFolder, statesName)})
    if (index)
      found.push_back(std::move(*index));
  return found;
}

std::vector<CheckpointFile> CheckpointShards::described(const std::vector<uint64_t> &hashes) const {
  std::vector<CheckpointFile> all;
  for (const CheckpointShard &shard : files) {
    CheckpointFile file{shard.path, {{"", int64_t(shard.header.size()), hashBytes(shard.header.data(), int64_t(shard.header.size()))}}};
    for (size_t tensor : shard.tensors)
      for (const std::string &name : list[tensor].names)
        file.parts.push_back({name, list[tensor].bytes, hashes[tensor]});
    all.push_back(std::move(file));
  }
  return all;
}

ShardWriter::ShardWriter(const CheckpointShards &shards, std::string folder, int64_t process) : shards(shards), folder(std::move(folder)) {
  for (size_t i = 0; i < shards.shards().size(); ++i)
    if (const CheckpointShard &shard = shards.shards()[i]; shard.process == process) {
      mine.insert(mine.end(), shard.tensors.begin(), shard.tensors.end());
      shardOf.resize(mine.size(), i);
    }
}

Status ShardWriter::add(const std::byte *data) {
  const size_t next = done.size();
  const CheckpointTensor &tensor = shards.tensors()[mine[next]];
  const CheckpointShard &shard = shards.shards()[shardOf[next]];
  if (!file) {
    Expected<AtomicFile> created = AtomicFile::create(resolvePath(folder, shard.path));
    HPC_RETURN_IF_ERROR(created.status());
    file.emplace(std::move(*created));
    HPC_RETURN_IF_ERROR(file->write(shard.header));
  }
  for (size_t i = 0; i < tensor.names.size(); ++i)
    HPC_RETURN_IF_ERROR(file->write(data, tensor.bytes));
  done.push_back(hashBytes(data, tensor.bytes));
  if (next + 1 < mine.size() && shardOf[next + 1] == shardOf[next])
    return Status::success();
  HPC_RETURN_IF_ERROR(file->commit());
  file.reset();
  return Status::success();
}

} // namespace hpc
