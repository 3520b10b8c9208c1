// Many posted collectives in flight between threads: their results in any order of waits, who does which share of the
// work, and what a failure leaves behind.
#include "runtime/backend/host/HostCommunicator.h"

#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <thread>

using namespace hpc;
using plan::CollectiveKind;

namespace {

/// Whose shares are worth sharing out: the source of an all-reduce has 80 KiB.
constexpr int64_t largeCount = 20480;

plan::Collective collectiveOf(int64_t count, CollectiveKind kind = CollectiveKind::AllReduce) {
  plan::Collective collective;
  collective.kind = kind;
  collective.axes = {"dp"};
  collective.count = count;
  collective.src = collective.dst = {0, 0};
  return collective;
}

plan::Plan planOf(int64_t ranks, const std::vector<plan::Collective> &collectives) {
  plan::Plan plan;
  plan.axes = {{"dp", ranks}};
  plan.stages.resize(1);
  plan::Program &program = plan.stages[0].programs.emplace_back();
  for (const plan::Collective &collective : collectives)
    program.instructions.push_back({collective, "node"});
  return plan;
}

/// One rank with all collectives of a plan prepared, each posted with the request of its number.
struct Rank {
  const plan::Plan &plan;
  host::HostCommunicator communicator;
  std::vector<int64_t> numbers;

  Rank(host::World &world, const plan::Plan &plan, int64_t rank)
      : plan(plan), communicator(world, {rank, 0, rank}, int64_t(plan.stages[0].programs[0].instructions.size())) {
    for (size_t i = 0; i < plan.stages[0].programs[0].instructions.size(); ++i)
      numbers.push_back(*communicator.prepare(at(i)));
  }
  const plan::Collective &at(size_t i) const {
    return std::get<plan::Collective>(plan.stages[0].programs[0].instructions[i].action);
  }
  Status post(size_t i, std::vector<float> &values, int64_t sourcePosition = 0) {
    auto *address = reinterpret_cast<std::byte *>(values.data());
    return communicator.post(at(i), numbers[i], address, address, sourcePosition, int64_t(i));
  }
  Status wait(size_t i) { return communicator.wait(int64_t(i)); }
};

/// Numbers whose sums depend on the order that they are added in.
float valueOf(int64_t rank, int64_t collective, int64_t i) {
  return float(rank == 0 ? 1e8 : 1) * float((i + collective) % 13 + 1) + float(rank) * 0.3f;
}

/// What a rank that brought valueOf finds in place.
float expected(CollectiveKind kind, int64_t ranks, int64_t rank, int64_t collective, int64_t count, int64_t i) {
  auto sum = [&](int64_t at) {
    float result = valueOf(0, collective, at);
    for (int64_t j = 1; j < ranks; ++j)
      result += valueOf(j, collective, at);
    return result;
  };
  switch (kind) {
  case CollectiveKind::AllReduce:
    return sum(i);
  case CollectiveKind::ReduceScatter:
    return sum(rank * count + i);
  case CollectiveKind::AllGather:
    return valueOf(i / count, collective, i % count);
  case CollectiveKind::AllToAll:
    return valueOf(i / count, collective, rank * count + i % count);
  case CollectiveKind::Permute:
    return valueOf((rank + 1) % ranks, collective, i);
  }
  return 0;
}

} // namespace

// Results that are late, lost or not in rank order would show: a dozen of all kinds and sizes are in flight at once, and
// every rank waits for them in an order of its own, at its own pace.
TEST(PostedCollective, ADozenInFlight) {
  constexpr CollectiveKind kinds[] = {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
                                      CollectiveKind::AllGather, CollectiveKind::AllToAll, CollectiveKind::Permute};
  std::vector<plan::Collective> collectives;
  for (int64_t count : {int64_t(0), int64_t(1), int64_t(33), largeCount, largeCount + 1})
    for (CollectiveKind kind : kinds)
      collectives.push_back(collectiveOf(count, kind));
  for (bool spin : {false, true})
    for (int64_t ranks = 1; ranks <= 5; ++ranks) {
      const plan::Plan plan = planOf(ranks, collectives);
      host::World world(plan, spin);
      auto work = [&](int64_t me) {
        Rank rank(world, plan, me);
        std::mt19937 random{uint32_t(me)};
        std::vector<size_t> order(collectives.size());
        std::iota(order.begin(), order.end(), size_t(0));
        for (int round = 0; round < 3; ++round) {
          std::vector<std::vector<float>> values(collectives.size());
          for (size_t c = 0; c < collectives.size(); ++c) {
            const int64_t count = collectives[c].count;
            values[c].resize(size_t(count * ranks));
            for (int64_t i = 0; i < count * ranks; ++i)
              values[c][size_t(i)] = valueOf(me, int64_t(c), i);
            if (random() % 4 == 0)
              std::this_thread::yield();
            ASSERT_TRUE(rank.post(c, values[c], (me + 1) % ranks).ok());
          }
          std::shuffle(order.begin(), order.end(), random);
          for (size_t c : order) {
            ASSERT_TRUE(rank.wait(c).ok());
            const plan::Collective &done = collectives[c];
            const int64_t results = host::targetBytes(done, ranks) / 4;
            for (int64_t i = 0; i < results; ++i)
              ASSERT_EQ(values[c][size_t(i)], expected(done.kind, ranks, me, int64_t(c), done.count, i))
                  << "kind " << int(done.kind) << " count " << done.count << " ranks " << ranks << " rank " << me;
          }
        }
      };
      std::vector<std::thread> threads;
      for (int64_t me = 0; me < ranks; ++me)
        threads.emplace_back(work, me);
      for (std::thread &thread : threads)
        thread.join();
    }
}

namespace {

/// Two ranks on one thread, so that who does what is no chance, and three large all-reduces.
struct TwoRanks {
  const plan::Plan plan = planOf(2, std::vector<plan::Collective>(3, collectiveOf(largeCount)));
  host::World world{plan, false};
  Rank first{world, plan, 0}, second{world, plan, 1};
  std::vector<std::vector<float>> ofFirst, ofSecond;

  TwoRanks() { fill(); }
  void fill() {
    ofFirst.assign(3, std::vector<float>(size_t(largeCount), 1));
    ofSecond.assign(3, std::vector<float>(size_t(largeCount), 2));
  }
  /// How many elements of a half, with both ranks, have become the sum.
  int64_t reduced(size_t i, int half) const {
    auto count = [&](const std::vector<float> &values) {
      return std::count(values.begin() + half * largeCount / 2, values.begin() + (half + 1) * largeCount / 2, 3.0f);
    };
    return count(ofFirst[i]) + count(ofSecond[i]);
  }
};

} // namespace

// One rank would do the work of all if the last to post did it at once: it does its own half, and the other does its own
// when it comes by with the next post.
TEST(PostedCollective, EachDoesItsOwnShare) {
  TwoRanks ranks;
  ASSERT_TRUE(ranks.first.post(0, ranks.ofFirst[0]).ok());
  ASSERT_TRUE(ranks.second.post(0, ranks.ofSecond[0]).ok());
  EXPECT_EQ(ranks.reduced(0, 0), 0);
  EXPECT_EQ(ranks.reduced(0, 1), largeCount);
  ASSERT_TRUE(ranks.second.post(1, ranks.ofSecond[1]).ok()); // whose own share is done
  EXPECT_EQ(ranks.reduced(0, 0), 0);
  ASSERT_TRUE(ranks.first.post(1, ranks.ofFirst[1]).ok());
  EXPECT_EQ(ranks.reduced(0, 0), largeCount);
  EXPECT_EQ(ranks.reduced(1, 0), largeCount);
  EXPECT_EQ(ranks.reduced(1, 1), 0);
  for (Rank *rank : {&ranks.first, &ranks.second})
    for (size_t i : {1, 0})
      ASSERT_TRUE(rank->wait(i).ok());
  EXPECT_EQ(ranks.reduced(1, 1), largeCount);
}

// A wait that left a share to a rank that computes, or here to nobody, would hang.
TEST(PostedCollective, AWaitDoesWhatIsLeft) {
  for (bool firstWaits : {false, true}) {
    TwoRanks ranks;
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(ranks.first.post(i, ranks.ofFirst[i]).ok());
      ASSERT_TRUE(ranks.second.post(i, ranks.ofSecond[i]).ok());
    }
    for (size_t i : {2, 0, 1}) {
      ASSERT_TRUE((firstWaits ? ranks.first : ranks.second).wait(i).ok());
      EXPECT_EQ(ranks.reduced(i, 0) + ranks.reduced(i, 1), 2 * largeCount);
    }
    for (size_t i : {0, 1, 2})
      ASSERT_TRUE((firstWaits ? ranks.second : ranks.first).wait(i).ok());
  }
}

// What a failed step has posted must not be worked on in the next, whose buffers hold other numbers: one that all had
// posted, and one that the second rank had not.
TEST(PostedCollective, AFailureForgetsWhatWasPosted) {
  TwoRanks ranks;
  ASSERT_TRUE(ranks.first.post(0, ranks.ofFirst[0]).ok());
  ASSERT_TRUE(ranks.second.post(0, ranks.ofSecond[0]).ok());
  ASSERT_TRUE(ranks.first.post(1, ranks.ofFirst[1]).ok());
  Status ended;
  std::thread waits([&] { ended = ranks.first.wait(1); });
  ranks.world.fail(Status::error(ErrorKind::Io, "the disk is gone"));
  waits.join();
  EXPECT_EQ(ended.message(), "the disk is gone");
  ranks.world.restart();

  ranks.fill();
  for (size_t i : {1, 2, 0}) {
    ASSERT_TRUE(ranks.second.post(i, ranks.ofSecond[i]).ok());
    EXPECT_EQ(ranks.reduced(i, 0) + ranks.reduced(i, 1), 0);
    ASSERT_TRUE(ranks.first.post(i, ranks.ofFirst[i]).ok());
  }
  for (size_t i : {0, 1, 2}) {
    ASSERT_TRUE(ranks.first.wait(i).ok());
    ASSERT_TRUE(ranks.second.wait(i).ok());
    EXPECT_EQ(ranks.reduced(i, 0) + ranks.reduced(i, 1), 2 * largeCount);
  }
}

// A session that says yes to a question has not failed: nothing of the world is made anew, and what is posted goes on.
TEST(PostedCollective, AnswersLeaveItInFlight) {
  TwoRanks ranks;
  int resets = 0;
  ranks.world.onReset([&] { ++resets; });
  ASSERT_TRUE(ranks.first.post(0, ranks.ofFirst[0]).ok());
  for (int said = 0; said < 4; ++said) {
    bool first = said & 1, second = said & 2;
    std::thread other([&] { EXPECT_TRUE(ranks.world.agree({1, 1}, Status::success(), &second).ok()); });
    EXPECT_TRUE(ranks.world.agree({0, 1}, Status::success(), &first).ok());
    other.join();
    EXPECT_EQ(first, said != 0);
    EXPECT_EQ(second, said != 0);
  }
  EXPECT_EQ(resets, 0);
  ASSERT_TRUE(ranks.second.post(0, ranks.ofSecond[0]).ok());
  ASSERT_TRUE(ranks.first.wait(0).ok());
  ASSERT_TRUE(ranks.second.wait(0).ok());
  EXPECT_EQ(ranks.reduced(0, 0) + ranks.reduced(0, 1), 2 * largeCount);
}
