// A folder of checkpoints: step-00000500/ is one, `latest` a link to the newest, step-00000600.tmp one that is being written or removed. A name
// without .tmp is a whole checkpoint, since it is given last.
#pragma once

#include "runtime/base/RunLock.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hpc {

/// One process at a time writes into a folder of checkpoints.
class CheckpointFolder {
public:
  /// Makes the folder where it is not there, and locks it until the object ends. Errors: another run has it.
  static Expected<CheckpointFolder> open(const std::string &path);

  /// Removes what killed runs have left, and makes the folder of a checkpoint to write. `hasStates`: with a folder in it for the states.
  Status begin(int64_t step, bool hasStates) const;
  /// Removes it, where it cannot be finished.
  void abandon(int64_t step) const;
  /// Gives the finished folder its name, which replaces a checkpoint of that step; then `latest` names it.
  Status publish(int64_t step) const;
  /// Removes checkpoints of earlier steps: all but the newest `keep`, that of `step` included, and those of multiples of `keepEvery` (0: none).
  Status prune(int64_t step, int64_t keep, int64_t keepEvery) const;

private:
  CheckpointFolder(std::string path, RunLock lock) : path(std::move(path)), lock(std::move(lock)) {}

  std::string path;
  RunLock lock;
};

/// The folder of a step, finished or while it is written; the link to the one that was saved last.
std::string checkpointPath(const std::string &folder, int64_t step);
std::string latestCheckpointPath(const std::string &folder);
std::string unfinishedCheckpointPath(const std::string &folder, int64_t step);

/// The checkpoints in a folder, ascending.
std::vector<int64_t> checkpointSteps(const std::string &folder);

/// One process of several that read a checkpoint together: each checks a part of its files.
struct CheckpointReader {
  int64_t process = 0, processes = 1;
  /// Backend::exchange; not called where the process is alone.
  std::function<Expected<std::vector<std::string>>(const std::string &)> exchange;
};

/// The path of the checkpoint that --load=PATH means, its files checked against their hashes: of a folder of checkpoints `latest`, or where
/// that is damaged the newest whole one before it, with a note. Any other path is returned as it is. All processes get the same. Errors: a
/// damaged checkpoint that was named itself; a folder of checkpoints without a whole one. nullopt: nothing is there, or a folder without
/// checkpoints or other weights.
Expected<std::optional<std::string>> findCheckpoint(const std::string &path, const CheckpointReader &reader, std::vector<std::string> &notes);

} // namespace hpc
