// Plans that become entries of one: what they share, what stays apart, and every way in which they do not fit.
#include "passes/Schedule/MergedEntries.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "test/unit/runtime/plan/EntriesPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpc::plan::test::merging {

using ::testing::HasSubstr;

static Expected<MergedPlan> mergeSampleWith(const std::function<void(Plan &)> &change) {
  Plan first = samplePlan();
  for (Weight &weight : first.weights)
    weight.stateNames = {weight.name};
  Plan other = first;
  change(other);
  return mergeEntries({{"first", first}, {"second", other}});
}

/// If it fails, an entry computes with other buffers, ports or tables than its plan did.
TEST(MergedEntries, EachEntryIsItsPlan) {
  Expected<MergedPlan> merged = mergeSampleWith([](Plan &other) {
    other.inputs[0].name = "x2";
    other.modules[0].symbols = {"relu"};
  });
  ASSERT_TRUE(merged.ok()) << merged.status().text();
  const Plan &plan = merged->plan;
  EXPECT_EQ(checkPlan(plan).text(), Status::success().text());
  EXPECT_EQ(entryNames(plan), "first, second");
  EXPECT_EQ(plan.inputs.size(), 2u);
  EXPECT_EQ(plan.outputs.size(), 1u); // equal in all
  for (size_t entry = 0; entry < 2; ++entry) {
    const Plan own = planOf(plan, entry), given = samplePlan();
    EXPECT_EQ(own.inputs[0].name, entry ? "x2" : given.inputs[0].name);
    for (size_t s = 0; s < 2; ++s) {
      ASSERT_EQ(own.stages[s].programs.size(), given.stages[s].programs.size());
      for (size_t p = 0; p < given.stages[s].programs.size(); ++p)
        ASSERT_EQ(own.stages[s].programs[p].instructions.size(), given.stages[s].programs[p].instructions.size());
      for (size_t b = 0; b < given.stages[s].buffers.size(); ++b)
        EXPECT_EQ(own.stages[s].buffers[size_t(merged->buffers[entry][s][b])].name, given.stages[s].buffers[b].name);
    }
  }
}

/// If it fails, each entry has weights and work memory of its own.
TEST(MergedEntries, TakesNoMoreMemoryThanTheLargest) {
  Expected<MergedPlan> merged = mergeSampleWith([](Plan &other) {
    for (Stage &stage : other.stages)
      stage.workBytes += 640;
  });
  ASSERT_TRUE(merged.ok()) << merged.status().text();
  const Plan given = samplePlan();
  EXPECT_EQ(checkPlan(merged->plan).text(), Status::success().text());
  EXPECT_EQ(merged->plan.weights.size(), given.weights.size());
  EXPECT_EQ(merged->plan.modules.size(), 1u);
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(merged->plan.stages[s].sessionBytes, given.stages[s].sessionBytes);
    EXPECT_EQ(merged->plan.stages[s].bindings.size(), given.stages[s].bindings.size());
    EXPECT_EQ(merged->plan.stages[s].workBytes, given.stages[s].workBytes + 640);
    EXPECT_EQ(merged->plan.stages[s].requests, given.stages[s].requests);
  }
}

/// If it fails, a rank that holds other parts of a weight in an entry computes with wrong ones.
TEST(MergedEntries, KeepsOtherSlicesApart) {
  Expected<MergedPlan> merged = mergeSampleWith([](Plan &other) {
    other.stages[0].bindings[0].slice.start[1] = table({2, 0});
    other.stages[0].bindings[0].slice.extent[1] = table({3, 2});
  });
  ASSERT_TRUE(merged.ok()) << merged.status().text();
  const Plan given = samplePlan();
  EXPECT_EQ(merged->plan.stages[0].bindings.size(), given.stages[0].bindings.size() + 1);
  EXPECT_EQ(merged->plan.stages[0].sessionBytes, given.stages[0].sessionBytes + 64);
}

/// If it fails, a device rearranges a weight for one entry that another one reads as it was; or no weight is packed any more.
TEST(MergedEntries, PacksWhereAllEntriesDo) {
  auto pack = [](Plan &plan) { action<Gemm>(plan, 0, 0, stage0::GemmY).b.packed = true; };
  auto isPacked = [](const Plan &plan, size_t program) {
    return std::get<Gemm>(plan.stages[0].programs[program].instructions[stage0::GemmY].action).b.packed;
  };
  Plan packed = samplePlan();
  const Plan plain = packed;
  pack(packed);
  Expected<MergedPlan> both = mergeEntries({{"first", packed}, {"second", packed}}), one = mergeEntries({{"first", packed}, {"second", plain}}),
                       other = mergeEntries({{"first", plain}, {"second", packed}});
  for (const auto *merged : {&both, &one, &other}) {
    ASSERT_TRUE(merged->ok()) << merged->status().text();
    EXPECT_EQ(checkPlan((*merged)->plan).text(), Status::success().text());
    for (size_t entry = 0; entry < 2; ++entry)
      EXPECT_EQ(isPacked(planOf((*merged)->plan, entry), 0), merged == &both);
  }
}

/// If it fails, an entry does not see what another one has written to the cache.
TEST(MergedEntries, SharesStates) {
  Plan step = planOfCache();
  step.stages[0].schedule = step.entries[0].schedules[0];
  step.entries.clear();
  Plan later = step;
  later.inputs[0].name = "later";
  Expected<MergedPlan> merged = mergeEntries({{"first", step}, {"second", later}});
  ASSERT_TRUE(merged.ok()) << merged.status().text();
  EXPECT_EQ(checkPlan(merged->plan).text(), Status::success().text());
  EXPECT_EQ(merged->plan.stages[0].bindings.size(), 1u);
  const auto &copy = std::get<Copy>(merged->plan.stages[0].programs[1].instructions[cache::Write].action);
  EXPECT_EQ(merged->plan.inputs[size_t(copy.dstOffset.input)].name, "later");
}

/// The compiler's constants are called by their numbers. If it fails, two of one name become one, or one of two names two.
TEST(MergedEntries, TellsConstantsApartByContent) {
  auto constant = [](const char *name, const char *content) {
    Weight weight = inlineWeight(name, {1});
    weight.inlineData = content;
    weight.stateNames.clear();
    weight.hashes.clear();
    return weight;
  };
  Plan first = samplePlan(), second = samplePlan();
  first.weights.push_back(constant("constant3", "aaaa"));
  second.weights.push_back(constant("constant3", "bbbb"));
  second.weights.push_back(constant("constant4", "aaaa"));
  Expected<MergedPlan> merged = mergeEntries({{"first", first}, {"second", second}});
  ASSERT_TRUE(merged.ok()) << merged.status().text();
  ASSERT_EQ(merged->plan.weights.size(), 5u);
  EXPECT_EQ(merged->plan.weights[3].inlineData, "aaaa");
  EXPECT_EQ(merged->plan.weights[4].inlineData, "bbbb");
  EXPECT_EQ(merged->plan.weights[4].name, "constant4");
}

/// If it fails, plans that do not fit become one that computes something else.
TEST(MergedEntries, RefusesWhatDoesNotFit) {
  auto expectError = [](const std::function<void(Plan &)> &change, const char *text) {
    Expected<MergedPlan> merged = mergeSampleWith(change);
    EXPECT_FALSE(merged.ok()) << text;
    EXPECT_EQ(merged.status().kind(), ErrorKind::Internal);
    EXPECT_THAT(merged.status().message(), HasSubstr(text));
  };
  expectError([](Plan &other) { other.axes[0].size = 3; }, "'second' is for another mesh");
  expectError([](Plan &other) { other.stages.pop_back(); }, "'second' is for another mesh");
  expectError([](Plan &other) { other.training = {{"loss", "mse"}}; }, "'second' is for another mesh, or for several things");
  expectError([](Plan &other) { other = planOfTwo(); }, "'second' is for another mesh, or for several things");
  expectError([](Plan &other) { other.weights[1].inlineData[0] ^= 1; }, "they have two weights 'w1'");
  Plan step = planOfCache(), other;
  step.stages[0].schedule = step.entries[0].schedules[0];
  step.entries.clear();
  other = step;
  other.stages[0].buffers[cache::State].box = {8, 4};
  Expected<MergedPlan> merged = mergeEntries({{"first", step}, {"second", other}});
  EXPECT_THAT(merged.status().message(), HasSubstr("'second', stage 0: entries do not make one plan: they hold 'cache' in two ways, as f32[8, 3] and f32[8, 4]"));
}

/// Kernels of one name and different code. If it fails, an entry runs the code of another one.
TEST(MergedEntries, RefusesTwoKernelsOfOneName) {
  Expected<MergedPlan> merged = mergeSampleWith([](Plan &other) { other.modules[0].bytes += "more"; });
  ASSERT_TRUE(merged.ok()) << merged.status().text();
  EXPECT_THAT(checkPlan(merged->plan).message(), HasSubstr("defines 'relu', as another module of its target does"));
}

} // namespace hpc::plan::test::merging
