// state.json, the last file that is written into a checkpoint's folder: how far the run is, how it is set up, and the hashes by which damage
// is found. Its own last line is the hash of all lines before.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpc {

inline constexpr const char *checkpointStateName = "state.json", *checkpointStatesFolder = "optimizer";

/// A file of the folder, part after part.
struct CheckpointFile {
  struct Part {
    std::string tensor; ///< "": the header of a shard, or all of another file
    int64_t bytes = 0;
    uint64_t hash = 0;
  };
  std::string path; ///< in the folder
  std::vector<Part> parts;
};

struct CheckpointState {
  /// As in the single file of --save: "steps", "seed", ..., and "run.optimizer" and the like.
  std::map<std::string, std::string> metadata;
  std::map<std::string, int64_t> layout; ///< "tp": 2, ..., "processes": 4
  std::vector<CheckpointFile> files;
  uint64_t hash = 0; ///< of the file that was read: another one for other weights
};

std::string checkpointStateText(const CheckpointState &state);

/// Reads the state of the checkpoint in `folder`. Errors: it has none; it is damaged; a newer version wrote it.
Expected<CheckpointState> readCheckpointState(const std::string &folder);

/// Whether `path` is the folder of one checkpoint.
bool isCheckpointFolder(const std::string &path);

/// Success, or the first part of a file that is missing or is not as it was saved.
Status checkCheckpointFile(const std::string &folder, const CheckpointFile &file);

} // namespace hpc
