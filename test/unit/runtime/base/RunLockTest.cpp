// One run in a folder: the second is refused with the first one's number, and a killed one leaves the folder free.
#include "runtime/base/RunLock.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace hpc;

TEST(RunLockTest, SecondIsRefused) {
  TemporaryFolder folder;
  std::optional<RunLock> first;
  {
    Expected<RunLock> taken = RunLock::take(folder.path);
    ASSERT_TRUE(taken.ok()) << taken.status().text();
    first.emplace(std::move(*taken));
  }
  Expected<RunLock> second = RunLock::take(folder.path);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("process " + std::to_string(::getpid()) + " on host "), std::string::npos) << second.status().text();
  first.reset();
  EXPECT_TRUE(RunLock::take(folder.path).ok());
}

TEST(RunLockTest, EndsWithItsProcess) {
  TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const int child = ::fork();
  if (child == 0) {
    Expected<RunLock> taken = RunLock::take(folder.path);
    [[maybe_unused]] ssize_t written = ::write(ready[1], taken.ok() ? "y" : "n", 1);
    ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_FALSE(RunLock::take(folder.path).ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunLock::take(folder.path).ok());
}

TEST(RunLockTest, NoFolder) {
  TemporaryFolder folder;
  Expected<RunLock> taken = RunLock::take(folder / "none");
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.status().message().find("none/lock' cannot be written"), std::string::npos);
}
