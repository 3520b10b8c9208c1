// Files of named tensors: what --weights and --load name. The content decides what a file is: safetensors, an index of sharded
// safetensors, ONNX, .npz; a folder holds one of these.
#pragma once

#include "runtime/base/File.h"
#include "runtime/base/FileKind.h"
#include "runtime/core/NamedTensor.h"

#include <memory>
#include <set>

namespace hpc {

struct TensorFileOptions {
  std::string flag;                ///< for messages: "--weights=w.safetensors"
  std::set<std::string> trusted;   ///< base names of external data that may be links: those that the plan itself names
  bool followLinks = false;        ///< all of them
};

class TensorFiles {
public:
  /// `path` is a file, or a folder with one model in it. Errors: what is none of these, named as what it is; a folder with none or
  /// several; whatever the readers of the formats refuse; a tensor of an index that its shard has not.
  static Expected<TensorFiles> open(const std::string &path, const TensorFileOptions &options);

  const NamedTensorMap &tensors() const { return named; }
  /// The file that was named, or found in a folder: for messages.
  const std::string &path() const { return shown; }
  FileKind kind() const { return found; }
  /// The metadata of a safetensors file.
  const std::map<std::string, std::string> &metadata() const { return texts; }

private:
  Status openFile(const std::string &path, const TensorFileOptions &options);
  Status openFolder(const std::string &path, const TensorFileOptions &options);
  Status openIndex(const std::string &path);
  Status openOnnx(MappedFile file, const TensorFileOptions &options);
  Status openShards(const std::string &folder, const std::set<std::string> &shards);

  std::string shown;
  FileKind found = FileKind::Unknown;
  NamedTensorMap named;
  std::map<std::string, std::string> texts;
  std::vector<std::unique_ptr<MappedFile>> files;
  std::vector<std::vector<std::byte>> owned; ///< elements that no file holds as they are
};

/// The files in which `path` (a file or folder) has tensors or their index; of a folder without any, nothing.
std::vector<std::string> tensorFilesAt(const std::string &path);

/// Whether a folder has files that TensorFiles reads.
bool hasTensorFiles(const std::string &folder);

} // namespace hpc
