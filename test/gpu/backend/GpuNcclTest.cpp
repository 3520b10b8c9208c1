// Sessions whose ranks have a card each and talk by NCCL: results, errors of one rank, every call made to fail; and the
// stand-in's NCCL itself, which must catch what it is there to catch. Several processes: test/processes.
#include "runtime/backend/cuda/NcclWorld.h"
#include "runtime/plan/PlanCheck.h"
#include "test/gpu/backend/GpuFixture.h"

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

using namespace hpc;
using testing::HasSubstr;

namespace {

standin::Settings fourCards(uint64_t seed = 1) {
  standin::Settings settings;
  settings.devices = 4;
  settings.seed = seed;
  return settings;
}

/// Two ranks of one communicator on a card each, driven by hand as threads of two processes would be.
struct Pair {
  cuda::Driver driver = *cuda::loadDriver(HPC_STANDIN_FOLDER);
  cuda::Nccl nccl = *cuda::loadNccl(HPC_STANDIN_FOLDER);
  std::unique_ptr<cuda::Gpu> gpus[2];
  cuda::Stream streams[2];
  cuda::DeviceMemory memory[2];
  cuda::NcclHandle handles[2] = {};

  Pair() {
    cuda::NcclId id;
    EXPECT_EQ(nccl.getUniqueId(&id), 0);
    for (int rank : {0, 1}) {
      gpus[rank] = std::move(*cuda::Gpu::open(driver, rank));
      streams[rank] = std::move(*gpus[rank]->makeStream());
      memory[rank] = std::move(*gpus[rank]->allocate(1024));
      cuda::NcclConfig config;
      EXPECT_EQ(nccl.init(&handles[rank], 2, id, rank, &config), cuda::ncclInProgress);
    }
    for (int rank : {0, 1})
      EXPECT_EQ(settled(rank), cuda::ncclSuccess);
  }
  ~Pair() {
    for (int rank : {0, 1}) {
      if (handles[rank])
        nccl.abort(handles[rank]);
      enter(rank);
      driver.synchronizeContext();
    }
  }
  void enter(int rank) { EXPECT_TRUE(gpus[rank]->enter().ok()); }
  void *at(int rank, int64_t offset = 0) {
    return reinterpret_cast<void *>(uintptr_t(memory[rank].get()) + uintptr_t(offset));
  }
  cuda::NcclResult settled(int rank) {
    cuda::NcclResult state = cuda::ncclInProgress;
    while (state == cuda::ncclInProgress)
      EXPECT_EQ(nccl.asyncError(handles[rank], &state), 0);
    return state;
  }
  void send(int rank, size_t bytes, int64_t offset = 0) {
    enter(rank);
    nccl.send(at(rank, offset), bytes, cuda::ncclI8, 1 - rank, handles[rank], streams[rank].get());
    settled(rank);
  }
  void receive(int rank, size_t bytes, int64_t offset = 0) {
    enter(rank);
    nccl.receive(at(rank, offset), bytes, cuda::ncclI8, 1 - rank, handles[rank], streams[rank].get());
    settled(rank);
  }
  /// Until both streams are through, which those of a mistake are when it has been noticed.
  void synchronize() {
    for (int rank : {0, 1})
      EXPECT_EQ(driver.synchronizeStream(streams[rank].get()), 0);
  }
};

/// The ones that differ in what they say.
void expectMisuse(const std::string &text) {
  EXPECT_THAT(standin::misuses(), testing::Contains(HasSubstr(text)));
  standin::configure({});
}

} // namespace

// With a card for each rank the ranks talk by NCCL, whatever the timing.
TEST_F(Gpu, CardsOfTheirOwnComputeTheSame) {
  for (uint64_t seed = 0; seed < 8; ++seed)
    for (bool posted : {false, true}) {
      standin::configure(fourCards(seed));
      GpuPlan run;
      if (posted)
        run.postTheAllReduce();
      run.options.poison = seed % 2;
      cuda::CudaOptions options = onStandIn(1);
      options.inRankOrder = seed % 4 == 3;
      {
        Expected<std::unique_ptr<Session>> session = run.create(options);
        ASSERT_TRUE(session.ok()) << session.status().text();
        for (int64_t input : {0, 3, 8})
          run.expectRight(**session, input);
      }
      expectClean("seed " + std::to_string(seed));
    }
}

// A rank that gives up leaves others in the middle of what they send it: all end with its error, and the next step is
// right again, with new communicators.
TEST_F(Gpu, AnErrorOfOneRankEndsAllThatTalkByNccl) {
  for (int64_t rank : {0, 1, 2, 3})
    for (int64_t instruction : {0, 2, 3}) {
      standin::configure(fourCards());
      GpuPlan run;
      std::atomic<bool> broken{false};
      run.options.observer = [&](const ObservedInstruction &at) {
        bool here = at.place.rank == rank && at.instruction == instruction && at.microBatch == 1;
        return here && broken ? Status::error(ErrorKind::Io, "the disk is gone") : Status::success();
      };
      Expected<std::unique_ptr<Session>> session = run.create(onStandIn(1));
      ASSERT_TRUE(session.ok()) << session.status().text();
      for (int64_t round : {1, 2}) {
        broken = true;
        Expected<std::vector<Array>> outputs = (*session)->run({GpuPlan::input(0)});
        ASSERT_FALSE(outputs.ok());
        EXPECT_THAT(outputs.status().text(), HasSubstr("error[io]: rank " + std::to_string(rank) + " (stage "));
        broken = false;
        run.expectRight(**session, 2 * round);
      }
    }
}

// Whatever call fails, in whichever rank: one clear error, no rank that waits for one that has gone, nothing left.
TEST_F(Gpu, EveryCallFailsOnceByNccl) {
  int64_t failing = 0;
  for (;; ++failing) {
    standin::Settings settings = fourCards();
    settings.longestDelay = 0;
    settings.failingCall = failing;
    standin::configure(settings);
    GpuPlan run;
    run.postTheAllReduce();
    Status status;
    {
      Expected<std::unique_ptr<Session>> session = run.create(onStandIn(1));
      status = session.status();
      if (status.ok()) {
        Expected<std::vector<Array>> outputs = (*session)->run({GpuPlan::input(3)});
        status = outputs.status();
        if (status.ok())
          run.expectRight(*outputs, 3);
        // Whatever comes next goes well, or ends with that step's error, not with what its absent communicators cause.
        Expected<std::vector<Array>> again = (*session)->run({GpuPlan::input(4)});
        if (again.ok())
          run.expectRight(*again, 4);
        else if (!status.ok())
          EXPECT_NE(again.status().kind(), ErrorKind::Internal) << again.status().text();
        else
          status = again.status(); // the call was one of this step's
      }
    }
    if (standin::failedCall().empty()) // more calls than this run makes
      break;
    const std::string call = standin::failedCall() + ", call " + std::to_string(failing);
    EXPECT_FALSE(status.ok()) << call;
    expectClean(call);
  }
  EXPECT_GT(failing, 300);
}

// Ranks of different plans would make communicators of different sizes, or call different things.
TEST_F(Gpu, CallsThatDoNotMatchAreFound) {
  standin::configure(fourCards());
  {
    Pair pair;
    pair.send(0, 64);
    pair.receive(1, 32);
    while (standin::misuses().empty())
      std::this_thread::yield();
  }
  expectMisuse("ranks of a communicator do different things");
  standin::configure(fourCards());
  {
    Pair pair;
    for (int rank : {0, 1}) {
      pair.enter(rank);
      pair.nccl.allReduce(pair.at(rank), pair.at(rank), 8, rank == 0 ? cuda::ncclF32 : cuda::ncclI32, cuda::ncclSum,
                          pair.handles[rank], pair.streams[rank].get());
    }
    for (int rank : {0, 1})
      pair.settled(rank);
    while (standin::misuses().empty())
      std::this_thread::yield();
  }
  expectMisuse("ranks of a communicator do different things");
}

// Each sends before it receives: on a card both wait for ever, unless the two are one group.
TEST_F(Gpu, AMissingGroupIsFound) {
  ::setenv("HPC_STANDIN_PATIENCE", "0.2", 1);
  for (bool isGroup : {true, false}) {
    standin::configure(fourCards());
    {
      Pair pair;
      for (int rank : {0, 1}) {
        pair.enter(rank);
        if (isGroup)
          EXPECT_EQ(pair.nccl.groupStart(), 0);
        pair.send(rank, 64);
        pair.receive(rank, 64, 64);
        if (isGroup)
          pair.nccl.groupEnd();
        pair.settled(rank);
      }
      pair.synchronize();
    }
    if (isGroup)
      expectClean("in a group");
    else
      expectMisuse("its counterpart does not come");
  }
  ::unsetenv("HPC_STANDIN_PATIENCE");
}

// What is called before the call before has come into effect, or after the communicator was given up.
TEST_F(Gpu, CommunicatorsOutOfTurnAreFound) {
  bool found = false;
  for (uint64_t seed = 0; seed < 20 && !found; ++seed) {
    standin::configure(fourCards(seed));
    Pair pair;
    pair.enter(0);
    for (int i = 0; i < 2; ++i)
      pair.nccl.send(pair.at(0), 8, cuda::ncclI8, 1, pair.handles[0], pair.streams[0].get());
    found = !standin::misuses().empty();
  }
  EXPECT_TRUE(found);
  expectMisuse("while the call before is in progress");
  standin::configure(fourCards());
  {
    Pair pair;
    EXPECT_EQ(pair.nccl.abort(pair.handles[0]), 0);
    pair.enter(0);
    EXPECT_NE(pair.nccl.send(pair.at(0), 8, cuda::ncclI8, 1, pair.handles[0], pair.streams[0].get()), 0);
    pair.handles[0] = nullptr;
  }
  expectMisuse("a communicator is used that was given up");
}

// Two channels between two ranks share a communicator where both ends post them in one order, and only there: NCCL
// would give one the other's bytes.
TEST_F(Gpu, ChannelsShareACommunicatorWhereTheirOrderIsOne) {
  auto communicators = [](bool isSwapped) {
    plan::Plan plan;
    plan.axes = {{"tp", 1}};
    plan.stages.resize(2);
    plan::Send send;
    plan::Recv receive;
    send.peer = 1;
    receive.peer = 0;
    for (int32_t channel : {3, 5}) {
      send.channel = channel;
      receive.channel = isSwapped ? 8 - channel : channel;
      plan.stages[0].programs.resize(1);
      plan.stages[1].programs.resize(1);
      plan.stages[0].programs[0].instructions.push_back({send, ""});
      plan.stages[1].programs[0].instructions.push_back({receive, ""});
    }
    plan.stages[0].schedule = plan.stages[1].schedule = {{0, 0}};
    cuda::Nccl nccl;
    cuda::PeerWorld peers(plan);
    struct Nobody : ControlPlane {
      int64_t indexOnMachine() const override { return 0; }
      void fail(const Status &) override {}
      Status failure() const override { return Status::success(); }
      Status lost() const override { return Status::success(); }
      Expected<std::vector<std::string>> exchange(const std::string &mine) override {
        return std::vector<std::string>{mine};
      }
      Status explain(const Status &error) const override { return error; }
      Status agree(const Status &mine, bool *) override { return mine; }
    } plane;
    cuda::NcclWorld world(nccl, plan, peers.world(), {0, 2}, plane);
    EXPECT_GE(world.messages(0, 1, 3), 0);
    EXPECT_EQ(world.messages(1, 0, 3), -1);
    EXPECT_EQ(world.messages(0, 1, 3) == world.messages(0, 1, 5), !isSwapped);
    return world.size();
  };
  EXPECT_EQ(communicators(false), 1u);
  EXPECT_EQ(communicators(true), 2u);
}

// A container's small /dev/shm is the usual reason of an error that NCCL has no other word for.
TEST(GpuNccl, SystemErrorsNameSharedMemory) {
  cuda::Nccl nccl = *cuda::loadNccl(HPC_STANDIN_FOLDER);
  EXPECT_THAT(cuda::check(nccl, cuda::ncclSystemError, "joining").text(), HasSubstr("; /dev/shm has "));
  EXPECT_THAT(cuda::check(nccl, cuda::ncclRemoteError, "joining").text(), testing::Not(HasSubstr("/dev/shm")));
}
