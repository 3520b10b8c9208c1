// Durations of instructions, worked out by hand.
#include "runtime/cost/Durations.h"
#include "test/unit/runtime/plan/SamplePlan.h"

#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::cost;

static Machine machine(double flops) {
  Machine machine;
  machine.products = {{DType::F32, flops, {}}};
  machine.bytesPerSecond = 52;
  machine.links = {{0, 0.5, 16}};
  return machine;
}

// A product of 2 x 4 x 3: 48 operations, and 24 + 48 + 32 bytes. An all-reduce of 48 bytes between two ranks brings each 2 * 24, in two steps.
TEST(Durations, AreThoseOfTheRoofs) {
  Plan plan = test::samplePlan();
  const Durations seconds = durationsOf(machine(48));
  Instruction product{test::gemm(test::stage0::H, test::stage0::X, test::stage0::W0, 2, 4, 3, 3, 4, 4), ""};
  EXPECT_DOUBLE_EQ(seconds({plan, product, 0, 0}), 2);
  EXPECT_DOUBLE_EQ(durationsOf(machine(12))({plan, product, 0, 0}), 4);
  Collective collective;
  collective.axes = {"tp"};
  collective.count = 12;
  auto collectiveOf = [&](CollectiveKind kind) {
    collective.kind = kind;
    return seconds({plan, {collective, ""}, 0, 0});
  };
  EXPECT_DOUBLE_EQ(collectiveOf(CollectiveKind::AllReduce), 4);
  for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll, CollectiveKind::Permute})
    EXPECT_DOUBLE_EQ(collectiveOf(kind), 3.5);
  Send send;
  send.bytes = 32;
  send.peer = 2;
  EXPECT_DOUBLE_EQ(seconds({plan, {send, ""}, 0, 0}), 2.5);
  EXPECT_DOUBLE_EQ(seconds({plan, {Copy{{0, 0}, {1, 0}, 26}, ""}, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(seconds({plan, {Wait{0}, ""}, 0, 0}), 0);
}
