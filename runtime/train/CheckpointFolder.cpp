// Orders that must not change: files and folders are on the disk before the checkpoint gets its name, and that is on the disk before `latest`
// names it and others are removed.
#include "runtime/train/CheckpointFolder.h"

#include "runtime/base/File.h"
#include "runtime/core/CheckpointState.h"
#include "runtime/core/TensorFiles.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace hpc {

namespace fs = std::filesystem;

static const std::string stepPrefix = "step-", temporaryEnding = ".tmp", latestName = "latest";

static Status folderError(const std::string &path, const std::string &what, int error) {
  return Status::error(ErrorKind::Io, "'" + path + "': " + what + ": " + writeErrorText(error));
}

std::string checkpointPath(const std::string &folder, int64_t step) {
  char name[40];
  std::snprintf(name, sizeof(name), "%s%08lld", stepPrefix.c_str(), static_cast<long long>(step));
  return resolvePath(folder, name);
}

std::string latestCheckpointPath(const std::string &folder) { return resolvePath(folder, latestName); }

std::string unfinishedCheckpointPath(const std::string &folder, int64_t step) { return checkpointPath(folder, step) + temporaryEnding; }

static bool endsWith(const std::string &text, const std::string &ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

/// The step of a folder's name; nothing where it is no checkpoint's.
static std::optional<int64_t> stepOf(const std::string &name) {
  int64_t step = -1;
  const char *end = name.c_str() + name.size();
  if (name.compare(0, stepPrefix.size(), stepPrefix) != 0 || std::from_chars(name.c_str() + stepPrefix.size(), end, step).ptr != end || step < 0 ||
      checkpointPath(".", step) != name)
    return std::nullopt;
  return step;
}

static std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<int64_t> checkpointSteps(const std::string &folder) {
  std::vector<int64_t> steps;
  for (const std::string &name : namesIn(folder))
    if (std::optional<int64_t> step = stepOf(name))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

static Status removeFolder(const std::string &path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error ? folderError(path, "cannot be removed", error.value()) : Status::success();
}

Expected<CheckpointFolder> CheckpointFolder::open(const std::string &path) {
  std::error_code error;
  const bool isNew = fs::create_directories(path, error);
  if (error)
    return folderError(path, "the folder of checkpoints cannot be made", error.value());
  if (isNew)
    HPC_RETURN_IF_ERROR(syncFolder(folderOf(path)));
  Expected<RunLock> lock = RunLock::take(path);
  HPC_RETURN_IF_ERROR(lock.status());
  return CheckpointFolder(path, std::move(*lock));
}

Status CheckpointFolder::begin(int64_t step, bool hasStates) const {
  for (const std::string &name : namesIn(path))
    if (name.compare(0, stepPrefix.size(), stepPrefix) == 0 && endsWith(name, temporaryEnding))
      HPC_RETURN_IF_ERROR(removeFolder(resolvePath(path, name)));
  const std::string folder = unfinishedCheckpointPath(path, step);
  for (const std::string &each : {folder, resolvePath(folder, checkpointStatesFolder)})
    if ((each == folder || hasStates) && ::mkdir(each.c_str(), 0777) != 0)
      return folderError(each, "cannot make the folder", errno);
  return Status::success();
}

void CheckpointFolder::abandon(int64_t step) const { (void)removeFolder(unfinishedCheckpointPath(path, step)); }

/// A checkpoint of that step may be there, of a run that went on from an earlier one: both names are exchanged.
static Status giveName(const std::string &unfinished, const std::string &final) {
  if (::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) == 0)
    return removeFolder(unfinished);
  if (errno == EINVAL || errno == ENOSYS) { // a file system without it
    const std::string before = final + ".old" + temporaryEnding;
    if (::rename(final.c_str(), before.c_str()) != 0 && errno != ENOENT)
      return folderError(final, "cannot be replaced", errno);
    if (::rename(unfinished.c_str(), final.c_str()) != 0)
      return folderError(unfinished, "cannot be renamed", errno);
    return removeFolder(before);
  }
  return ::rename(unfinished.c_str(), final.c_str()) == 0 ? Status::success() : folderError(unfinished, "cannot be renamed", errno);
}

Status CheckpointFolder::publish(int64_t step) const {
  const std::string unfinished = unfinishedCheckpointPath(path, step), final = checkpointPath(path, step);
  std::error_code error;
  if (const std::string states = resolvePath(unfinished, checkpointStatesFolder); fs::is_directory(states, error))
    HPC_RETURN_IF_ERROR(syncFolder(states));
  HPC_RETURN_IF_ERROR(syncFolder(unfinished));
  HPC_RETURN_IF_ERROR(giveName(unfinished, final));
  HPC_RETURN_IF_ERROR(syncFolder(path));
  const std::string link = latestCheckpointPath(path), next = link + temporaryEnding;
  if (::unlink(next.c_str()) != 0 && errno != ENOENT)
    return folderError(next, "cannot be removed", errno);
  if (::symlink(final.substr(final.rfind('/') + 1).c_str(), next.c_str()) != 0 || ::rename(next.c_str(), link.c_str()) != 0)
    return folderError(link, "the link cannot be made", errno);
  return syncFolder(path);
}

Status CheckpointFolder::prune(int64_t step, int64_t keep, int64_t keepEvery) const {
  std::vector<int64_t> steps = checkpointSteps(path);
  steps.erase(std::upper_bound(steps.begin(), steps.end(), step), steps.end());
  steps.resize(size_t(std::max<int64_t>(0, int64_t(steps.size()) - keep)));
  for (int64_t old : steps) {
    if (keepEvery > 0 && old % keepEvery == 0)
      continue;
    // Half a checkpoint must not have the name of a whole one.
    const std::string final = checkpointPath(path, old), leaving = unfinishedCheckpointPath(path, old);
    if (::rename(final.c_str(), leaving.c_str()) != 0)
      return folderError(final, "cannot be removed", errno);
    HPC_RETURN_IF_ERROR(removeFolder(leaving));
  }
  return Status::success();
}

/// The texts of all processes.
static Expected<std::vector<std::string>> tellAll(const CheckpointReader &reader, const std::string &mine) {
  return reader.processes > 1 ? reader.exchange(mine) : Expected<std::vector<std::string>>({mine});
}

/// This process's part of the files.
static Status checkFiles(const std::string &path, const CheckpointReader &reader) {
  Expected<CheckpointState> state = readCheckpointState(path);
  HPC_RETURN_IF_ERROR(state.status());
  for (size_t i = size_t(reader.process); i < state->files.size(); i += size_t(reader.processes))
    HPC_RETURN_IF_ERROR(checkCheckpointFile(path, state->files[i]));
  return Status::success();
}

/// The same in all processes: success, or what the first of them found.
static Status checkTogether(const std::string &path, const CheckpointReader &reader) {
  const Status mine = checkFiles(path, reader);
  Expected<std::vector<std::string>> all = tellAll(reader, mine.ok() ? "" : mine.message());
  HPC_RETURN_IF_ERROR(all.status());
  for (const std::string &text : *all)
    if (!text.empty())
      return Status::error(ErrorKind::Io, text);
  return Status::success();
}

/// The kind of a path, and the steps to try, from the one that `latest` names on, as a text for the other processes.
static std::string candidatesText(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return fs::exists(path, error) ? "file" : "none";
  if (isCheckpointFolder(path))
    return "checkpoint";
  std::vector<int64_t> steps = checkpointSteps(path);
  if (steps.empty())
    return hasTensorFiles(path) ? "file" : "none";
  const std::optional<int64_t> latest = stepOf(fs::read_symlink(latestCheckpointPath(path), error).string());
  std::string text = "folder";
  for (size_t i = steps.size(); i-- > 0;)
    if (!latest || steps[i] <= *latest)
      text += " " + std::to_string(steps[i]);
  return text;
}

Expected<std::optional<std::string>> findCheckpoint(const std::string &path, const CheckpointReader &reader, std::vector<std::string> &notes) {
  Expected<std::vector<std::string>> texts = tellAll(reader, candidatesText(path));
  HPC_RETURN_IF_ERROR(texts.status());
  const std::string &text = texts->front();
  if (text == "none")
    return std::optional<std::string>();
  if (text == "file")
    return std::optional(path);
  if (text == "checkpoint") {
    HPC_RETURN_IF_ERROR(checkTogether(path, reader));
    return std::optional(path);
  }
  std::string reasons;
  for (size_t begin = text.find(' '); begin != text.npos; begin = text.find(' ', begin + 1)) {
    const std::string candidate = checkpointPath(path, std::atoll(text.c_str() + begin + 1));
    const Status status = checkTogether(candidate, reader);
    if (status.ok()) {
      if (!reasons.empty())
        notes.push_back("--load=" + path + ": goes on from '" + candidate + "', since a later checkpoint is damaged: " + reasons);
      return std::optional(candidate);
    }
    reasons += (reasons.empty() ? "" : "; ") + status.message();
  }
  return Status::error(ErrorKind::Io, "--load=" + path + ": the folder has no whole checkpoint" + (reasons.empty() ? "" : ": " + reasons));
}

} // namespace hpc
