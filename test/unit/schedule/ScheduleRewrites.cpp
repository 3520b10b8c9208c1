// The rewrites in their order, and the check between them.
#include "passes/Place/Place.h"
#include "passes/Schedule/Schedule.h"
#include "test/unit/schedule/StepPlans.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace hpc {
namespace {

using namespace plan;
using hpc::test::StepPlan;

/// Two gradients and what reads their sums; a parameter is written where `writes`.
StepPlan gradients(bool writes) {
  StepPlan step(1, {ProgramKind::Forward});
  int32_t a = step.buffer(Lifetime::Program, 8), b = step.buffer(Lifetime::Program, 8), weight = step.buffer(Lifetime::Session, 8);
  step.stage().bindings.push_back({weight, {{8}, {0}, {8}, {8}}, Nothing{}, writes ? "w" : "", {}});
  step.kernel(0, {}, {a}, Part::Gradient);
  step.kernel(0, {}, {b}, Part::Gradient);
  int32_t wholeA = step.allReduce(0, a), wholeB = step.allReduce(0, b);
  step.kernel(0, {}, {step.buffer(Lifetime::Program, 100)}, Part::Update);
  step.kernel(0, {wholeA, wholeB}, {weight}, Part::Update);
  return step;
}

int64_t collectives(const Plan &plan) {
  const std::vector<Instruction> &instructions = plan.stages[0].programs[0].instructions;
  return std::count_if(instructions.begin(), instructions.end(),
                       [](const Instruction &each) { return std::holds_alternative<Collective>(each.action); });
}

} // namespace

// Sums of gradients are joined in steps alone, and before anything is posted by itself.
TEST(SchedulePlan, JoinsThenPosts) {
  for (bool writes : {true, false}) {
    StepPlan step = gradients(writes);
    std::vector<int64_t> seen;
    ASSERT_TRUE(schedulePlan(step.plan, step.values, [&](const Plan &plan) {
                  seen.push_back(collectives(plan));
                  return Status::success();
                }).ok());
    EXPECT_EQ(seen, writes ? (std::vector<int64_t>{2, 2, 2, 1, 1}) : (std::vector<int64_t>{2, 2, 2, 2}));
    EXPECT_TRUE(placeBuffers(step.plan).ok());
  }
}

// A plan that a rewrite has broken is refused under the name of that rewrite.
TEST(SchedulePlan, NamesTheRewriteThatFails) {
  for (auto [failing, where] : {std::pair(0, "before the first rewrite"), {2, "after the rewrite 'packed-weights'"}, {3, "after the rewrite 'gradient-buckets'"}}) {
    StepPlan step = gradients(true);
    int checks = 0;
    Status status = schedulePlan(step.plan, step.values, [&, failing = failing](const Plan &) {
      return checks++ == failing ? Status::error(ErrorKind::Plan, "is broken") : Status::success();
    });
    EXPECT_NE(status.message().find(std::string(where) + ": is broken"), std::string::npos) << status.text();
  }
}

} // namespace hpc
