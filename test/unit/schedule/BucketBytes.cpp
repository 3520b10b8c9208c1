// Sizes of buckets by hand: groups of two ranks reduce 92 bytes once a step, in 2 steps, and each sends the bytes once.
#include "passes/Schedule/Rewrites.h"
#include "test/unit/schedule/StepPlans.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hpc {
namespace {

using namespace plan;
using test::StepPlan;

StepPlan reducesOnce() {
  StepPlan step(2, {ProgramKind::Forward, ProgramKind::Update});
  for (int64_t elements : {3, 20}) {
    const int32_t sum = step.buffer(Lifetime::Step, elements), term = step.buffer(Lifetime::Program, elements);
    step.kernel(0, {}, {term}, Part::Gradient);
    step.accumulate(0, sum, term);
    step.kernel(1, {step.allReduce(1, sum)}, {step.buffer(Lifetime::Program, 1)}, Part::Update);
  }
  return step;
}

int64_t bytesWith(double latency, double bytesPerSecond) {
  cost::Machine machine;
  machine.links = {{0, latency, bytesPerSecond}};
  return bucketBytes(reducesOnce().plan, 0, machine);
}

TEST(BucketBytes, BalanceStartsAndTheLastBucket) {
  const double start = 2, secondsPerByte = 1e-12;
  EXPECT_NEAR(double(bytesWith(1, 1e12)), std::sqrt(92 * start / secondsPerByte), 1);
  EXPECT_NEAR(double(bytesWith(1, 4e12)), 2 * std::sqrt(92 * start / secondsPerByte), 2); // a faster link: less waits for the last
}

TEST(BucketBytes, KeepToTheirRange) {
  EXPECT_EQ(bytesWith(1e-6, 1e9), 1 << 20);
  EXPECT_EQ(bytesWith(1, 1e18), 256 << 20);
}

// A stage that reduces nothing once a step has what is usual.
TEST(BucketBytes, AreTheUsualOnesWithoutGradients) {
  StepPlan step(2, {ProgramKind::Forward, ProgramKind::Update});
  EXPECT_EQ(bucketBytes(step.plan, 0, cost::Machine()), defaultBucketBytes);
}

} // namespace
} // namespace hpc
