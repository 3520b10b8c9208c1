// Durations of instructions, worked out by hand.
#include "runtime/cost/Durations.h"
#include "runtime/cost/StageCosts.h"
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
  EXPECT_DOUBLE_EQ(seconds({plan, 0, product, 0, 0}), 2);
  EXPECT_DOUBLE_EQ(durationsOf(machine(12))({plan, 0, product, 0, 0}), 4);
  Collective collective;
  collective.axes = {"tp"};
  collective.count = 12;
  auto collectiveOf = [&](CollectiveKind kind) {
    collective.kind = kind;
    return seconds({plan, 0, {collective, ""}, 0, 0});
  };
  EXPECT_DOUBLE_EQ(collectiveOf(CollectiveKind::AllReduce), 4);
  for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll, CollectiveKind::Permute})
    EXPECT_DOUBLE_EQ(collectiveOf(kind), 3.5);
  Send send;
  send.bytes = 32;
  send.peer = 2;
  EXPECT_DOUBLE_EQ(seconds({plan, 0, {send, ""}, 0, 0}), 2.5);
  EXPECT_DOUBLE_EQ(seconds({plan, 0, {Copy{{0, 0}, {1, 0}, 26}, ""}, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(seconds({plan, 0, {Wait{0}, ""}, 0, 0}), 0);
}

// 48 operations, of which the product does 3 a second at its smallest extent of 2; each instruction begins half a second after the last.
TEST(Durations, OfProductsHaveTheirShapesEfficiency) {
  Plan plan = test::samplePlan();
  Machine narrow = machine(12);
  narrow.products.front().efficiency = {{2, 0.25}, {8, 1}};
  narrow.products.push_back({DType::BF16, 48, {}});
  narrow.launch = 0.5;
  Gemm gemm = test::gemm(test::stage0::H, test::stage0::X, test::stage0::W0, 2, 4, 3, 3, 4, 4);
  EXPECT_DOUBLE_EQ(durationsOf(narrow)({plan, 0, {gemm, ""}, 0, 0}), 16.5);
  gemm.batch = {3};
  gemm.a.stride = gemm.b.stride = gemm.c.stride = {0};
  EXPECT_DOUBLE_EQ(durationsOf(narrow)({plan, 0, {gemm, ""}, 0, 0}), 48.5);
  gemm.batch = gemm.a.stride = gemm.b.stride = gemm.c.stride = {};
  gemm.a.dtype = DType::BF16; // one operation a second at most, and 52 bytes of the 104 - 12
  EXPECT_NEAR(durationsOf(narrow)({plan, 0, {gemm, ""}, 0, 0}), 92.0 / 52 + 0.5, 1e-12);
}

static Kernel kernel(int64_t read, int64_t written, int64_t operations, int64_t flops = 0) {
  Kernel kernel;
  kernel.args = {{{test::stage0::X, 0}, read, true, false}, {{test::stage0::H, 0}, written, false, true}};
  kernel.operations = operations;
  kernel.flops = flops;
  return kernel;
}

// Bytes or operations, whichever take longer; of a table a kernel reads no more than 8 bytes an operation, or 4 times what it writes.
TEST(Durations, OfKernelsAreTheLongerOfBytesAndOperations) {
  Plan plan = test::samplePlan();
  Machine one = machine(48);
  auto seconds = [&](const Kernel &each) { return durationsOf(one)({plan, 0, {each, ""}, 0, 0}); };
  EXPECT_DOUBLE_EQ(seconds(kernel(52, 52, 0)), 2);
  EXPECT_DOUBLE_EQ(seconds(kernel(52, 52, 96)), 2);
  one.elementsPerSecond = 24;
  EXPECT_DOUBLE_EQ(seconds(kernel(52, 52, 96)), 4);
  EXPECT_DOUBLE_EQ(seconds(kernel(52, 52, 24)), 2);
  EXPECT_DOUBLE_EQ(seconds(kernel(5200, 52, 13)), 5);  // 208 of the table
  EXPECT_DOUBLE_EQ(seconds(kernel(5200, 52, 39)), 7);  // 312
  EXPECT_DOUBLE_EQ(seconds(kernel(5200, 52, 0)), 101); // an older plan, which does not count
}

// Vector code of a host computes an attention with all else; on a device its products run on the matrix units.
TEST(Durations, OfAttentionDependOnWhoComputesItsProducts) {
  Plan plan = test::samplePlan();
  Machine one = machine(48);
  one.elementsPerSecond = 24;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, {kernel(4, 4, 240, 96), ""}, 0, 0}), 2);
  one.products[0].efficiency = {{64, 0.25}, {256, 0.75}}; // 128 channels of a head, where nothing else is stated
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, {kernel(4, 4, 240, 96), ""}, 0, 0}), 4);
  Kernel stated = kernel(4, 4, 240, 96);
  stated.attention = Attention{};
  stated.attention->depth = 64;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, {stated, ""}, 0, 0}), 8);
  one.cores = 2;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, {kernel(4, 4, 240, 96), ""}, 0, 0}), 10);
}

// On a host lines of 16 are computed whole, and memory comes after operations: 2 * 16 * 4 * 3 operations of the product, and 52 bytes a second of 160 + 12 * 4 + 120.
TEST(Durations, OfProductsOnHostsAddTheirMemory) {
  Plan plan = test::samplePlan();
  Machine one = machine(12);
  Instruction product{test::gemm(test::stage0::H, test::stage0::X, test::stage0::W0, 10, 4, 3, 3, 4, 4), ""};
  const double bytes = 120 + 48 + 160;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, product, 0, 0}), 240.0 / 12);
  one.cores = 4;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, product, 0, 0}), 384.0 / 12);
  one.cacheBytes = 16;
  one.cacheBytesPerSecond = 104;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, product, 0, 0}), 384.0 / 12 + bytes / 52);
  one.cacheBytes = 1 << 20;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, product, 0, 0}), 384.0 / 12);
}

// Weights are in the cache where all of the rank is.
TEST(Durations, OfCopiesDependOnTheCache) {
  Plan plan = test::samplePlan();
  Machine one = machine(12);
  Instruction copy{Copy{{test::stage0::W0, 0}, {test::stage0::W1, 0}, 26}, ""};
  one.cacheBytes = plan.stages[0].sessionBytes + plan.stages[0].workBytes;
  one.cacheBytesPerSecond = 104;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, copy, 0, 0}), 0.5);
  --one.cacheBytes;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, copy, 0, 0}), 1);
}

// Two ranks of a host write 48, or 96 bytes each: a second of latency and 16 bytes a second. With four ranks on two cores they sleep meanwhile.
TEST(Durations, OfCollectivesInSharedMemoryAreCopies) {
  Plan plan = test::samplePlan();
  Machine one = machine(12);
  one.cores = 4;
  Collective collective;
  collective.axes = {"tp"};
  collective.count = 12;
  auto seconds = [&](CollectiveKind kind) {
    collective.kind = kind;
    return durationsOf(one)({plan, 0, {collective, ""}, 0, 0});
  };
  EXPECT_DOUBLE_EQ(seconds(CollectiveKind::AllReduce), 4);
  EXPECT_DOUBLE_EQ(seconds(CollectiveKind::AllGather), 7);
  EXPECT_DOUBLE_EQ(seconds(CollectiveKind::AllToAll), 7);
  EXPECT_DOUBLE_EQ(seconds(CollectiveKind::ReduceScatter), 5.5);
  one.wakeSeconds = 0.25;
  EXPECT_DOUBLE_EQ(seconds(CollectiveKind::AllReduce), 4);
  Send send;
  send.bytes = 32;
  send.peer = 2;
  EXPECT_DOUBLE_EQ(durationsOf(one)({plan, 0, {send, ""}, 0, 0}), 2.75);
  one.cores = 2;
  EXPECT_DOUBLE_EQ(seconds(CollectiveKind::AllReduce), 4.25);
  one.cores = 1;
  EXPECT_DOUBLE_EQ(seconds(CollectiveKind::AllReduce), 4.125);
}

// A stage takes as long in another place of the pipeline. Its instructions use its own buffers, not those of the first stage.
TEST(StageCosts, AreOfTheStagesOwnBuffers) {
  Plan plan = test::samplePlan();
  Machine one = machine(48);
  one.cacheBytes = 1 << 20; // what lives within a program comes from there, and the rest does not
  one.cacheBytesPerSecond = 104;
  for (Stage &stage : plan.stages)
    stage.sessionBytes = int64_t(1) << 21;
  const std::vector<StageCosts> costs = stageCosts(plan, one);
  std::swap(plan.stages[0], plan.stages[1]);
  const std::vector<StageCosts> swapped = stageCosts(plan, one);
  for (size_t stage : {0, 1})
    EXPECT_DOUBLE_EQ(costs[stage].seconds.forward, swapped[1 - stage].seconds.forward);
  EXPECT_GT(costs[1].seconds.forward, 0);
  const auto lifetimeOf = [&](size_t stage, size_t buffer) { return plan.stages[stage].buffers[buffer].lifetime; };
  EXPECT_NE(lifetimeOf(0, test::stage1::Y), lifetimeOf(1, test::stage1::Y)); // or the test could not fail
}
