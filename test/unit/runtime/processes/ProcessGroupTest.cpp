// Every collective across processes against the same collective of threads: all splits of a world into processes, both
// orders of reduction, groups whose members alternate between processes, in place and not, at once and posted.
#include "runtime/backend/processes/ProcessCommunicator.h"
#include "runtime/plan/Groups.h"
#include "test/unit/runtime/processes/Cluster.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using plan::CollectiveKind;
using testing::HasSubstr;

namespace {

using Bytes = std::vector<std::byte>;

/// A one-stage plan with one collective that is done several times.
struct Case {
  std::vector<plan::Axis> axes;
  plan::Collective collective;
  bool inPlace = false, posted = false, inRankOrder = false;
  static constexpr int times = 3;

  plan::Plan plan() const {
    plan::Plan plan;
    plan.axes = axes;
    plan.stages.resize(1);
    plan.stages[0].programs = {{plan::ProgramKind::Forward, 0, {{collective, "node"}}}};
    return plan;
  }
  int64_t members(const plan::Plan &plan) const { return plan::seatOf(plan.axes, 0, collective.axes).size; }
  int64_t sourceBytes(const plan::Plan &plan) const { return host::sourceBytes(collective, members(plan)); }
  int64_t targetBytes(const plan::Plan &plan) const { return host::targetBytes(collective, members(plan)); }
};

/// Small whole numbers in the type, other ones each time.
Bytes source(const Case &test, const plan::Plan &plan, int64_t rank, int time) {
  const int64_t elementSize = byteSize(test.collective.dtype);
  Bytes bytes(size_t(test.sourceBytes(plan)));
  for (int64_t i = 0; i * elementSize < int64_t(bytes.size()); ++i) {
    const int64_t value = (i * 7 + rank * 13 + time * 5) % 23 - 11;
    std::byte *at = bytes.data() + i * elementSize;
    if (test.collective.dtype == DType::F32) {
      // Thirds: a sum in another order has other bits.
      float element = float(value) / 3.0f * (rank % 3 == 1 ? 1e4f : 1.0f);
      std::memcpy(at, &element, 4);
    } else if (test.collective.dtype == DType::BF16) {
      float element = float(value);
      std::memcpy(at, reinterpret_cast<std::byte *>(&element) + 2, 2);
    } else {
      int64_t element = value + 11;
      std::memcpy(at, &element, size_t(elementSize));
    }
  }
  return bytes;
}

/// What a rank gets each time.
std::vector<Bytes> runRank(const Case &test, const plan::Plan &plan, int64_t rank, Communicator &communicator,
                           Status &status) {
  std::vector<Bytes> results;
  const plan::Collective &collective = std::get<plan::Collective>(plan.stages[0].programs[0].instructions[0].action);
  Expected<int64_t> group = communicator.prepare(collective);
  status = group.status();
  std::vector<Bytes> sources, targets;
  for (int time = 0; time < Case::times; ++time) {
    sources.push_back(source(test, plan, rank, time));
    targets.push_back(test.inPlace ? sources.back() : Bytes());
    targets.back().resize(std::max(targets.back().size(), size_t(test.targetBytes(plan))));
  }
  const int64_t position = collective.source.at(rank, 0, plan.ranksPerStage());
  for (size_t time = 0; time < size_t(Case::times) && status.ok(); ++time) {
    const std::byte *from = test.inPlace ? targets[time].data() : sources[time].data();
    status = test.posted ? communicator.post(collective, *group, from, targets[time].data(), position, int64_t(time))
                         : communicator.collective(collective, *group, from, targets[time].data(), position);
  }
  for (int64_t request = Case::times; request-- > 0 && test.posted && status.ok();)
    status = communicator.wait(request);
  for (Bytes &target : targets) {
    target.resize(size_t(test.targetBytes(plan)));
    results.push_back(std::move(target));
  }
  return results;
}

using Results = std::vector<std::vector<Bytes>>; ///< [rank][time]

Results byThreads(const Case &test) {
  plan::Plan plan = test.plan();
  host::World world(plan, false);
  Results results(size_t(plan.worldSize()));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < plan.worldSize(); ++rank)
    threads.emplace_back([&, rank] {
      host::HostCommunicator communicator(world, {rank, 0, rank}, Case::times);
      Status status;
      results[size_t(rank)] = runRank(test, plan, rank, communicator, status);
      EXPECT_TRUE(status.ok()) << status.text();
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

Results byProcesses(const Case &test, Cluster &cluster) {
  plan::Plan plan = test.plan();
  Results results(size_t(plan.worldSize()));
  const int64_t each = plan.worldSize() / int64_t(cluster.processes.size());
  cluster.onAll([&](int64_t p) {
    plan::Plan own = plan;
    processes::ProcessWorld world(own, cluster.processes[size_t(p)], each, 1, test.inRankOrder);
    std::vector<std::thread> threads;
    for (int64_t rank = p * each; rank < (p + 1) * each; ++rank)
      threads.emplace_back([&, rank] {
        processes::ProcessCommunicator communicator(world, {rank, 0, rank}, Case::times);
        Status status;
        results[size_t(rank)] = runRank(test, own, rank, communicator, status);
        EXPECT_TRUE(status.ok()) << status.text();
        if (!status.ok())
          world.fail(status);
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_TRUE(world.agree(Status::success()).ok());
  });
  EXPECT_FALSE(cluster.network.sizesDiffer);
  return results;
}

void expectSame(const Case &test, const Results &actual, const Results &wanted, const std::string &what) {
  const bool exact = test.collective.dtype != DType::F32 || test.inRankOrder || !host::reduces(test.collective.kind);
  for (size_t rank = 0; rank < wanted.size(); ++rank)
    for (size_t time = 0; time < wanted[rank].size(); ++time) {
      const Bytes &got = actual[rank][time], &want = wanted[rank][time];
      ASSERT_EQ(got.size(), want.size()) << what;
      if (exact || test.collective.reduce != ReduceKind::Sum) {
        ASSERT_EQ(got, want) << what << ", rank " << rank << ", time " << time;
        continue;
      }
      for (size_t i = 0; i < got.size(); i += 4) {
        float left, right;
        std::memcpy(&left, got.data() + i, 4);
        std::memcpy(&right, want.data() + i, 4);
        ASSERT_NEAR(left, right, 8 * 2e5f * 0x1p-23f) << what << ", rank " << rank << ", element " << i / 4;
      }
    }
}

/// All kinds and splits of one mesh.
void checkMesh(std::vector<plan::Axis> axes, const std::vector<std::vector<std::string>> &groups,
               const std::vector<int64_t> &counts) {
  int64_t worldSize = 1;
  for (const plan::Axis &axis : axes)
    worldSize *= axis.size;
  for (int64_t processes = 2; processes <= worldSize; ++processes) {
    if (worldSize % processes != 0)
      continue;
    Cluster cluster(processes, worldSize / processes, unsigned(processes));
    for (const std::vector<std::string> &over : groups)
      for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                  CollectiveKind::AllToAll, CollectiveKind::Permute})
        for (DType dtype : {DType::F32, DType::BF16, DType::I64})
          for (int64_t count : counts)
            for (int variant = 0; variant < 8; ++variant) {
              if (dtype != DType::F32 && variant % 7 != 0)
                continue; // the other variants move bytes alike
              Case test;
              test.axes = axes;
              test.inPlace = variant & 1;
              test.posted = variant & 2;
              test.inRankOrder = variant & 4;
              test.collective.kind = kind;
              test.collective.axes = over;
              test.collective.dtype = dtype;
              test.collective.count = count;
              test.collective.src = {0, 0};
              test.collective.dst = {test.inPlace ? 0 : 1, 0};
              const int64_t size = plan::seatOf(axes, 0, over).size;
              test.collective.source.values.clear();
              for (int64_t c = 0; c < worldSize; ++c)
                test.collective.source.values.push_back((plan::seatOf(axes, c, over).position + 1) % size);
              std::string what = "kind " + std::to_string(int(kind)) + " of " + name(dtype) + ", " +
                                 std::to_string(count) + " elements, " + std::to_string(processes) +
                                 " processes, variant " + std::to_string(variant) + ", first axis " + over[0];
              expectSame(test, byProcesses(test, cluster), byThreads(test), what);
              if (testing::Test::HasFatalFailure())
                return;
            }
  }
}

} // namespace

// A message to the wrong place, a part of the wrong size or a sum in the wrong order differs from what threads get.
TEST(ProcessGroup, EqualsThreadsInOneAxis) { checkMesh({{"tp", 4}}, {{"tp"}}, {0, 33, 5003}); }

// Groups over the slow axis alternate between processes, so positions here and elsewhere interleave; both orders.
TEST(ProcessGroup, EqualsThreadsInAMesh) { checkMesh({{"dp", 2}, {"tp", 3}}, {{"dp"}, {"tp"}, {"tp", "dp"}}, {4501}); }

// A permute whose source changes with the micro-batch: here nobody knows which one it is, and each takes its own.
TEST(ProcessGroup, APermuteByMicroBatch) {
  for (int64_t shift : {0, 1, 2, 3}) {
    Cluster cluster(2, 2);
    Case test;
    test.axes = {{"tp", 4}};
    test.collective.kind = CollectiveKind::Permute;
    test.collective.axes = {"tp"};
    test.collective.count = 9;
    test.collective.src = {0, 0};
    test.collective.dst = {1, 0};
    test.collective.source.values.clear();
    for (int64_t microBatch = 0; microBatch < 2; ++microBatch)
      for (int64_t c = 0; c < 4; ++c)
        test.collective.source.values.push_back((c + (microBatch ? 3 : shift)) % 4);
    expectSame(test, byProcesses(test, cluster), byThreads(test), "shift " + std::to_string(shift));
  }
}

// An engine with few tags is a clear error, not messages that match wrongly.
TEST(ProcessGroup, TooFewTagsAreRefused) {
  Cluster cluster(2, 8);
  Case test;
  test.axes = {{"tp", 16}};
  test.collective.axes = {"tp"};
  plan::Plan plan = test.plan();
  for (int64_t sender = 0; sender < 1; ++sender)
    for (int32_t channel = 0; channel < 40000; ++channel)
      plan.stages[0].programs[0].instructions.push_back({plan::Send{{0, 0}, 4, int64_t(15), channel, 0, {}}, "node"});
  processes::ProcessWorld world(plan, cluster.processes[0], 8, 1, false);
  EXPECT_THAT(world.check().text(), HasSubstr("error[unsupported]: the plan has "));
  EXPECT_THAT(world.check().text(), HasSubstr("the engine tells 32767 apart"));
}
