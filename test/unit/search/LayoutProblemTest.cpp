// Problems that are refused, and how ties become one variable.
#include "passes/Search/LayoutProblem.h"

#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::search;

TEST(LayoutProblem, TiedVariablesBecomeOne) {
  LayoutProblem problem;
  for (const char *name : {"a", "b", "c"})
    problem.addVariable(name, {{"whole", 1, 10}, {"cut", 2, 5}});
  problem.addEdge(0, 1, {0, 4, 4, 1});
  problem.addEdge(2, 1, {0, 7, 3, 0}); // rows by c
  problem.tie(1, 0);
  LayoutProblem::Condensed condensed = problem.condensed();
  ASSERT_EQ(condensed.problem.size(), 2u);
  EXPECT_EQ(condensed.of, (std::vector<size_t>{0, 0, 1}));
  EXPECT_EQ(condensed.problem.strategies(0)[1].seconds, 2 + 2 + 1);
  EXPECT_EQ(condensed.problem.strategies(0)[1].memory, 10);
  ASSERT_EQ(condensed.problem.edges().size(), 1u);
  EXPECT_EQ(condensed.problem.edges()[0].seconds, (std::vector<double>{0, 3, 7, 0})); // rows by a
  EXPECT_EQ(condensed.problem.secondsOf({1, 0}), problem.secondsOf({1, 1, 0}));
}

TEST(LayoutProblem, ChecksWhatItIsGiven) {
  LayoutProblem none;
  none.addVariable("a", {});
  EXPECT_EQ(none.check().message(), "layout problem: 'a': has no strategy");
  LayoutProblem table;
  table.addVariable("a", {{"x", 0, 0}});
  table.addVariable("b", {{"x", 0, 0}, {"y", 0, 0}});
  table.addEdge(0, 1, {0});
  EXPECT_EQ(table.check().message(), "layout problem: 'a': its edge to 'b' has 1 pairs");
  LayoutProblem negative;
  negative.addVariable("a", {{"x", -1, 0}});
  EXPECT_FALSE(negative.check().ok());
  LayoutProblem tied;
  tied.addVariable("a", {{"x", 0, 0}});
  tied.addVariable("b", {{"x", 0, 0}, {"y", 0, 0}});
  tied.tie(0, 1);
  EXPECT_FALSE(tied.check().ok());
}

TEST(LayoutProblem, VerifiesASolution) {
  LayoutProblem problem;
  problem.addVariable("a", {{"x", 1, 4}, {"y", impossible, 1}});
  problem.setCapacity(4);
  EXPECT_TRUE(problem.verify({{0}, 1, 4, 1}).ok());
  EXPECT_FALSE(problem.verify({{1}, impossible, 1, 1}).ok()); // impossible
  EXPECT_FALSE(problem.verify({{0}, 2, 4, 1}).ok());          // other seconds
  EXPECT_FALSE(problem.verify({{0}, 1, 4, 1.5}).ok());        // a bound above them
  problem.setCapacity(3);
  EXPECT_FALSE(problem.verify({{0}, 1, 4, 1}).ok()); // too much memory
}
