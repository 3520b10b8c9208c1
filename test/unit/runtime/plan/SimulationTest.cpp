// What the simulation of a plan costs, in posts and not in seconds.
#include "runtime/plan/Simulation.h"
#include "test/unit/runtime/plan/SamplePlan.h"

#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/Schedule.h"

#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;

namespace {

Plan planOf(int64_t microBatches) {
  Plan plan = test::samplePlan();
  plan.microBatches = microBatches;
  for (int64_t stage = 0; stage < 2; ++stage)
    plan.stages[stage].schedule = *bindSchedule(test::inferenceStage(stage, 2, microBatches), plan.stages[stage].programs);
  return plan;
}

// A step of many micro-batches posts far more than is ever in flight: 2 slots of a send and a receive on 2 ranks of 2 stages.
TEST(Simulation, KeepsPostsUntilTheirWaitAlone) {
  for (int64_t microBatches : {2, 64}) {
    Plan plan = planOf(microBatches);
    Simulation simulation(plan);
    Status status = simulation.run();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_LE(simulation.mostPosts(), 8u) << microBatches << " micro-batches";
  }
}

// One rank of a stage stands for both: fewer posts, and the same picture.
TEST(Simulation, OneOfRanksThatDoTheSameStandsForAll) {
  Plan plan = planOf(8);
  Simulation all(plan), one(plan, Simulation::Ranks::OneOfAlike);
  ASSERT_TRUE(all.run().ok());
  ASSERT_TRUE(one.run().ok());
  EXPECT_TRUE(all.isOfAll());
  EXPECT_FALSE(one.isOfAll());
  EXPECT_LT(one.mostPosts(), all.mostPosts());
  Timeline whole = all.takeTimeline(), ofOne = one.takeTimeline();
  EXPECT_EQ(whole.length, ofOne.length);
  ASSERT_EQ(whole.stages.size(), ofOne.stages.size());
  for (size_t stage = 0; stage < whole.stages.size(); ++stage) {
    ASSERT_EQ(whole.stages[stage].size(), ofOne.stages[stage].size());
    for (size_t i = 0; i < whole.stages[stage].size(); ++i) {
      EXPECT_EQ(whole.stages[stage][i].start, ofOne.stages[stage][i].start);
      EXPECT_EQ(whole.stages[stage][i].step, ofOne.stages[stage][i].step);
    }
  }
}

// Each of these makes one rank do what the other does not: then all are simulated.
TEST(Simulation, RanksThatDifferAreAllSimulated) {
  struct Case {
    const char *name;
    void (*change)(Plan &);
  };
  for (const Case &one : {Case{"instruction left out on a rank",
                               [](Plan &plan) { plan.stages[0].programs[0].instructions[test::stage0::Reduce].when = test::table({1, 0}); }},
                          Case{"a peer of another coordinate",
                               [](Plan &plan) { test::action<Send>(plan, 0, 0, test::stage0::SendY).peer = test::table({3, 2}); }},
                          Case{"one peer of all", [](Plan &plan) { test::action<Send>(plan, 0, 0, test::stage0::SendY).peer = 2; }},
                          Case{"no peer on a rank",
                               [](Plan &plan) { test::action<Send>(plan, 0, 0, test::stage0::SendY).peer = test::table({2, -1}); }},
                          Case{"a peer that differs in a micro-batch",
                               [](Plan &plan) { test::action<Send>(plan, 0, 0, test::stage0::SendY).peer = test::table({2, 3, 3, 2}); }}}) {
    Plan plan = planOf(2);
    one.change(plan);
    EXPECT_TRUE(Simulation(plan, Simulation::Ranks::OneOfAlike).isOfAll()) << one.name;
    EXPECT_FALSE(simulatePlan(plan, nullptr).ok()) << one.name;
  }
}

// The message of a fault is that of all ranks.
TEST(Simulation, NamesAllRanksThatWait) {
  Plan plan = planOf(2);
  plan.stages[0].programs[0].instructions[test::stage0::SendY].when = 0;
  EXPECT_EQ(simulatePlan(plan, nullptr).text(), Simulation(plan).run().text());
  EXPECT_NE(simulatePlan(plan, nullptr).text().find("2 of 4 ranks wait"), std::string::npos) << simulatePlan(plan, nullptr).text();
}

} // namespace
