// The order of positions that ranks of cp have under a causal mask: every position once, two intervals a rank, and work that is as even as
// positions are whole numbers.
#include "passes/Annotate/ZigzagOrder.h"

#include <gmock/gmock.h>

#include <numeric>

namespace hpc::test {
namespace {

// Written by hand: chunks 0 and 3 of 4, and 0 and 5 of 6; a size that no number of chunks divides has its lack on the last rank.
TEST(ZigzagOrder, ChunksOfBothEnds) {
  EXPECT_THAT(zigzagPositions(8, 2), testing::ElementsAre(0, 1, 6, 7, 2, 3, 4, 5));
  EXPECT_THAT(zigzagPositions(12, 3), testing::ElementsAre(0, 1, 10, 11, 2, 3, 8, 9, 4, 5, 6, 7));
  EXPECT_THAT(zigzagPositions(10, 3), testing::ElementsAre(0, 1, 8, 9, 2, 3, 6, 7, 4, 5));
  EXPECT_THAT(zigzagPositions(3, 2), testing::ElementsAre(0, 2, 1));
  EXPECT_THAT(zigzagPositions(2, 4), testing::ElementsAre(0, 1));
}

// A position that is missing or doubled is a row of logits that is another's; a third interval is one that attention would have to skip.
TEST(ZigzagOrder, EveryPositionOnceInTwoIntervals) {
  for (int64_t size = 1; size <= 70; ++size)
    for (int64_t ranks = 1; ranks <= 8; ++ranks) {
      const std::vector<int64_t> positions = zigzagPositions(size, ranks);
      std::vector<int64_t> sorted = positions, all(static_cast<size_t>(size));
      std::sort(sorted.begin(), sorted.end());
      std::iota(all.begin(), all.end(), 0);
      ASSERT_EQ(sorted, all) << size << " over " << ranks;
      const int64_t block = (size + ranks - 1) / ranks;
      for (int64_t first = 0; first < size; first += block) {
        int64_t breaks = 0;
        for (int64_t row = first + 1; row < std::min(size, first + block); ++row) {
          ASSERT_LT(positions[size_t(row - 1)], positions[size_t(row)]);
          breaks += positions[size_t(row)] != positions[size_t(row - 1)] + 1;
        }
        ASSERT_LE(breaks, 1) << size << " over " << ranks;
      }
    }
}

/// Keys that the queries of the busiest rank see, over the mean of all ranks.
double imbalanceOf(const std::vector<int64_t> &positions, int64_t ranks) {
  const int64_t size = int64_t(positions.size()), block = (size + ranks - 1) / ranks;
  int64_t most = 0, all = 0;
  for (int64_t first = 0; first < size; first += block) {
    int64_t seen = 0;
    for (int64_t row = first; row < std::min(size, first + block); ++row)
      seen += positions[size_t(row)] + 1;
    most = std::max(most, seen);
    all += seen;
  }
  return double(most) * double(ranks) / double(all);
}

// In plain order the last of many ranks has twice the mean. Where 2 ranks divide the positions all have the same, to the key.
TEST(ZigzagOrder, RanksHaveEqualWork) {
  for (int64_t ranks : {2, 3, 4, 8}) {
    EXPECT_EQ(imbalanceOf(zigzagPositions(1024 / (2 * ranks) * 2 * ranks, ranks), ranks), 1) << ranks;
    EXPECT_LT(imbalanceOf(zigzagPositions(1021, ranks), ranks), 1.01) << ranks;
    std::vector<int64_t> plain(1024);
    std::iota(plain.begin(), plain.end(), 0);
    EXPECT_GT(imbalanceOf(plain, ranks), 1.45) << ranks;
  }
}

} // namespace
} // namespace hpc::test
