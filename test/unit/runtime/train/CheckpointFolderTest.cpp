// A folder of checkpoints: names, what is removed, and what several processes that read it together find.
#include "runtime/train/CheckpointFolder.h"
#include "runtime/base/Hash.h"
#include "runtime/core/CheckpointState.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <condition_variable>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

using namespace hpc;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A checkpoint of three files of a byte.
void fill(const std::string &path) {
  CheckpointState state;
  for (const char *name : {"a", "b", "c"}) {
    std::ofstream(path + "/" + name) << name;
    state.files.push_back({name, {{"tensor", 1, hashBytes(name, 1)}}});
  }
  std::ofstream(path + "/state.json") << checkpointStateText(state);
}

void save(const CheckpointFolder &folder, const std::string &path, int64_t step) {
  ASSERT_TRUE(folder.begin(step, true).ok());
  fill(unfinishedCheckpointPath(path, step));
  Status status = folder.publish(step);
  ASSERT_TRUE(status.ok()) << status.text();
}

/// The texts of processes that are threads.
class Exchange {
public:
  explicit Exchange(size_t count) : texts(count) {}
  std::vector<std::string> operator()(size_t process, const std::string &mine) {
    std::unique_lock<std::mutex> lock(mutex);
    const size_t round = rounds;
    texts[process] = mine;
    if (++arrived == texts.size()) {
      result = texts;
      arrived = 0;
      ++rounds;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return rounds != round; });
    return result;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> texts, result;
  size_t arrived = 0, rounds = 0;
};

/// What each of `count` processes finds, or its error.
std::vector<std::string> find(const std::string &path, int64_t count) {
  Exchange exchange{size_t(count)};
  std::vector<std::string> found(size_t(count), "");
  std::vector<std::thread> threads;
  for (int64_t process = 0; process < count; ++process)
    threads.emplace_back([&, process] {
      std::vector<std::string> notes;
      Expected<std::optional<std::string>> one = findCheckpoint(
          path, {process, count, [&, process](const std::string &mine) { return Expected<std::vector<std::string>>(exchange(size_t(process), mine)); }}, notes);
      found[size_t(process)] = one.ok() ? one->value_or("none") : one.status().message();
    });
  for (std::thread &thread : threads)
    thread.join();
  return found;
}

} // namespace

TEST(CheckpointFolder, AllProcessesTakeTheSame) {
  TemporaryFolder scratch;
  const std::string path = scratch / "all";
  Expected<CheckpointFolder> folder = CheckpointFolder::open(path);
  ASSERT_TRUE(folder.ok()) << folder.status().text();
  EXPECT_THAT(find(path, 1), ElementsAre("none"));
  EXPECT_THAT(find(scratch / "nothing", 2), ElementsAre("none", "none"));
  for (int64_t step : {3, 20, 100})
    save(*folder, path, step);
  EXPECT_THAT(checkpointSteps(path), ElementsAre(3, 20, 100));
  for (int64_t count : {1, 2, 3, 5})
    for (const std::string &found : find(path, count))
      EXPECT_EQ(found, checkpointPath(path, 100));
  // Each file is read by another process, and all hear of its damage.
  for (const char *name : {"a", "b", "c"}) {
    std::ofstream(checkpointPath(path, 100) + "/" + name) << "x";
    for (const std::string &found : find(path, 3))
      EXPECT_EQ(found, checkpointPath(path, 20));
    for (const std::string &error : find(checkpointPath(path, 100), 2))
      EXPECT_THAT(error, HasSubstr(std::string("step-00000100/") + name + "': is damaged"));
    fill(checkpointPath(path, 100));
  }
  // A later step than `latest` is of a run that was left.
  save(*folder, path, 20);
  EXPECT_THAT(find(path, 1), ElementsAre(checkpointPath(path, 20)));
  std::filesystem::remove(latestCheckpointPath(path));
  EXPECT_THAT(find(path, 1), ElementsAre(checkpointPath(path, 100)));
  for (int64_t step : {3, 20, 100})
    std::filesystem::remove(checkpointPath(path, step) + "/state.json");
  EXPECT_THAT(find(path, 2)[1], HasSubstr("the folder has no whole checkpoint"));
}

TEST(CheckpointFolder, KeepsTheNewestAndMultiples) {
  TemporaryFolder scratch;
  Expected<CheckpointFolder> folder = CheckpointFolder::open(scratch.path);
  ASSERT_TRUE(folder.ok());
  for (int64_t step = 1; step <= 9; ++step)
    save(*folder, scratch.path, step);
  EXPECT_TRUE(folder->prune(7, 2, 0).ok());
  EXPECT_THAT(checkpointSteps(scratch.path), ElementsAre(6, 7, 8, 9)); // 8 and 9 are later than the one that was saved
  EXPECT_TRUE(folder->prune(9, 1, 3).ok());
  EXPECT_THAT(checkpointSteps(scratch.path), ElementsAre(6, 9));
}

TEST(CheckpointFolder, RemovesWhatKilledRunsLeft) {
  TemporaryFolder scratch;
  for (const char *name : {"step-00000005.tmp/optimizer", "step-00000004.old.tmp", "latest.tmp", "step-5", "step-00000007x", "other.tmp"})
    std::filesystem::create_directories(scratch / name);
  std::filesystem::remove(scratch / "latest.tmp");
  std::filesystem::create_symlink("step-00000001", scratch / "latest.tmp");
  Expected<CheckpointFolder> folder = CheckpointFolder::open(scratch.path);
  ASSERT_TRUE(folder.ok());
  save(*folder, scratch.path, 5);
  EXPECT_THAT(checkpointSteps(scratch.path), ElementsAre(5));
  EXPECT_EQ(std::filesystem::read_symlink(latestCheckpointPath(scratch.path)), "step-00000005");
  EXPECT_EQ(scratch.entries(), 6); // and lock, other.tmp, step-5, step-00000007x, which are not ours
  EXPECT_THAT(CheckpointFolder::open(scratch.path).status().message(), HasSubstr("a run is going on in"));
}
