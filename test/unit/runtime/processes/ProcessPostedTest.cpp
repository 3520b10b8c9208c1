// Many collectives posted at once across processes: their results in any order of waits, how much is under way at a
// time, who keeps them going, and what a failure leaves behind.
#include "runtime/backend/processes/ProcessCommunicator.h"
#include "test/unit/runtime/processes/Cluster.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace hpc;

namespace {

constexpr int64_t MiB = int64_t(1) << 20;

/// All-reduces of f32 in place over dp, each posted with a request of its own.
plan::Plan planOf(int64_t ranks, const std::vector<int64_t> &counts) {
  plan::Plan plan;
  plan.axes = {{"dp", ranks}};
  plan.stages.resize(1);
  plan.stages[0].programs.emplace_back();
  for (int64_t count : counts) {
    plan::Collective collective;
    collective.axes = {"dp"};
    collective.count = count;
    collective.src = collective.dst = {0, 0};
    collective.request = int32_t(plan.stages[0].requests.size());
    plan.stages[0].programs[0].instructions.push_back({collective, "node"});
    plan.stages[0].requests.push_back(1);
  }
  return plan;
}

/// One rank with all collectives of a plan prepared, and whole numbers to add: no order of adding has other bits.
struct Rank {
  const std::vector<plan::Instruction> &instructions;
  const int64_t ranks, me;
  processes::ProcessCommunicator communicator;
  std::vector<int64_t> numbers;
  std::vector<std::vector<float>> values;

  Rank(processes::ProcessWorld &world, const plan::Plan &plan, int64_t me)
      : instructions(plan.stages[0].programs[0].instructions), ranks(plan.worldSize()), me(me),
        communicator(world, {me, 0, me}, int64_t(instructions.size())), values(instructions.size()) {
    for (size_t i = 0; i < instructions.size(); ++i)
      numbers.push_back(*communicator.prepare(at(i)));
  }
  size_t count() const { return instructions.size(); }
  const plan::Collective &at(size_t i) const { return std::get<plan::Collective>(instructions[i].action); }
  Status post(size_t i) {
    values[i].resize(size_t(at(i).count));
    for (size_t element = 0; element < values[i].size(); ++element)
      values[i][element] = float(me * 1000 + int64_t(i * 7 + element) % 101);
    auto *address = reinterpret_cast<std::byte *>(values[i].data());
    return communicator.post(at(i), numbers[i], address, address, 0, int64_t(i));
  }
  Status wait(size_t i) { return communicator.wait(int64_t(i)); }
  void expectSum(size_t i) const {
    int64_t wrong = 0;
    for (size_t element = 0; element < values[i].size(); ++element) {
      const int64_t own = int64_t(i * 7 + element) % 101;
      wrong += values[i][element] != float(1000 * (ranks * (ranks - 1) / 2) + ranks * own);
    }
    ASSERT_EQ(wrong, 0) << "rank " << me << ", collective " << i;
  }
};

/// work(process, world of the process) in all processes.
template <typename F> void onWorlds(Cluster &cluster, const plan::Plan &plan, bool inRankOrder, F work) {
  const int64_t each = plan.worldSize() / int64_t(cluster.processes.size());
  cluster.onAll([&](int64_t p) {
    processes::ProcessWorld world(plan, cluster.processes[size_t(p)], each, 1, inRankOrder);
    work(p, world);
  });
}

} // namespace

// Messages of one group are told apart by their order alone: a collective that began too early, or in another place of
// the group's memory than it ended, has wrong numbers. Sizes of one round and of two, and more than may be under way.
TEST(ProcessPosted, AllReducesInFlight) {
  for (int64_t ranks = 2; ranks <= 5; ++ranks)
    for (int64_t count = 2; count <= ranks; ++count)
      for (bool inRankOrder : {false, true}) {
        if (ranks % count != 0 || (inRankOrder && ranks == count)) // with one rank a process it is so anyway
          continue;
        std::vector<int64_t> counts;
        for (int64_t size : {0, 1, 33, 5003})
          counts.insert(counts.end(), 4, size);
        if (count == 2)
          for (int64_t odd = 0; odd < 6; ++odd)
            counts.insert(counts.end(), {3 * MiB / 2 + odd, odd});
        const plan::Plan plan = planOf(ranks, counts);
        Cluster cluster(count, ranks / count, unsigned(ranks));
        onWorlds(cluster, plan, inRankOrder, [&](int64_t p, processes::ProcessWorld &world) {
          std::vector<std::thread> threads;
          for (int64_t me = p * ranks / count; me < (p + 1) * ranks / count; ++me)
            threads.emplace_back([&, me] {
              Rank rank(world, plan, me);
              std::mt19937 random{unsigned(me)};
              std::vector<size_t> order(rank.count());
              std::iota(order.begin(), order.end(), size_t(0));
              for (int round = 0; round < 2; ++round) {
                for (size_t i = 0; i < rank.count(); ++i)
                  ASSERT_TRUE(rank.post(i).ok());
                std::shuffle(order.begin(), order.end(), random);
                for (size_t i : order) {
                  ASSERT_TRUE(rank.wait(i).ok());
                  rank.expectSum(i);
                }
              }
            });
          for (std::thread &thread : threads)
            thread.join();
          EXPECT_TRUE(world.agree(Status::success()).ok());
        });
        EXPECT_FALSE(cluster.network.sizesDiffer);
      }
}

// What a process holds for posted collectives, or sends to one that is far behind, would grow with their number: 20 of
// 4 MiB make messages of 2 MiB, and 32 MiB of them may be under way.
TEST(ProcessPosted, WhatIsUnderWayIsBounded) {
  const plan::Plan plan = planOf(2, std::vector<int64_t>(20, MiB));
  Cluster cluster(2, 1);
  std::atomic<bool> firstHasPosted{false};
  onWorlds(cluster, plan, false, [&](int64_t p, processes::ProcessWorld &world) {
    Rank rank(world, plan, p);
    EXPECT_EQ(rank.communicator.scratchBytes(), 2 * 32 * MiB);
    for (size_t i = 0; i < rank.count(); ++i) {
      while (p == 1 && !firstHasPosted)
        std::this_thread::yield();
      ASSERT_TRUE(rank.post(i).ok());
    }
    firstHasPosted = true;
    for (size_t i = 0; i < rank.count(); ++i) {
      ASSERT_TRUE(rank.wait(i).ok());
      rank.expectSum(i);
    }
    EXPECT_TRUE(world.agree(Status::success()).ok());
  });
  EXPECT_EQ(cluster.network.mostUnderWay, 32 * MiB);
}

// Memory would be counted, and kept, that nothing uses: collectives without a request are one at a time, and few posted
// ones take no more than they are.
TEST(ProcessPosted, FewTakeLittle) {
  for (int32_t request : {-1, 0}) {
    plan::Plan plan = planOf(2, {MiB, MiB, 2 * MiB});
    for (plan::Instruction &instruction : plan.stages[0].programs[0].instructions)
      std::get<plan::Collective>(instruction.action).request = request;
    Cluster cluster(2, 1);
    onWorlds(cluster, plan, false, [&](int64_t p, processes::ProcessWorld &world) {
      Rank rank(world, plan, p);
      EXPECT_EQ(rank.communicator.scratchBytes(), 2 * (request < 0 ? 4 * MiB : 8 * MiB));
      EXPECT_TRUE(world.agree(Status::success()).ok());
    });
  }
}

// A rank that computes would hold up all others until it waits: between two instructions it goes on with what is posted.
TEST(ProcessPosted, InstructionsKeepThemGoing) {
  const plan::Plan plan = planOf(2, {MiB, MiB});
  Cluster cluster(2, 1);
  std::atomic<bool> firstIsDone{false};
  onWorlds(cluster, plan, false, [&](int64_t p, processes::ProcessWorld &world) {
    Rank rank(world, plan, p);
    for (size_t i = 0; i < rank.count(); ++i)
      ASSERT_TRUE(rank.post(i).ok());
    while (p == 1 && !firstIsDone) // no wait, which would never be reached
      rank.communicator.progress();
    for (size_t i = 0; i < rank.count(); ++i)
      ASSERT_TRUE(rank.wait(i).ok());
    firstIsDone = true;
    EXPECT_TRUE(world.agree(Status::success()).ok());
  });
}

// The next step would find its place taken, or get what a failed one sent: one rank fails when it has posted three of
// five.
TEST(ProcessPosted, AFailureForgetsWhatWasPosted) {
  const plan::Plan plan = planOf(2, {6 * MiB, 5003, 6 * MiB, 6 * MiB, 1});
  Cluster cluster(2, 1);
  onWorlds(cluster, plan, false, [&](int64_t p, processes::ProcessWorld &world) {
    Rank rank(world, plan, p);
    Status status;
    for (size_t i = 0; i < rank.count() && status.ok(); ++i)
      status = p == 1 && i == 3 ? Status::error(ErrorKind::Io, "the disk is gone") : rank.post(i);
    for (size_t i = 0; i < rank.count() && status.ok(); ++i)
      status = rank.wait(i);
    EXPECT_THAT(status.message(), testing::HasSubstr("the disk is gone"));
    world.fail(status);
    EXPECT_THAT(world.agree(status).message(), testing::HasSubstr("the disk is gone"));

    for (size_t i = 0; i < rank.count(); ++i)
      ASSERT_TRUE(rank.post(i).ok());
    for (size_t i = rank.count(); i-- > 0;) {
      ASSERT_TRUE(rank.wait(i).ok());
      rank.expectSum(i);
    }
    EXPECT_TRUE(world.agree(Status::success()).ok());
  });
}

// The loop asks all processes whether the step that rank 0 alone has seen the norm of was skipped. An answer is no error:
// what is posted goes on. Rounds follow each other at once, so that an answer could get into the next one.
TEST(ProcessPosted, AnswersAreOfAllAndOfOneRound) {
  const plan::Plan plan = planOf(3, {5003});
  Cluster cluster(3, 1);
  onWorlds(cluster, plan, false, [&](int64_t p, processes::ProcessWorld &world) {
    Rank rank(world, plan, p);
    ASSERT_TRUE(rank.post(0).ok());
    for (int64_t round = 0; round < 200; ++round) {
      const int64_t said = round * 5 % 8; // a bit a process
      bool answer = said >> p & 1;
      ASSERT_TRUE(world.agree(Status::success(), &answer).ok());
      ASSERT_EQ(answer, said != 0) << "process " << p << ", round " << round;
    }
    ASSERT_TRUE(rank.wait(0).ok());
    rank.expectSum(0);
    bool answer = true;
    EXPECT_THAT(world.agree(p == 1 ? Status::error(ErrorKind::Io, "the disk is gone") : Status::success(), &answer).message(),
                testing::HasSubstr("the disk is gone"));
    answer = false;
    EXPECT_TRUE(world.agree(Status::success(), &answer).ok());
    EXPECT_FALSE(answer) << "process " << p;
  });
}
