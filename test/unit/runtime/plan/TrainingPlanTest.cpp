// The plan's check of what a training step adds: accumulators, states, posted collectives, instructions that some
// micro-batches skip.
#include "SamplePlan.h"
#include "runtime/plan/PlanCheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::plan::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// samplePlan's first stage with a training step's tail: an accumulator of x^T h, which the update reduces over tp
/// (posted) and adds to a state.
namespace step {
enum Buffers { Sum = 5, State };
enum Update { Post, WaitSum, Add };
constexpr int gradient = 6; // the instruction of forward that adds to the sum
} // namespace step
Plan trainingPlan() {
  Plan plan = samplePlan();
  Stage &stage = plan.stages[0];
  stage.buffers.push_back(buffer("sum", Lifetime::Step, {3, 3}, 256));
  stage.workBytes = 320;
  stage.buffers.push_back(buffer("state", Lifetime::Session, {3, 3}, 192));
  stage.sessionBytes = 256;
  stage.bindings.push_back({step::State, cutInTwo({3, 5}, 1, 3), Number{0}, "m/w0", {3, 5}});
  stage.requests.push_back(1);
  Gemm gradient = gemm(step::Sum, stage0::X, stage0::H, 3, table({3, 2}), 2, 3, 3, 3);
  gradient.a.transpose = true;
  gradient.addToC = table({0, 0, 1, 1});
  stage.programs[0].instructions.push_back({gradient, "gradient"});
  Collective reduce;
  reduce.axes = {"tp"};
  reduce.count = 9;
  reduce.src = reduce.dst = {step::Sum, 0};
  reduce.request = 1;
  Kernel add;
  add.symbol = "relu";
  add.args = {{{step::Sum, 0}, 36, true, false}, {{step::State, 0}, 36, true, true}};
  stage.programs.push_back({ProgramKind::Update, 0, {{reduce, "reduce"}, {Wait{1}, "reduce"}, {add, "update"}}});
  stage.schedule.push_back({2, 0});
  return plan;
}

std::string trainingMessageOf(const Plan &plan) { return checkPlan(plan).message(); }

TEST(TrainingPlan, Passes) {
  Expected<PlanFacts> facts = analysePlan(trainingPlan());
  ASSERT_TRUE(facts.ok()) << facts.status().text();
  EXPECT_EQ(facts->memory[0].step, 36);
  EXPECT_EQ(facts->memory[0].state, 36);
}

// An accumulator that the first micro-batch adds to would hold the step before, or poison.
TEST(TrainingPlan, FirstMicroBatchWrites) {
  Plan plan = trainingPlan();
  action<Gemm>(plan, 0, 0, step::gradient).addToC = 1;
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("instruction 6 (gemm, node gradient): reads buffer 5 'sum', which holds "
                                         "nothing yet; a program must write it before"));
  action<Gemm>(plan, 0, 0, step::gradient).addToC = table({0, 1, 1, 1}); // on one coordinate
  EXPECT_THAT(trainingMessageOf(plan), AllOf(HasSubstr("coordinate 1 (tp=1)"), HasSubstr("holds nothing yet")));
}

// The same for an instruction that runs in the last micro-batch only and one that reads in all.
TEST(TrainingPlan, SkippedWriteIsNoWrite) {
  Plan plan = trainingPlan();
  program(plan, 0, 0)[step::gradient].when = table({0, 0, 1, 1});
  action<Gemm>(plan, 0, 0, step::gradient).addToC = 0;
  EXPECT_EQ(trainingMessageOf(plan), "");
  program(plan, 0, 0)[step::gradient].when = 0;
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("reads buffer 5 'sum', which holds nothing yet"));
}

// A store that is skipped stores nothing.
TEST(TrainingPlan, SkippedStore) {
  Plan plan = trainingPlan();
  program(plan, 1, 1)[stage1::StoreO].when = table({1, 1, 0, 0});
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("output 'out': index [2, 0] of view [4, 7] is stored by no rank"));
}

// Within a program, a write that is skipped somewhere serves only reads that are skipped there too.
TEST(TrainingPlan, TemporaryOfASkippedWrite) {
  Plan plan = trainingPlan();
  program(plan, 0, 0)[stage0::GemmH].when = table({0, 0, 1, 1});
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("reads buffer 3 'h' (a) before any instruction of the program wrote to it"));
  for (int i : {int(stage0::GemmY), step::gradient})
    program(plan, 0, 0)[i].when = table({0, 0, 1, 1});
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("reads buffer 4 'y'")); // h is sound now, what is made of it is not
}

// Between post and wait nobody touches the target, and the source is only read.
TEST(TrainingPlan, PostedCollectiveIsInFlightUntilItsWait) {
  Plan plan = trainingPlan();
  std::swap(program(plan, 0, 2)[step::WaitSum], program(plan, 0, 2)[step::Add]);
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("instruction 1 (kernel, node update): reads buffer 5 'sum' while it is in "
                                         "flight: request 1, posted by rank"));
  plan = trainingPlan();
  program(plan, 0, 2).erase(program(plan, 0, 2).begin() + step::WaitSum);
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("while it is in flight"));
  program(plan, 0, 2).pop_back();
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("the step ends before a wait on request 1 in slot 0"));
}

// What is no product goes to its accumulator by an instruction of its own, with the same rule.
TEST(TrainingPlan, AccumulatesWhatIsNoProduct) {
  Plan plan = trainingPlan();
  Accumulate sum{{stage0::X, 0}, {step::Sum, 0}, DType::F32, 6, table({0, 0, 1, 1})};
  program(plan, 0, 0)[step::gradient].action = sum;
  EXPECT_EQ(trainingMessageOf(plan), "");
  action<Accumulate>(plan, 0, 0, step::gradient).add = 1;
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("(accumulate, node gradient): reads buffer 5 'sum', which holds nothing yet"));
  action<Accumulate>(plan, 0, 0, step::gradient) = sum;
  action<Accumulate>(plan, 0, 0, step::gradient).count = 7;
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("reads 28 bytes at byte 0 of buffer 2 'x' (src), which has 24"));
  action<Accumulate>(plan, 0, 0, step::gradient).dtype = DType::I32;
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("src is buffer 2 'x' of f32; it must be i32"));
  action<Accumulate>(plan, 0, 0, step::gradient) = sum;
  action<Accumulate>(plan, 0, 0, step::gradient).dst = {stage0::X, 0};
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("overlap in buffer 2 'x'"));
}

// Posted in the last micro-batch of forward, waited for in the update: the overlap that training wants.
TEST(TrainingPlan, PostedInOneProgramAndWaitedForInAnother) {
  Plan plan = trainingPlan();
  Instruction post = program(plan, 0, 2)[step::Post];
  post.when = table({0, 0, 1, 1});
  program(plan, 0, 0).push_back(post);
  program(plan, 0, 2).erase(program(plan, 0, 2).begin());
  EXPECT_EQ(trainingMessageOf(plan), "");
  program(plan, 0, 0).back().when = 1; // in each micro-batch: the second post finds the first in flight
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("reads buffer 5 'sum' while it is in flight"));
  program(plan, 0, 0).back().when = table({0, 0, 1, 0}); // one member stays away
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("deadlock: 1 of 4 ranks wait for ever"));
}

// A temporary in a posted collective lives until the wait: nothing else may take its place before.
TEST(TrainingPlan, TemporaryInFlightKeepsItsPlace) {
  Plan plan = trainingPlan();
  Stage &stage = plan.stages[0];
  stage.buffers.push_back(buffer("piece", Lifetime::Program, {3, 3}, 0));
  stage.buffers.push_back(buffer("other", Lifetime::Program, {3, 3}, 0));
  Collective &reduce = action<Collective>(plan, 0, 2, step::Post);
  reduce.dst = {step::State + 1, 0};
  Copy copy{{step::State, 0}, {step::State + 2, 0}, 36};
  program(plan, 0, 2).insert(program(plan, 0, 2).begin() + step::WaitSum, Instruction{copy, "copy"});
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("begins to use buffer 8 'other' at bytes 0..35, but buffer 7 'piece' at bytes "
                                         "0..35 is in use until instruction 2"));
  std::swap(program(plan, 0, 2)[1], program(plan, 0, 2)[2]); // after the wait
  EXPECT_EQ(trainingMessageOf(plan), "");
}

TEST(TrainingPlan, UpdateRunsOnce) {
  Plan plan = trainingPlan();
  plan.stages[0].schedule.push_back({2, 0});
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("program update: the schedule runs it 2 times for micro-batch 0; once is "
                                         "needed"));
}

// What adds to a sum behind the update that read it is lost, and reads weights that are already the next ones.
TEST(TrainingPlan, NothingComputesBehindTheUpdate) {
  Plan plan = trainingPlan();
  std::vector<ScheduleStep> &schedule = plan.stages[0].schedule;
  size_t last = schedule.size() - 2;
  while (plan.stages[0].programs[schedule[last].program].kind != ProgramKind::Forward)
    --last;
  std::rotate(schedule.begin() + last, schedule.end() - 1, schedule.end());
  EXPECT_THAT(trainingMessageOf(plan), AllOf(HasSubstr("stage 0"), HasSubstr("runs after the update, which reads what it adds "
                                                                     "up and writes what it reads")));
}

// A buffer that starts with nothing is a program's to fill.
TEST(TrainingPlan, StateThatStartsWithNothing) {
  Plan plan = trainingPlan();
  plan.stages[0].bindings[2].start = Nothing{};
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("reads buffer 6 'state', which holds nothing yet"));
  action<Kernel>(plan, 0, 2, step::Add).args[1].reads = false;
  EXPECT_EQ(trainingMessageOf(plan), "");
}

// What is written keeps its own memory and is never packed, and what is saved is held whole.
TEST(TrainingPlan, WrittenWeights) {
  Plan plan = trainingPlan();
  action<Kernel>(plan, 0, 2, step::Add).args[1].place.buffer = stage0::W0;
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("writes to buffer 0 'w0', a weight that no checkpoint saves"));
  Binding &weight = plan.stages[0].bindings[0];
  weight.saved = "w0";
  weight.shape = {3, 5};
  EXPECT_EQ(trainingMessageOf(plan), "");
  action<Gemm>(plan, 0, 0, stage0::GemmH).b.packed = true;
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("takes buffer 0 'w0' packed, but a program writes to it"));
  plan = trainingPlan();
  plan.stages[0].bindings[2].slice.start[1] = table({0, 0});
  plan.stages[0].bindings[2].slice.extent[1] = table({3, 3});
  EXPECT_THAT(trainingMessageOf(plan), HasSubstr("state 'm/w0' [3, 5]: buffer 6 'state': view dim 1: no coordinate holds"));
}

} // namespace
