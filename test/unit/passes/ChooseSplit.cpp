// The balanced split against all splits there are.
#include "passes/Stage/Blocks.h"

#include <gtest/gtest.h>

#include <random>

using namespace hpc;

namespace {

double sum(ArrayRef<double> costs) { return std::accumulate(costs.begin(), costs.end(), 0.0); }

/// The least that the largest of `parts` parts can cost.
double leastWorst(ArrayRef<double> costs, size_t parts) {
  if (parts == 1)
    return sum(costs);
  double best = std::numeric_limits<double>::infinity();
  for (size_t first = 1; first + parts - 1 <= costs.size(); ++first)
    best = std::min(best, std::max(sum(costs.take_front(first)), leastWorst(costs.drop_front(first), parts - 1)));
  return best;
}

std::vector<size_t> split(std::vector<double> costs, int64_t parts) {
  Blocks blocks;
  blocks.firstOp.resize(costs.size());
  blocks.cost = std::move(costs);
  return *chooseSplit(func::FuncOp(), blocks, parts, 1, "balanced");
}

// A worse split is a slower pipeline that nothing else would notice.
TEST(ChooseSplit, BalancedIsTheBestOfAll) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> costs(1 + random() % 9);
    for (double &cost : costs)
      cost = double(random() % (round % 2 ? 4 : 100));
    size_t parts = 1 + random() % costs.size();
    double worst = 0;
    ArrayRef<double> rest = costs;
    std::vector<size_t> counts = split(costs, int64_t(parts));
    ASSERT_EQ(counts.size(), parts);
    for (size_t count : counts) {
      ASSERT_GT(count, 0u);
      worst = std::max(worst, sum(rest.take_front(count)));
      rest = rest.drop_front(count);
    }
    EXPECT_TRUE(rest.empty());
    EXPECT_EQ(worst, leastWorst(costs, parts));
  }
}

// As many blocks as a program has products at most: more than linear time would be felt.
TEST(ChooseSplit, IsQuickForManyBlocks) {
  std::vector<size_t> counts = split(std::vector<double>(100000, 1.0), 24);
  EXPECT_EQ(*std::max_element(counts.begin(), counts.end()), 4167u);
}

} // namespace
