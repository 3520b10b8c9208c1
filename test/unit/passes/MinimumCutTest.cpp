// What recompute keeps is a minimum cut: compared with all cuts of small graphs.
#include "passes/Recompute/MinimumCut.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <random>
#include <tuple>

using hpc::MinimumCut;

namespace {

struct Edge {
  size_t from, to;
  int64_t capacity;
};

/// What goes from the source's side to the sink's.
int64_t capacityOf(const std::vector<Edge> &edges, const std::vector<bool> &sinkSide) {
  int64_t sum = 0;
  for (const Edge &edge : edges)
    if (!sinkSide[edge.from] && sinkSide[edge.to])
      sum += edge.capacity;
  return sum;
}

/// 500 graphs of up to 8 nodes, cycles, parallel edges and unlimited ones among them. A flow that stops early gives a cut
/// that is too dear, one that is read off the wrong side one that runs more ops again than it must: of all least cuts
/// it has to be the one whose sink side is smallest.
TEST(MinimumCut, isTheLeastOfAllCutsAndNearestToTheSink) {
  std::mt19937 random(1);
  auto below = [&](size_t n) { return size_t(random() % n); };
  for (int round = 0; round < 500; ++round) {
    size_t nodes = 2 + below(7);
    std::vector<Edge> edges;
    for (size_t i = 0, count = below(4 * nodes); i < count; ++i)
      edges.push_back({below(nodes), below(nodes), below(8) ? int64_t(below(5)) : MinimumCut::unlimited});
    MinimumCut cut(nodes);
    for (const Edge &edge : edges)
      cut.addEdge(edge.from, edge.to, edge.capacity);
    int64_t least = std::numeric_limits<int64_t>::max();
    size_t fewest = nodes;
    for (size_t set = 0; set < (size_t(1) << nodes); ++set) {
      std::vector<bool> side(nodes);
      for (size_t node = 0; node < nodes; ++node)
        side[node] = set >> node & 1;
      if (side[0] || !side[1])
        continue;
      int64_t capacity = capacityOf(edges, side);
      size_t size = size_t(std::count(side.begin(), side.end(), true));
      if (std::tie(capacity, size) < std::tie(least, fewest)) {
        least = capacity;
        fewest = size;
      }
    }
    if (least >= MinimumCut::unlimited)
      continue; // no cut is possible: nothing is promised
    std::vector<bool> side = cut.sinkSide(0, 1);
    ASSERT_FALSE(side[0]) << "round " << round;
    ASSERT_TRUE(side[1]) << "round " << round;
    EXPECT_EQ(capacityOf(edges, side), least) << "round " << round;
    EXPECT_EQ(size_t(std::count(side.begin(), side.end(), true)), fewest) << "round " << round;
  }
}

} // namespace
