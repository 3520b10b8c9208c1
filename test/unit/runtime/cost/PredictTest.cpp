// Steps with a clock. All wanted times are worked out by hand in the comments.
#include "runtime/cost/Predict.h"
#include "runtime/plan/PlanCheck.h"
#include "test/unit/runtime/plan/SamplePlan.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::cost;

namespace {

Machine gpus() {
  Machine machine;
  machine.products = {{DType::F32, 1e3, {}}};
  return machine;
}

/// Seconds by node.
Durations byNode(std::map<std::string, double> seconds) {
  return [seconds](const InstructionRun &run) {
    auto found = seconds.find(run.instruction.node);
    return found == seconds.end() ? 0 : found->second;
  };
}

Prediction predicted(const Plan &plan, const Machine &machine, const Durations &durations) {
  EXPECT_TRUE(checkPlan(plan).ok()) << checkPlan(plan).text();
  Expected<Prediction> prediction = predict(plan, machine, durations);
  EXPECT_TRUE(prediction.ok()) << prediction.status().text();
  // All ranks by themselves take as long, to the last bit.
  Expected<Prediction> every = predict(plan, machine, durations, {true, {}});
  EXPECT_EQ(prediction->seconds, every->seconds);
  double path = 0;
  for (const PathPart &part : prediction->path)
    path += part.seconds;
  EXPECT_NEAR(path, prediction->seconds, 1e-9 * prediction->seconds);
  for (size_t rank = 0; rank < every->ranks.size(); ++rank) {
    const RankSeconds &one = prediction->ranks[rank], &other = every->ranks[rank];
    EXPECT_EQ(one.computing, other.computing) << rank;
    EXPECT_EQ(one.communicating, other.communicating) << rank;
    EXPECT_EQ(one.exposed, other.exposed) << rank;
    EXPECT_NEAR(one.computing + one.exposed + one.idle, prediction->seconds, 1e-9 * prediction->seconds) << rank;
  }
  return *prediction;
}

/// Computing, communicating, exposed and idle of each rank.
void expectTimes(const Prediction &prediction, const std::vector<std::array<double, 4>> &wanted) {
  ASSERT_EQ(prediction.ranks.size(), wanted.size());
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    EXPECT_DOUBLE_EQ(prediction.ranks[rank].computing, wanted[rank][0]) << rank;
    EXPECT_DOUBLE_EQ(prediction.ranks[rank].communicating, wanted[rank][1]) << rank;
    EXPECT_DOUBLE_EQ(prediction.ranks[rank].exposed, wanted[rank][2]) << rank;
    EXPECT_DOUBLE_EQ(prediction.ranks[rank].idle, wanted[rank][3]) << rank;
  }
}

void expectPath(const Prediction &prediction, const std::vector<std::pair<std::string, double>> &wanted) {
  ASSERT_EQ(prediction.path.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(prediction.path[i].what, wanted[i].first);
    EXPECT_DOUBLE_EQ(prediction.path[i].seconds, wanted[i].second) << wanted[i].first;
  }
}

/// One stage over dp=2: a kernel, product A, post r0, product B, post r1, a kernel, wait r0, wait r1.
Plan twoPosts(std::vector<std::string> second = {"dp"}) {
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
  auto reduce = [](int32_t buffer, int32_t request, std::vector<std::string> axes) {
    Collective collective;
    collective.axes = std::move(axes);
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
                      {reduce(1, 0, {"dp"}), "r0"},
                      {test::gemm(2, 0, 0, 2, 2, 2, 2, 2, 2), "B"},
                      {reduce(2, 1, std::move(second)), "r1"},
                      {last, "kernel"},
                      {Wait{0}, ""},
                      {Wait{1}, ""},
                      {store, "y"}}}};
  stage.requests = {1, 1};
  stage.schedule = {{0, 0}};
  stage.workBytes = 320;
  return plan;
}

const std::map<std::string, double> alike = {{"A", 2}, {"B", 2}, {"r0", 3}, {"r1", 1}, {"kernel", 1}};

/// A takes as many seconds as it has rows at the coordinate; all else is `alike`.
Durations byRows() {
  return [](const InstructionRun &run) {
    if (run.instruction.node != "A")
      return byNode(alike)(run);
    return double(std::get<Gemm>(run.instruction.action).m.at(run.coordinate, 0, 2));
  };
}

Plan unlikeRows(int64_t rows) {
  Plan plan = twoPosts();
  for (Buffer &buffer : plan.stages[0].buffers) {
    buffer.box = {rows, 2};
    buffer.bytes = rows * 8;
    buffer.offset *= 2;
  }
  plan.stages[0].workBytes *= 2;
  auto &instructions = plan.stages[0].programs[0].instructions;
  std::get<Kernel>(instructions[0].action).args[0].bytes = rows * 8;
  std::get<Gemm>(instructions[1].action).m = test::table({2, rows});
  return plan;
}

} // namespace

// Two stages of two ranks, two micro-batches. Products take as many seconds as they have columns or terms, the kernel and the all-reduce
// 1 s, a message half a second.
//   stage 0: products until 3+3 and 2+2, all-reduce 6..7; again from 7: until 13 and 11, all-reduce 13..14; the drain stands until 14.5
//   messages: 7..7.5 and 14..14.5
//   stage 1: 4+1 from 7.5 until 12.5 and 3+1 until 11.5; again from 14.5 until 19.5 and 18.5
TEST(Predict, APipeline) {
  Plan plan = test::samplePlan();
  Prediction prediction = predicted(plan, gpus(), [](const InstructionRun &run) {
    const Action &action = run.instruction.action;
    if (const auto *gemm = std::get_if<Gemm>(&action))
      return double(run.stage == 0 && gemm->n.values.size() == 1 ? gemm->k.at(run.coordinate, 0, 2) : gemm->n.at(run.coordinate, 0, 2));
    return std::holds_alternative<Kernel>(action) || std::holds_alternative<Collective>(action) ? 1.0 : std::holds_alternative<Send>(action) ? 0.5 : 0.0;
  });
  EXPECT_DOUBLE_EQ(prediction.seconds, 19.5);
  EXPECT_EQ(prediction.simulatedRanks, 4);
  // The first of the two messages passes while its sender computes.
  expectTimes(prediction, {{12, 3, 2.5, 5}, {8, 3, 2.5, 9}, {10, 1, 1, 8.5}, {8, 1, 1, 10.5}});
  EXPECT_DOUBLE_EQ(prediction.ranks[0].hidden(), 0.5);
  EXPECT_DOUBLE_EQ(prediction.bubble, 33 / (4 * 19.5));
  // Back from the end: 5 s of rank 2, the second message, the second all-reduce, products of rank 0 from 7 on, the first all-reduce, ...
  expectPath(prediction, {{"products", 16}, {"all_reduce over tp", 2}, {"kernels", 1}, {"messages", 0.5}});
}

// A is there at 2, so r0 runs 2..5; B at 4, and r1 waits for r0: 5..6. The kernel ends at 5, so nobody stands at r0.
TEST(Predict, CollectivesBesideComputation) {
  Prediction prediction = predicted(twoPosts(), gpus(), byNode(alike));
  EXPECT_DOUBLE_EQ(prediction.seconds, 6);
  EXPECT_EQ(prediction.simulatedRanks, 1);
  expectTimes(prediction, {{5, 4, 1, 0}, {5, 4, 1, 0}});
  EXPECT_DOUBLE_EQ(prediction.ranks[0].hidden(), 3);
  EXPECT_DOUBLE_EQ(prediction.bubble, 0);
  expectPath(prediction, {{"all_reduce over dp", 4}, {"products", 2}});
  ASSERT_EQ(prediction.transfers.size(), 1u);
  EXPECT_DOUBLE_EQ(prediction.transfers[0].seconds, 4);
  EXPECT_DOUBLE_EQ(prediction.transfers[0].exposed, 1);
}

// Rank 1 has A at 4 and B at 6: r0 runs 4..7, r1 7..8. Rank 0 is done at 5 and stands there for 3 s, rank 1 from 7 on.
TEST(Predict, RanksOfAGroupWaitForTheLast) {
  Prediction unlike = predicted(unlikeRows(4), gpus(), byRows());
  EXPECT_DOUBLE_EQ(unlike.seconds, 8);
  EXPECT_EQ(unlike.simulatedRanks, 2);
  expectTimes(unlike, {{5, 4, 3, 0}, {7, 4, 1, 0}});
  // If rank 1 has A at 9 only, rank 0 is done at 5 and waits for it until then: r0 9..12, r1 12..13.
  Prediction late = predicted(unlikeRows(9), gpus(), byRows());
  EXPECT_DOUBLE_EQ(late.seconds, 13);
  expectTimes(late, {{5, 4, 4, 4}, {12, 4, 1, 0}});
  EXPECT_DOUBLE_EQ(late.bubble, 4.0 / 26);
}

// Skipped runs and what is on request take no time.
TEST(Predict, OnlyWhatAStepDoes) {
  Plan plan = twoPosts();
  std::vector<Instruction> &instructions = plan.stages[0].programs[0].instructions;
  instructions[5].onRequest = true;
  instructions[3].when.values = {1, 0};
  Expected<Prediction> prediction = predict(plan, gpus(), byNode({{"A", 2}, {"B", 2}, {"kernel", 7}}));
  ASSERT_TRUE(prediction.ok()) << prediction.status().text();
  expectTimes(*prediction, {{4, 0, 0, 0}, {2, 0, 0, 2}});
}

// Computation beside a transfer takes twice as long: A until 2, r0 2..5 while 1.5 s of B and the kernel pass; r1 begins when B is done. B has
// 0.5 s left at 5, so r1 runs 5.5..6.5, and of the kernel half a second passes in it; the rest takes until 7.
TEST(Predict, OverlapSlowsComputation) {
  Machine machine = gpus();
  machine.overlapSlowdown = 2;
  Prediction prediction = predicted(twoPosts(), machine, byNode(alike));
  EXPECT_DOUBLE_EQ(prediction.seconds, 7);
  expectTimes(prediction, {{7, 4, 0, 0}, {7, 4, 0, 0}});
  expectPath(prediction, {{"products", 4}, {"shared processors and links", 2}, {"kernels", 1}});
}

// Collectives of two groups share the link of a rank: r0 over dp 2..; r1 over dp,tp from 4 on. At 4 r0 has 1 s left, both go on at half the
// rate: r0 until 6, where r1 has no more than 1 - 1 left: it ends at 6 too.
TEST(Predict, TransfersShareALink) {
  Plan plan = twoPosts({"dp", "tp"});
  plan.axes.push_back({"tp", 1});
  Prediction prediction = predicted(plan, gpus(), byNode(alike));
  EXPECT_DOUBLE_EQ(prediction.seconds, 6);
  expectTimes(prediction, {{5, 6, 1, 0}, {5, 6, 1, 0}});
  // Were r1 as long as r0, it would have 2 s left at 6 and end at 8.
  std::map<std::string, double> longer = alike;
  longer["r1"] = 3;
  EXPECT_DOUBLE_EQ(predicted(plan, gpus(), byNode(longer)).seconds, 8);
}

// Two ranks on one processor compute at half the speed and carry r0 and r1 when they wait: 5 + 4 s of work each.
TEST(Predict, RanksShareAProcessor) {
  Machine machine = gpus();
  machine.cores = 1;
  Prediction prediction = predicted(twoPosts(), machine, byNode(alike));
  EXPECT_DOUBLE_EQ(prediction.seconds, 18);
  expectTimes(prediction, {{10, 8, 8, 0}, {10, 8, 8, 0}});
  // A processor each: nothing is hidden either.
  machine.cores = 2;
  EXPECT_DOUBLE_EQ(predicted(twoPosts(), machine, byNode(alike)).seconds, 9);
}

// Rank 0 has computed its 5 s at 10, where the two have shared the processor; it uses none until rank 1 has A, 4 s later. Then 8 s of
// transfers and rank 1's 3 s are left: as the processor never rests, all of it takes 25.
TEST(Predict, WhoWaitsUsesNoProcessor) {
  Machine machine = gpus();
  machine.cores = 1;
  Prediction prediction = predicted(unlikeRows(9), machine, byRows());
  EXPECT_DOUBLE_EQ(prediction.seconds, 25);
  EXPECT_DOUBLE_EQ(prediction.ranks[0].computing, 10);
  EXPECT_GE(prediction.ranks[0].idle, 4);
}

// Rank 1 at half the speed has A at 4 and B at 8, the kernel at 10: r0 4..7, r1 8..9. Rank 0 stands 4..7 but for what it computes until 5, and 7..9.
TEST(Predict, UnlikeHosts) {
  Machine machine = gpus();
  machine.differences = {{1, 1, 0.5, 0}};
  Prediction prediction = predicted(twoPosts(), machine, byNode(alike));
  EXPECT_DOUBLE_EQ(prediction.seconds, 10);
  expectTimes(prediction, {{5, 4, 3, 2}, {10, 4, 0, 0}});
  expectPath(prediction, {{"products", 8}, {"kernels", 2}});
}
