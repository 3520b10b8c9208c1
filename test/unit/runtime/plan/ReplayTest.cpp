// A step with a clock. All wanted times are worked out by hand in the comments.
#include "runtime/plan/Replay.h"
#include "SamplePlan.h"
#include "runtime/plan/PlanCheck.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

using namespace hpc;
using namespace hpc::plan;

namespace {

void expectTimes(const Replay &replay, const std::vector<std::array<double, 3>> &wanted) {
  ASSERT_EQ(replay.ranks.size(), wanted.size());
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    EXPECT_DOUBLE_EQ(replay.ranks[rank].computing, wanted[rank][0]) << rank;
    EXPECT_DOUBLE_EQ(replay.ranks[rank].communicating, wanted[rank][1]) << rank;
    EXPECT_DOUBLE_EQ(replay.ranks[rank].exposed, wanted[rank][2]) << rank;
  }
}

/// One stage over dp=2: product A, post r0, product B, post r1, a kernel, wait r0, wait r1.
Plan twoPosts() {
  Plan plan;
  plan.axes = {{"dp", 2}};
  plan.modules = test::samplePlan().modules;
  plan.outputs = {{"y", DType::F32, {2, 2}}};
  Stage &stage = plan.stages.emplace_back();
  for (int64_t i = 0; i < 5; ++i)
    stage.buffers.push_back(test::buffer("b", Lifetime::Program, {2, 2}, 64 * i));
  Kernel first;
  first.symbol = "relu";
  first.args = {{{0, 0}, 16, false, true}};
  auto reduce = [](int32_t buffer, int32_t request) {
    Collective collective;
    collective.axes = {"dp"};
    collective.count = 4;
    collective.src = collective.dst = {buffer, 0};
    collective.request = request;
    return collective;
  };
  Kernel last = first;
  last.args[0].place = {4, 0};
  StoreOutput store;
  store.src = {2, 0};
  store.slice = {{2, 2}, {0, 0}, {2, 2}, {2, 2}};
  store.owner.values = {1, 0};
  stage.programs = {{ProgramKind::Forward,
                     0,
                     {{first, "load"},
                      {test::gemm(1, 0, 0, 2, 2, 2, 2, 2, 2), "A"},
                      {reduce(1, 0), "r0"},
                      {test::gemm(2, 0, 0, 2, 2, 2, 2, 2, 2), "B"},
                      {reduce(2, 1), "r1"},
                      {last, "kernel"},
                      {Wait{0}, ""},
                      {Wait{1}, ""},
                      {store, "y"}}}};
  stage.requests = {1, 1};
  stage.schedule = {{0, 0}};
  stage.workBytes = 320;
  return plan;
}

/// Seconds by node; another for coordinate 1.
Durations byNode(std::map<std::string, std::pair<double, double>> seconds) {
  return [seconds](const InstructionRun &run) {
    auto found = seconds.find(run.instruction.node);
    return found == seconds.end() ? 0 : run.coordinate == 0 ? found->second.first : found->second.second;
  };
}

} // namespace

// Two stages of two ranks, two micro-batches. Products take 2 s on coordinate 0 and 3 s on 1, the kernel and the all-reduce 1 s,
// a message half a second.
//   stage 0: products until 4 and 6, all-reduce 6..7; again from 7: until 11 and 13, all-reduce 13..14; the drain stands until 14.5
//   messages: 7..7.5 and 14..14.5
//   stage 1: 7.5..10.5 and 7.5..11.5; again from 14.5 until 17.5 and 18.5
TEST(Replay, APipeline) {
  Plan plan = test::samplePlan();
  Expected<Replay> replay = replayPlan(plan, [](const InstructionRun &run) {
    const Action &action = run.instruction.action;
    return std::holds_alternative<Gemm>(action)   ? 2.0 + double(run.coordinate)
           : std::holds_alternative<Kernel>(action) || std::holds_alternative<Collective>(action) ? 1.0
           : std::holds_alternative<Send>(action) ? 0.5
                                                  : 0.0;
  });
  ASSERT_TRUE(replay.ok()) << replay.status().text();
  EXPECT_DOUBLE_EQ(replay->length, 18.5);
  // Of the two messages the first passes while its sender computes.
  expectTimes(*replay, {{8, 3, 2.5}, {12, 3, 2.5}, {6, 1, 1}, {8, 1, 1}});
  EXPECT_DOUBLE_EQ(replay->ranks[0].hidden(), 0.5);
  EXPECT_DOUBLE_EQ(replay->bubble(), 1 - (10.5 + 14.5 + 7 + 9) / (4 * 18.5));
}

// A is there at 2, so r0 runs 2..5; B at 4, and r1 waits for r0: 5..6. The kernel ends at 5, so nobody stands at r0.
TEST(Replay, CollectivesBesideComputation) {
  Plan plan = twoPosts();
  ASSERT_TRUE(checkPlan(plan).ok()) << checkPlan(plan).text();
  Expected<Replay> alike = replayPlan(plan, byNode({{"A", {2, 2}}, {"B", {2, 2}}, {"r0", {3, 3}}, {"r1", {1, 1}}, {"kernel", {1, 1}}}));
  ASSERT_TRUE(alike.ok()) << alike.status().text();
  EXPECT_DOUBLE_EQ(alike->length, 6);
  expectTimes(*alike, {{5, 4, 1}, {5, 4, 1}});
  EXPECT_DOUBLE_EQ(alike->ranks[0].hidden(), 3);
  EXPECT_DOUBLE_EQ(alike->bubble(), 0);
  // Rank 1 has A at 4 and B at 6: r0 runs 4..7, r1 7..8. Rank 0 is done at 5 and stands there for 3 s, rank 1 from 7 on.
  Expected<Replay> unlike = replayPlan(plan, byNode({{"A", {2, 4}}, {"B", {2, 2}}, {"r0", {3, 3}}, {"r1", {1, 1}}, {"kernel", {1, 1}}}));
  ASSERT_TRUE(unlike.ok()) << unlike.status().text();
  EXPECT_DOUBLE_EQ(unlike->length, 8);
  expectTimes(*unlike, {{5, 4, 3}, {7, 4, 1}});
  EXPECT_DOUBLE_EQ(unlike->bubble(), 0);
  // Where rank 1 has A at 9 only, rank 0 is done at 5 and waits for it until then.
  Expected<Replay> late = replayPlan(plan, byNode({{"A", {2, 9}}, {"B", {2, 2}}, {"r0", {3, 3}}, {"r1", {1, 1}}, {"kernel", {1, 1}}}));
  EXPECT_DOUBLE_EQ(late->length, 13); // r0 9..12, r1 12..13
  expectTimes(*late, {{5, 4, 4}, {12, 4, 1}});
  EXPECT_DOUBLE_EQ(late->bubble(), 4.0 / 26);
}

// Skipped runs and what is on request take no time.
TEST(Replay, OnlyWhatAStepDoes) {
  Plan plan = twoPosts();
  std::vector<Instruction> &instructions = plan.stages[0].programs[0].instructions;
  instructions[5].onRequest = true;
  instructions[3].when.values = {1, 0};
  Expected<Replay> replay = replayPlan(plan, byNode({{"A", {2, 2}}, {"B", {2, 2}}, {"kernel", {7, 7}}}));
  ASSERT_TRUE(replay.ok()) << replay.status().text();
  expectTimes(*replay, {{4, 0, 0}, {2, 0, 0}});
}
