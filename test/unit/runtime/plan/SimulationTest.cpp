// What the simulation of a plan costs, in posts and not in seconds.
#include "runtime/plan/Simulation.h"
#include "test/unit/runtime/plan/SamplePlan.h"

#include "runtime/plan/Schedule.h"

#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::plan;

namespace {

// A step of many micro-batches posts far more than is ever in flight: 2 slots of a send and a receive on 2 ranks of 2 stages.
TEST(Simulation, KeepsPostsUntilTheirWaitAlone) {
  for (int64_t microBatches : {2, 64}) {
    Plan plan = test::samplePlan();
    plan.microBatches = microBatches;
    for (int64_t stage = 0; stage < 2; ++stage)
      plan.stages[stage].schedule = *bindSchedule(test::inferenceStage(stage, 2, microBatches), plan.stages[stage].programs);
    Simulation simulation(plan);
    Status status = simulation.run();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_LE(simulation.mostPosts(), 8u) << microBatches << " micro-batches";
  }
}

} // namespace
