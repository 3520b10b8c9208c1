// The files of a checkpoint's folder: Hugging Face's shards of weights with their index, the states of the optimizer likewise in a
// folder of their own. Which file holds which tensor, and which process writes it, follows from the plan alone.
#pragma once

#include "runtime/base/File.h"
#include "runtime/core/CheckpointContent.h"
#include "runtime/core/CheckpointState.h"

namespace hpc {

struct CheckpointShard {
  std::string path; ///< in the folder: "model-00001-of-00002.safetensors", "optimizer/optimizer.safetensors"
  int64_t process = 0;
  std::vector<size_t> tensors; ///< of CheckpointShards::tensors
  std::string header;
};

class CheckpointShards {
public:
  /// No shard is larger than `shardBytes`, but for one of a single tensor. A shard has tensors of one process.
  CheckpointShards(const plan::Plan &plan, const Session &session, int64_t shardBytes);

  const std::vector<CheckpointTensor> &tensors() const { return list; }
  const std::vector<CheckpointShard> &shards() const { return files; }
  int64_t processOf(const CheckpointTensor &tensor) const { return tensor.rank / ranksPerProcess; }
  bool hasStates() const { return numModel < list.size(); }
  /// Bytes of all shards.
  int64_t bytes() const;

  /// A file with its content, beside the shards.
  struct TextFile {
    std::string path, content;
  };
  /// model.safetensors.index.json and that of the states, where there are several shards.
  std::vector<TextFile> indices() const;
  /// The shards for state.json. `hashes`: of each tensor.
  std::vector<CheckpointFile> described(const std::vector<uint64_t> &hashes) const;

private:
  void addShards(const std::string &folder, const std::string &name, size_t first, size_t end, int64_t processes, int64_t shardBytes);
  std::optional<TextFile> indexOf(const std::string &folder, const std::string &name) const;

  int64_t ranksPerProcess = 1;
  size_t numModel = 0;
  std::vector<CheckpointTensor> list; ///< weights, then states
  std::vector<CheckpointShard> files;
};

/// Writes the shards of one process, tensor by tensor.
class ShardWriter {
public:
  ShardWriter(const CheckpointShards &shards, std::string folder, int64_t process);

  /// Tensors of this process in the order of writing.
  const std::vector<size_t> &order() const { return mine; }
  /// The next one. After the last one of a shard the file is on the disk.
  Status add(const std::byte *data);
  /// By the order of writing.
  const std::vector<uint64_t> &hashes() const { return done; }

private:
  const CheckpointShards &shards;
  const std::string folder;
  std::vector<size_t> mine, shardOf;
  std::vector<uint64_t> done;
  std::optional<AtomicFile> file;
};

} // namespace hpc
