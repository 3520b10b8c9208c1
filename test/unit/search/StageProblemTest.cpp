// Splits of blocks over stages against all splits in turn; what schedules keep in flight against their papers.
#include "passes/Search/StageProblem.h"

#include "runtime/plan/ScheduleKinds.h"
#include "runtime/plan/ScheduleSlots.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <random>

using namespace hpc;
using namespace hpc::search;

namespace {
struct AllSplits {
  const StageProblem &problem;
  std::vector<int64_t> counts;
  std::optional<double> best;

  void choose(int64_t left) {
    if (int64_t(counts.size()) == problem.parts()) {
      if (left > 0)
        return;
      for (int64_t stage = 0; stage < problem.stages; ++stage)
        if (problem.memoryOf(counts, stage) > problem.memory)
          return;
      if (!best || problem.slowest(counts) < *best)
        best = problem.slowest(counts);
      return;
    }
    for (int64_t count = 1; count <= left; ++count) {
      counts.push_back(count);
      choose(left - count);
      counts.pop_back();
    }
  }
};

StageProblem randomStages(std::mt19937 &random, int64_t mostChunks) {
  auto upTo = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  StageProblem problem;
  problem.stages = 1 + upTo(3);
  problem.chunks = 1 + upTo(mostChunks - 1);
  const int64_t blocks = problem.parts() + upTo(5);
  const bool isEven = upTo(1) == 0;
  for (int64_t i = 0; i < blocks; ++i)
    problem.blocks.push_back({isEven && i > 0 ? 0.5 : double(1 + upTo(20)) / 16, upTo(20), upTo(9)});
  for (int64_t part = 0; part < problem.parts(); ++part)
    problem.inFlight.push_back(1 + upTo(4));
  problem.temporaries = upTo(5);
  if (upTo(3) > 0)
    problem.memory = 20 + upTo(40 * blocks / problem.stages);
  return problem;
}
} // namespace

TEST(StageProblem, equalsAllSplits) {
  std::mt19937 random(3);
  int infeasible = 0;
  for (int number = 0; number < 1500; ++number) {
    const StageProblem problem = randomStages(random, number % 3 ? 1 : 3);
    AllSplits all{problem, {}, {}};
    all.choose(int64_t(problem.blocks.size()));
    Expected<StageProblem::Solution> found = splitStages(problem);
    ASSERT_EQ(found.ok(), all.best.has_value()) << number;
    if (!found.ok()) {
      EXPECT_EQ(found.status().kind(), ErrorKind::Capacity);
      ++infeasible;
      continue;
    }
    Status verified = problem.verify(*found);
    ASSERT_TRUE(verified.ok()) << number << ": " << verified.message();
    ASSERT_NEAR(found->seconds, *all.best, 1e-12) << number;
    ASSERT_NEAR(found->bound, *all.best, 1e-12) << number;
  }
  EXPECT_GT(infeasible, 50);
  EXPECT_LT(infeasible, 900);
}

TEST(StageProblem, memoryMovesBlocksToLaterStages) {
  // Four stages of 1F1B keep 4, 3, 2 and 1 micro-batches: 8 blocks of 1 and 10 a micro-batch; stage 0 has 41 a block.
  StageProblem problem;
  problem.blocks.assign(8, {1, 1, 10});
  problem.stages = 4;
  problem.inFlight = {4, 3, 2, 1};
  EXPECT_EQ(splitStages(problem)->counts, (std::vector<int64_t>{2, 2, 2, 2}));
  problem.memory = 62;
  Expected<StageProblem::Solution> found = splitStages(problem);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->counts, (std::vector<int64_t>{1, 2, 2, 3}));
  EXPECT_EQ(found->seconds, 3);
  problem.memory = 40;
  EXPECT_FALSE(splitStages(problem).ok());
}

TEST(StageProblem, schedulesKeepWhatTheirPapersSay) {
  using plan::ScheduleKind;
  auto microBatchesInFlight = [](ScheduleKind kind, int64_t stages, int64_t chunks, int64_t microBatches) {
    return plan::keptCopies(*plan::makeSchedule(kind, stages, chunks, microBatches), chunks);
  };
  EXPECT_EQ(microBatchesInFlight(ScheduleKind::GPipe, 4, 1, 8), (std::vector<int64_t>{8, 8, 8, 8}));                   // Huang et al. 2019
  EXPECT_EQ(microBatchesInFlight(ScheduleKind::OneForwardOneBackward, 4, 1, 8), (std::vector<int64_t>{4, 3, 2, 1})); // Narayanan et al. 2019
  EXPECT_EQ(microBatchesInFlight(ScheduleKind::OneForwardOneBackward, 4, 1, 2), (std::vector<int64_t>{2, 2, 2, 1}));
  EXPECT_EQ(microBatchesInFlight(ScheduleKind::Inference, 3, 1, 8), (std::vector<int64_t>{1, 1, 1}));
}

TEST(StageProblem, largeOnesTakeMilliseconds) {
  StageProblem problem;
  for (int block = 0; block < 128; ++block)
    problem.blocks.push_back({block == 127 ? 1.7 : block == 0 ? 1.2 : 1, 10, 3});
  problem.stages = 64;
  for (int64_t stage = 0; stage < 64; ++stage)
    problem.inFlight.push_back(64 - stage);
  const auto begin = std::chrono::steady_clock::now();
  Expected<StageProblem::Solution> found = splitStages(problem);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(problem.verify(*found).ok());
  problem.stages = 16;
  problem.chunks = 4;
  EXPECT_TRUE(splitStages(problem, 100000).ok());
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 2);
}

TEST(StageProblem, refusesWhatIsNoProblem) {
  StageProblem problem;
  problem.blocks.assign(2, {1, 1, 1});
  problem.stages = 3;
  problem.inFlight = {1, 1, 1};
  EXPECT_FALSE(problem.check().ok());
  problem.stages = 2;
  EXPECT_FALSE(problem.check().ok());
  problem.inFlight = {1, 1};
  EXPECT_TRUE(problem.check().ok());
  EXPECT_FALSE(problem.verify({{2, 0}, 2, 2}).ok());
  EXPECT_FALSE(problem.verify({{1, 1}, 2, 1}).ok());
  EXPECT_FALSE(problem.verify({{1, 1}, 1, 1.5}).ok());
  EXPECT_TRUE(problem.verify({{1, 1}, 1, 1}).ok());
  problem.blocks[0].seconds = -1;
  EXPECT_FALSE(splitStages(problem).ok());
}
