// Elimination against all choices in turn and against CBC, on random graphs: ties, impossible pairs, capacities.
#include "BruteForce.h"
#include "passes/Search/Elimination.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

using namespace hpc;
using namespace hpc::search;

namespace {
/// Up to six variables of up to nine strategies: whole, and each of two axes on one of two factors or none.
LayoutProblem randomProblem(std::mt19937 &random, bool hasCapacity) {
  auto upTo = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  auto seconds = [&] { return upTo(15) == 0 ? impossible : double(upTo(1000)) * 1e-6; };
  LayoutProblem problem;
  size_t number = 2 + size_t(upTo(4)), most = size_t(hasCapacity ? 6 : 9);
  for (size_t i = 0; i < number; ++i) {
    std::vector<LayoutProblem::Strategy> strategies(2 + size_t(upTo(int(most) - 2)));
    for (LayoutProblem::Strategy &each : strategies)
      each = {"", seconds(), upTo(100)};
    problem.addVariable("v" + std::to_string(i), std::move(strategies));
  }
  for (size_t a = 0; a < number; ++a)
    for (size_t b = 0; b < number; ++b)
      if (a != b && upTo(2) == 0) {
        std::vector<double> table(problem.strategies(a).size() * problem.strategies(b).size());
        for (double &each : table)
          each = seconds();
        problem.addEdge(a, b, std::move(table));
      }
  for (size_t b = 1; b < number; ++b)
    if (size_t a = size_t(upTo(int(b) - 1)); problem.strategies(a).size() == problem.strategies(b).size() && upTo(1) == 0)
      problem.tie(a, b);
  if (hasCapacity)
    problem.setCapacity(int64_t(number) * (15 + upTo(40)));
  return problem;
}

void expectOptimal(const LayoutProblem &problem, const std::optional<LayoutProblem::Solution> &best, int seed) {
  Expected<LayoutProblem::Solution> found = solveByElimination(problem);
  ASSERT_EQ(found.ok(), best.has_value()) << "graph " << seed << (found.ok() ? "" : ": " + found.status().message());
  if (!best)
    return;
  Status verified = problem.verify(*found);
  ASSERT_TRUE(verified.ok()) << "graph " << seed << ": " << verified.message();
  ASSERT_NEAR(found->seconds, best->seconds, 1e-12) << "graph " << seed;
}

/// `layers` variables in a row, each of which can trade time for memory, with reshards between.
LayoutProblem chain(size_t layers, size_t strategies, double share) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  LayoutProblem problem;
  int64_t least = 0, most = 0;
  for (size_t layer = 0; layer < layers; ++layer) {
    std::vector<LayoutProblem::Strategy> each;
    for (size_t i = 0; i < strategies; ++i) {
      double memory = 1e9 * (0.2 + uniform(random));
      each.push_back({"", 1e-3 * (1 + uniform(random) + 5e8 / memory), int64_t(memory)});
    }
    auto [small, large] = std::minmax_element(each.begin(), each.end(), [](auto &a, auto &b) { return a.memory < b.memory; });
    least += small->memory;
    most += large->memory;
    problem.addVariable("layer " + std::to_string(layer), each);
    if (layer == 0)
      continue;
    std::vector<double> reshards;
    for (size_t i = 0; i < strategies * strategies; ++i)
      reshards.push_back(i % (strategies + 1) == 0 ? 0 : 2e-4 * uniform(random));
    problem.addEdge(layer - 1, layer, reshards);
  }
  problem.setCapacity(least + int64_t(share * double(most - least)));
  return problem;
}
} // namespace

TEST(Elimination, EqualsAllChoicesOnThousandRandomGraphs) {
  for (int seed = 0; seed < 1000; ++seed) {
    std::mt19937 random{unsigned(seed)};
    LayoutProblem problem = randomProblem(random, false);
    expectOptimal(problem, solveByBruteForce(problem), seed);
  }
}

TEST(Elimination, EqualsAllChoicesUnderACapacity) {
  int infeasible = 0;
  for (int seed = 0; seed < 1000; ++seed) {
    std::mt19937 random{unsigned(seed)};
    LayoutProblem problem = randomProblem(random, true);
    std::optional<LayoutProblem::Solution> best = solveByBruteForce(problem);
    infeasible += !best;
    expectOptimal(problem, best, seed);
  }
  EXPECT_GT(infeasible, 10); // so both answers occur
  EXPECT_LT(infeasible, 500);
}

TEST(Elimination, EqualsTheIntegerProgram) {
  for (int seed = 0; seed < 30; ++seed) {
    std::mt19937 random{unsigned(seed)};
    LayoutProblem problem = randomProblem(random, seed % 2);
    std::optional<double> best = solveByCbc(problem);
    Expected<LayoutProblem::Solution> found = solveByElimination(problem);
    ASSERT_EQ(found.ok(), best.has_value()) << "graph " << seed;
    if (best)
      EXPECT_NEAR(found->seconds, *best, 1e-8) << "graph " << seed;
  }
}

TEST(Elimination, SolvesLongChainsUnderACapacityInTime) {
  for (double share : {0.05, 0.2, 0.5, 0.8}) {
    LayoutProblem problem = chain(48, 16, share);
    auto start = std::chrono::steady_clock::now();
    Expected<LayoutProblem::Solution> found = solveByElimination(problem);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_TRUE(problem.verify(*found).ok());
    EXPECT_LT(seconds, 0.2) << "share " << share;
  }
}

TEST(Elimination, SecondsWithAStrategyAreThoseOfTheBestWithIt) {
  for (int seed = 0; seed < 50; ++seed) {
    std::mt19937 random{unsigned(seed)};
    LayoutProblem problem = randomProblem(random, false);
    for (size_t strategy = 0; strategy < problem.strategies(0).size(); ++strategy) {
      // A tied variable, of which all other strategies are impossible.
      std::vector<LayoutProblem::Strategy> only(problem.strategies(0).size(), {"", impossible, 0});
      only[strategy].seconds = 0;
      LayoutProblem tied = problem;
      tied.tie(0, tied.addVariable("judge", only));
      std::optional<LayoutProblem::Solution> best = solveByBruteForce(tied);
      Expected<double> found = secondsWith(problem, 0, strategy);
      ASSERT_EQ(found.ok(), best.has_value());
      if (best)
        EXPECT_NEAR(*found, best->seconds, 1e-12);
    }
  }
}

TEST(Elimination, SaysWhatTheLeastMemoryIs) {
  LayoutProblem problem = chain(4, 3, 0);
  problem.setCapacity(1);
  Expected<LayoutProblem::Solution> found = solveByElimination(problem);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().kind(), ErrorKind::Capacity);
  EXPECT_NE(found.status().message().find("the least memory is "), std::string::npos);
}
