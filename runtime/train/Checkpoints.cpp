// A batch is read by all processes together, then each writes its part of it. In the background only files are written: messages between
// processes belong to the steps.
#include "runtime/train/Checkpoints.h"

#include "runtime/base/Hash.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace hpc {

/// Tensors in memory at a time; one that is larger is alone.
static constexpr int64_t batchBytes = int64_t(64) << 20;

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Tensors of all processes that are read at once.
struct Checkpoints::Batch {
  std::vector<Session::Read> reads;
  std::vector<size_t> own;      ///< tensors of this process, in the order of writing
  std::vector<int64_t> offsets; ///< of each in the memory; -1: its bytes are in a file that is mapped
};

/// A save that has begun.
struct Checkpoints::Save {
  Save(const CheckpointShards &shards, const std::string &folder, int64_t process) : writer(shards, folder, process) {}

  ShardWriter writer;
  SaveReport report;
  CheckpointState state;
  Clock::time_point start = Clock::now();
  std::vector<uint64_t> hashes; ///< of all tensors, when all are written
  std::future<Status> task;     ///< in the background
  bool isPublishing = false;    ///< what the task does
};

Checkpoints::Checkpoints(const CheckpointOptions &options, const plan::Plan &plan, Session &session)
    : options(options), plan(plan), session(session), shards(plan, session, options.shardBytes),
      process(session.ownRanks().first / session.ownRanks().count) {}

Checkpoints::~Checkpoints() {
  if (isTouched.valid())
    isTouched.wait();
  if (current && current->task.valid())
    current->task.wait();
}

/// Fills `batches`, without addresses. All processes make the same ones.
void Checkpoints::addBatches(int64_t most) {
  const int64_t processes = plan.worldSize() / session.ownRanks().count;
  for (int64_t each = 0; each < processes; ++each) {
    int64_t offset = 0;
    size_t number = 0;
    const ShardWriter writer(shards, "", each);
    for (size_t index : writer.order()) {
      const CheckpointTensor &tensor = shards.tensors()[index];
      const int64_t bytes = tensor.saved ? (tensor.bytes + 63) / 64 * 64 : 0;
      if (offset > 0 && offset > most - bytes) {
        ++number;
        offset = 0;
      }
      if (batches.size() <= number)
        batches.resize(number + 1);
      if (tensor.saved)
        batches[number].reads.push_back({*tensor.saved, tensor.rank, nullptr});
      if (each == process) {
        batches[number].own.push_back(index);
        batches[number].offsets.push_back(tensor.saved ? offset : -1);
      }
      offset += bytes;
    }
  }
}

Status Checkpoints::start() {
  if (session.writes()) {
    Expected<CheckpointFolder> opened = CheckpointFolder::open(options.folder);
    HPC_RETURN_IF_ERROR(opened.status());
    folder.emplace(std::move(*opened));
  }
  addBatches(options.isAsync ? INT64_MAX : batchBytes);
  int64_t most = 0;
  for (const Batch &batch : batches)
    for (size_t i = 0; i < batch.own.size(); ++i)
      if (batch.offsets[i] >= 0)
        most = std::max(most, batch.offsets[i] + shards.tensors()[batch.own[i]].bytes);
  Expected<std::unique_ptr<CopyMemory>> made = CopyMemory::create(most);
  HPC_RETURN_IF_ERROR(made.status());
  memory = std::move(*made);
  for (Batch &batch : batches) {
    size_t next = 0; // of own tensors
    for (Session::Read &read : batch.reads) {
      if (!session.ownRanks().holds(read.rank))
        continue;
      while (batch.offsets[next] < 0)
        ++next;
      read.whole = memory->data() + batch.offsets[next++];
    }
  }
  if (options.isAsync)
    isTouched = std::async(std::launch::async, [this] { memory->touch(); });
  return Status::success();
}

Expected<std::unique_ptr<Checkpoints>> Checkpoints::open(const CheckpointOptions &options, const plan::Plan &plan, Session &session) {
  std::unique_ptr<Checkpoints> made(new Checkpoints(options, plan, session));
  HPC_RETURN_IF_ERROR(session.agree(made->start()));
  return made;
}

Status Checkpoints::write(const Batch &batch) {
  for (size_t i = 0; i < batch.own.size(); ++i) {
    const CheckpointTensor &tensor = shards.tensors()[batch.own[i]];
    if (tensor.saved) {
      HPC_RETURN_IF_ERROR(current->writer.add(memory->data() + batch.offsets[i]));
      continue;
    }
    Expected<const std::byte *> data = session.stored().content(tensor.weight);
    HPC_RETURN_IF_ERROR(data.status());
    HPC_RETURN_IF_ERROR(current->writer.add(*data));
  }
  return Status::success();
}

Status Checkpoints::exchangeHashes() {
  const std::vector<uint64_t> &mine = current->writer.hashes();
  Expected<std::vector<std::string>> texts =
      session.exchange(std::string(reinterpret_cast<const char *>(mine.data()), mine.size() * sizeof(uint64_t)));
  HPC_RETURN_IF_ERROR(texts.status());
  current->hashes.resize(shards.tensors().size());
  for (size_t each = 0; each < texts->size(); ++each) {
    const ShardWriter writer(shards, "", int64_t(each));
    for (size_t i = 0; i < writer.order().size() && (i + 1) * sizeof(uint64_t) <= (*texts)[each].size(); ++i)
      std::memcpy(&current->hashes[writer.order()[i]], (*texts)[each].data() + i * sizeof(uint64_t), sizeof(uint64_t));
  }
  return Status::success();
}

/// In the process of rank 0, when all shards are on the disk.
Status Checkpoints::publish() {
  const std::string path = unfinishedCheckpointPath(options.folder, current->report.step);
  current->state.files = shards.described(current->hashes);
  for (const CheckpointShards::TextFile &index : shards.indices()) {
    HPC_RETURN_IF_ERROR(writeFile(resolvePath(path, index.path), index.content));
    current->state.files.push_back({index.path, {{"", int64_t(index.content.size()), hashBytes(index.content.data(), int64_t(index.content.size()))}}});
  }
  HPC_RETURN_IF_ERROR(writeFile(resolvePath(path, checkpointStateName), checkpointStateText(current->state)));
  HPC_RETURN_IF_ERROR(folder->publish(current->report.step));
  return folder->prune(current->report.step, options.keep, options.keepEvery);
}

/// Ends the current save with the error that all processes have agreed on, when none of them writes any more.
Status Checkpoints::failed(const Status &status) {
  if (current->task.valid())
    current->task.wait();
  if (folder)
    folder->abandon(current->report.step);
  current.reset();
  return status.at("saving a checkpoint");
}

Expected<SaveReport> Checkpoints::saveNow() {
  for (const Batch &batch : batches) {
    HPC_RETURN_IF_ERROR(session.read(batch.reads));
    if (Status status = session.agree(write(batch)); !status.ok())
      return failed(status);
  }
  HPC_RETURN_IF_ERROR(exchangeHashes());
  if (Status status = session.agree(folder ? publish() : Status::success()); !status.ok())
    return failed(status);
  SaveReport report = current->report;
  report.stopped = report.seconds = secondsSince(current->start);
  current.reset();
  return report;
}

/// Work beside the steps. A deferred task is one without work.
static Expected<std::future<Status>> inBackground(std::function<Status()> work) {
  if (!work)
    return std::async(std::launch::deferred, [] { return Status::success(); });
  try {
    return std::async(std::launch::async, std::move(work));
  } catch (const std::system_error &error) {
    return Status::error(ErrorKind::Capacity, std::string("cannot start a thread that writes a checkpoint: ") + error.what() + "; save without --save-async");
  }
}

static Status checkFolderIsSeen(const std::string &path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return Status::success();
  return Status::error(ErrorKind::Io, "'" + path + "': a process does not see this folder, which process 0 has made; name a folder that all processes share");
}

Expected<SaveReport> Checkpoints::save(const RunState &state, const std::map<std::string, std::string> &metadata) {
  current = std::make_unique<Save>(shards, unfinishedCheckpointPath(options.folder, state.steps), process);
  current->report = {checkpointPath(options.folder, state.steps), state.steps, shards.bytes(), 0, 0};
  current->state.metadata = state.toMetadata();
  current->state.metadata.insert(metadata.begin(), metadata.end());
  for (const plan::Axis &axis : plan.axes)
    current->state.layout[axis.name] = axis.size;
  current->state.layout["pp"] = int64_t(plan.stages.size());
  current->state.layout["processes"] = plan.worldSize() / session.ownRanks().count;
  if (Status status = session.agree(folder ? folder->begin(state.steps, shards.hasStates()) : Status::success()); !status.ok())
    return failed(status);
  if (Status status = session.agree(checkFolderIsSeen(unfinishedCheckpointPath(options.folder, state.steps))); !status.ok())
    return failed(status);
  if (!options.isAsync)
    return saveNow();
  if (isTouched.valid())
    isTouched.get();
  for (const Batch &batch : batches)
    HPC_RETURN_IF_ERROR(session.read(batch.reads));
  Expected<std::future<Status>> task = inBackground([this] {
    for (const Batch &batch : batches)
      HPC_RETURN_IF_ERROR(write(batch));
    return Status::success();
  });
  if (task.ok())
    current->task = std::move(*task);
  if (Status status = session.agree(task.status()); !status.ok())
    return failed(status);
  current->report.stopped = secondsSince(current->start);
  return current->report;
}

Expected<std::optional<SaveReport>> Checkpoints::advance(bool waits) {
  const Clock::time_point start = Clock::now();
  while (current) {
    if (!waits) {
      Expected<bool> isBusy = session.any(current->task.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
      HPC_RETURN_IF_ERROR(isBusy.status());
      if (*isBusy)
        break;
    }
    if (Status status = session.agree(current->task.get()); !status.ok())
      return failed(status);
    if (current->isPublishing) {
      SaveReport report = current->report;
      report.stopped += secondsSince(start);
      report.seconds = secondsSince(current->start);
      current.reset();
      return std::optional(report);
    }
    HPC_RETURN_IF_ERROR(exchangeHashes());
    Expected<std::future<Status>> task = inBackground(folder ? std::function<Status()>([this] { return publish(); }) : nullptr);
    if (task.ok())
      current->task = std::move(*task);
    if (Status status = session.agree(task.status()); !status.ok())
      return failed(status);
    current->isPublishing = true;
  }
  if (current)
    current->report.stopped += secondsSince(start);
  return std::optional<SaveReport>();
}

} // namespace hpc
