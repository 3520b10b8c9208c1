// What may wait in an engine's memory before it is asked for: no more than senders hold, which is what is counted.
#include "runtime/backend/processes/EarlyMessages.h"
#include "runtime/backend/processes/ProcessCommunicator.h"
#include "test/unit/runtime/core/TinyPlan.h"
#include "test/unit/runtime/processes/Cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HPC_IS_SANITIZED
#endif
#endif

/// Two engines of UCX that know each other.
struct Engines {
  std::unique_ptr<processes::Transport> one, other;

  Status open() {
    for (std::unique_ptr<processes::Transport> *each : {&one, &other}) {
      Expected<std::unique_ptr<processes::Transport>> opened = processes::openTransport("ucx");
      if (!opened.ok())
        return opened.status();
      *each = std::move(*opened);
    }
    const std::vector<processes::Peer> peers = {{one->address(), true}, {other->address(), true}};
    HPC_RETURN_IF_ERROR(one->connect(0, peers));
    return other->connect(1, peers);
  }
  void progress(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      one->progress();
      other->progress();
    }
  }
};

} // namespace

// A request has two slots here, so a rank of stage 0 can have two messages of 40 bytes under way; what stage 1 stores of
// the output goes to rank 0 in boxes of 32 bytes, one from each rank at a time. What one process holds is not sent.
TEST(EarlyMessages, AreAtMostWhatSendersHold) {
  TinyPlan tiny;
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {0, 4}), IsEmpty());
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {0, 2}), ElementsAre(Pair(0, 64)));
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {2, 2}), ElementsAre(Pair(2, 80), Pair(3, 80)));
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {0, 1}), ElementsAre(Pair(0, 64)));
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {1, 1}), IsEmpty());
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {3, 1}), ElementsAre(Pair(3, 80)));
}

// A table by micro-batch names several receivers of one instruction; of two sends that take turns with one request the
// larger counts; what is saved goes to rank 0 as outputs do.
TEST(EarlyMessages, FollowTablesAndRequests) {
  TinyPlan tiny;
  std::vector<plan::Instruction> &forward = tiny.plan.stages[0].programs[0].instructions;
  auto &send = std::get<plan::Send>(forward.back().action);
  send.peer.values = {2, 3, 3, -1}; // [microBatch][coordinate]
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {2, 2}), ElementsAre(Pair(2, 80), Pair(3, 160)));
  plan::Instruction larger = forward.back();
  std::get<plan::Send>(larger.action).bytes = 48;
  forward.push_back(larger);
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {2, 2}), ElementsAre(Pair(2, 96), Pair(3, 192)));
  tiny.plan.stages[1].bindings[0].saved = "W3"; // [5,4] on each rank
  EXPECT_THAT(processes::earlyMessageBytes(tiny.plan, {0, 2}), ElementsAre(Pair(0, 160)));
}

// If a send were done before somebody receives it, a stage could run ahead of the next by a whole step, and all that it
// sends would pile up there.
TEST(EarlyMessages, ASendWaitsForItsReceive) {
  TinyPlan tiny;
  Cluster cluster(2, 2);
  processes::ProcessWorld world(tiny.plan, cluster.processes[0], 2, 1, true);
  processes::ProcessCommunicator rank(world, {0, 0, 0}, 1);
  const std::vector<std::byte> data(40);
  ASSERT_TRUE(rank.send(2, 0, data.data(), 40, 0).ok());
  world.fail(Status::error(ErrorKind::Io, "nobody receives"));
  EXPECT_THAT(rank.wait(0).message(), HasSubstr("nobody receives"));
}

// The real engine: a message far below its own limits is copied at once, and still its send is not done before the receive.
TEST(EarlyMessages, UcxTellsWhenAMessageIsReceived) {
#ifdef HPC_IS_SANITIZED
  GTEST_SKIP() << "UCX is not instrumented";
#endif
  Engines engines;
  if (Status status = engines.open(); !status.ok())
    GTEST_SKIP() << status.text();
  for (int64_t bytes : {0, 8, 4096, 1 << 20}) {
    std::vector<std::byte> source(static_cast<size_t>(bytes), std::byte(bytes % 251)), target(source.size());
    auto sent = engines.one->send(1, 5, source.data(), bytes, processes::SendDone::Received);
    ASSERT_TRUE(sent.ok()) << sent.status().text();
    for (int round = 0; round < 100; ++round) {
      engines.progress(100);
      Expected<bool> done = (*sent)->done();
      ASSERT_TRUE(done.ok()) << done.status().text();
      ASSERT_FALSE(*done) << bytes;
    }
    auto received = engines.other->receive(0, 5, target.data(), bytes);
    ASSERT_TRUE(received.ok()) << received.status().text();
    for (processes::Transfer *transfer : {sent->get(), received->get()})
      for (int round = 0;; ++round) {
        engines.progress(1);
        Expected<bool> done = transfer->done();
        ASSERT_TRUE(done.ok()) << done.status().text();
        if (*done)
          break;
        ASSERT_LT(round, 10000000) << bytes;
      }
    EXPECT_EQ(source, target) << bytes;
  }
}
