// Steps that stand still: those that are slow go on, and of those that do not all ranks are named in one table.
#include "runtime/launch/Control.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::launch;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

const auto firstTime = StallClock::Clock::time_point() + 1h;

/// A process's ranks, as the test sets them.
struct WatchedRanks : RankWatch {
  std::atomic<int64_t> count{-1}; ///< of instructions; below 0: no step
  std::vector<RankPosition> list;

  std::optional<uint64_t> progress() const override { return count < 0 ? std::nullopt : std::optional<uint64_t>(count); }
  bool waitsForDevice() const override { return false; }
  std::vector<RankPosition> positions() const override { return list; }
};

/// Two processes in this one.
struct WatchedPair {
  std::mutex mutex;
  std::string table;
  std::unique_ptr<Control> controls[2];
  WatchedRanks ranks[2];

  explicit WatchedPair(std::chrono::milliseconds timeout) {
    Expected<Socket> listener = listenOn("127.0.0.1", 0);
    JoinOptions options;
    options.place.endpoints = {{"127.0.0.1", portOf(*listener)}};
    std::vector<Socket> listeners;
    listeners.push_back(std::move(*listener));
    std::optional<Expected<Joined>> first, second;
    std::thread host([&] { first.emplace(receiveAll(options, listeners, introduce(0))); });
    second.emplace(comeTo(options, introduce(1)));
    host.join();
    ControlOptions control;
    control.stallTimeout = timeout;
    control.tell = [this](const std::string &text) {
      std::lock_guard<std::mutex> lock(mutex);
      table = text;
    };
    controls[0] = std::make_unique<Control>(0, std::move(**first), control);
    controls[1] = std::make_unique<Control>(1, std::move(**second), control);
    for (int i : {0, 1})
      controls[i]->watch(&ranks[i]);
  }
  static Introduction introduce(int64_t process) {
    Introduction one = introduceSelf(process, 2);
    one.firstRank = process * 2;
    one.ranks = 2;
    return one;
  }
  Status failureWithin(std::chrono::milliseconds time, int64_t process) {
    for (auto end = Clock::now() + time; Clock::now() < end && controls[process]->failure().ok();)
      std::this_thread::sleep_for(10ms);
    return controls[process]->failure();
  }
  std::string told() {
    std::lock_guard<std::mutex> lock(mutex);
    return table;
  }
};

} // namespace

TEST(StallClock, StandsStillForTheTimeout) {
  StallClock clock(30s);
  EXPECT_FALSE(clock.isStalled(firstTime, 1, false));
  EXPECT_FALSE(clock.isStalled(firstTime + 30s, 1, false));
  EXPECT_TRUE(clock.isStalled(firstTime + 31s, 1, false));
}

TEST(StallClock, ASlowStepMakesRoom) {
  StallClock clock(30s);
  EXPECT_FALSE(clock.isStalled(firstTime, 1, false));
  EXPECT_FALSE(clock.isStalled(firstTime + 20s, 2, false)); // a pause of 20 s
  EXPECT_FALSE(clock.isStalled(firstTime + 20s + 49s, 2, false));
  EXPECT_TRUE(clock.isStalled(firstTime + 20s + 51s, 2, false));
}

TEST(StallClock, TimeBetweenStepsDoesNotCount) {
  StallClock clock(30s);
  EXPECT_FALSE(clock.isStalled(firstTime, 1, false));
  EXPECT_FALSE(clock.isStalled(firstTime + 1s, std::nullopt, false));
  EXPECT_FALSE(clock.isStalled(firstTime + 1000s, std::nullopt, false)); // a save
  EXPECT_FALSE(clock.isStalled(firstTime + 1001s, 1, false));
  EXPECT_FALSE(clock.isStalled(firstTime + 1030s, 1, false));
  EXPECT_TRUE(clock.isStalled(firstTime + 1032s, 1, false)); // the save has made no room
}

TEST(StallClock, TheFirstStepOnADeviceHasMoreTime) {
  StallClock clock(30s);
  EXPECT_FALSE(clock.isStalled(firstTime, 1, true));
  EXPECT_FALSE(clock.isStalled(firstTime + 299s, 1, true));
  EXPECT_FALSE(clock.isStalled(firstTime + 300s, std::nullopt, false));
  EXPECT_FALSE(clock.isStalled(firstTime + 301s, 2, true));
  EXPECT_TRUE(clock.isStalled(firstTime + 332s, 2, true));
}

TEST(StallClock, ZeroIsForEver) {
  StallClock clock(0s);
  EXPECT_FALSE(clock.isStalled(firstTime, 1, false));
  EXPECT_FALSE(clock.isStalled(firstTime + 24h, 1, false));
}

TEST(Watch, NamesTheRankThatTheOthersWaitFor) {
  WatchedPair pair(500ms);
  pair.ranks[0].list = {{0, true, "step 3, a message from rank 2"}, {1, true, "step 3, all_reduce"}};
  pair.ranks[1].list = {{2, false, "step 3, the gemm of node 'n'"}, {3, true, "step 3, its part is done"}};
  pair.ranks[0].count = pair.ranks[1].count = 1;
  for (int i = 0; i < 15; ++i) { // one of them goes on
    std::this_thread::sleep_for(100ms);
    ++pair.ranks[1].count;
  }
  EXPECT_TRUE(pair.controls[0]->failure().ok()) << pair.controls[0]->failure().text();
  for (int64_t process : {0, 1}) {
    const Status error = pair.failureWithin(5s, process);
    ASSERT_FALSE(error.ok());
    EXPECT_THAT(error.message(), HasSubstr("the others have waited for "));
    EXPECT_THAT(error.message(), HasSubstr("rank 2 of process 1 (ranks 2 to 3, host "));
    EXPECT_THAT(error.message(), HasSubstr("is at step 3, the gemm of node 'n' (--stall-timeout=SECONDS"));
    EXPECT_EQ(error.message().find("rank 3 of"), std::string::npos);
  }
  for (const char *text : {"\n  0     0 ", "waits     step 3, a message from rank 2\n", "\n  2     1 ", "is at     step 3, the gemm of node 'n'\n", "\n  3     1 "})
    EXPECT_THAT(pair.told(), HasSubstr(text));
}

TEST(Watch, NobodyWaitsBetweenSteps) {
  WatchedPair pair(300ms);
  std::this_thread::sleep_for(1500ms);
  EXPECT_TRUE(pair.controls[0]->failure().ok());
  EXPECT_EQ(pair.told(), "");
}
