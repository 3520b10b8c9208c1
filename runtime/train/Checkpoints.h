// The checkpoints of a training run: a folder for each saved step (CheckpointFolder.h), with the model's weights as from_pretrained reads them,
// the states of the optimizer, and state.json. Every process writes the tensors whose owners it holds, at the same time as the others. The
// folder must be one and the same for all processes.
#pragma once

#include "runtime/core/CheckpointShards.h"
#include "runtime/train/CheckpointFolder.h"
#include "runtime/train/CopyMemory.h"
#include "runtime/train/RunState.h"

#include <future>
#include <memory>

namespace hpc {

struct CheckpointOptions {
  std::string folder;
  int64_t keep = 3;      ///< newest ones
  int64_t keepEvery = 0; ///< those of steps that are multiples of it stay, too; 0: none
  bool isAsync = false;  ///< a step waits until the tensors are copied, and a thread writes them
  int64_t shardBytes = 5'000'000'000;
};

struct SaveReport {
  std::string path; ///< of the checkpoint
  int64_t step = 0; ///< steps that are done
  int64_t bytes = 0;
  double stopped = 0; ///< seconds in which no step ran
  double seconds = 0; ///< from the beginning of the save until the checkpoint was whole; 0: it is not yet
};

/// All processes of a run make one with the same options, and call each function together, between two steps. An error is one in all of them,
/// and leaves the checkpoints before it whole.
class Checkpoints {
public:
  /// The process of rank 0 makes the folder where it is not there, and locks it. `plan` and `session` outlive the object.
  static Expected<std::unique_ptr<Checkpoints>> open(const CheckpointOptions &options, const plan::Plan &plan, Session &session);
  ~Checkpoints();

  /// Saves the state between two steps. `metadata`: more for state.json ("run.optimizer", "epoch"). With isAsync the checkpoint is whole when
  /// poll() or finish() returns its report; no other save may begin before.
  Expected<SaveReport> save(const RunState &state, const std::map<std::string, std::string> &metadata);
  /// After each step: the report of a save in the background that has ended meanwhile. Errors: that it failed.
  Expected<std::optional<SaveReport>> poll() { return advance(/*waits=*/false); }
  /// The same, but waits for it: before another save, and at the end of the run.
  Expected<std::optional<SaveReport>> finish() { return advance(/*waits=*/true); }

private:
  struct Batch;
  struct Save;
  Checkpoints(const CheckpointOptions &options, const plan::Plan &plan, Session &session);
  void addBatches(int64_t most);
  Status start();
  Status write(const Batch &batch);
  Status exchangeHashes();
  Status publish();
  Status failed(const Status &status);
  Expected<SaveReport> saveNow();
  Expected<std::optional<SaveReport>> advance(bool waits);

  const CheckpointOptions options;
  const plan::Plan &plan;
  Session &session;
  const CheckpointShards shards;
  const int64_t process;
  std::optional<CheckpointFolder> folder; ///< in the process of rank 0
  std::vector<Batch> batches;             ///< read and written one after the other; with isAsync there is one
  std::unique_ptr<CopyMemory> memory;     ///< of the largest batch
  std::future<void> isTouched;            ///< with isAsync: the memory has its pages
  std::unique_ptr<Save> current;
};

} // namespace hpc
