// The choice of what layers keep, against all choices in turn and against CBC.
#include "passes/Search/KeepProblem.h"

#include <Cbc_C_Interface.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <random>

using namespace hpc;
using namespace hpc::search;

namespace {
std::optional<double> bruteForce(const KeepProblem &problem, size_t kind = 0, int64_t layer = 0, double seconds = 0, int64_t bytes = 0) {
  if (kind == problem.layers.size())
    return bytes <= problem.memory ? std::optional(seconds) : std::nullopt;
  if (layer == problem.layers[kind].count)
    return bruteForce(problem, kind + 1, 0, seconds, bytes);
  std::optional<double> best;
  for (const KeepProblem::Option &option : problem.layers[kind].options)
    if (std::optional<double> each = bruteForce(problem, kind, layer + 1, seconds + option.seconds, bytes + option.bytes); each && (!best || *each < *best))
      best = each;
  return best;
}

/// A whole number for each option: how many layers take it.
std::optional<double> cbc(const KeepProblem &problem) {
  Cbc_Model *model = Cbc_newModel();
  for (const char *gap : {"ratioGap", "allowableGap", "log"})
    Cbc_setParameter(model, gap, "0");
  std::vector<int> all;
  std::vector<double> bytes;
  int columns = 0;
  for (const KeepProblem::Layers &layers : problem.layers) {
    std::vector<int> own;
    for (const KeepProblem::Option &option : layers.options) {
      Cbc_addCol(model, "", 0, double(layers.count), option.seconds, true, 0, nullptr, nullptr);
      own.push_back(columns);
      all.push_back(columns++);
      bytes.push_back(double(option.bytes));
    }
    Cbc_addRow(model, "", int(own.size()), own.data(), std::vector<double>(own.size(), 1).data(), 'E', double(layers.count));
  }
  Cbc_addRow(model, "", int(all.size()), all.data(), bytes.data(), 'L', double(problem.memory));
  Cbc_setObjSense(model, 1);
  Cbc_solve(model);
  std::optional<double> seconds;
  if (Cbc_isProvenOptimal(model))
    seconds = Cbc_getObjValue(model);
  Cbc_deleteModel(model);
  return seconds;
}

KeepProblem randomKeep(std::mt19937 &random, int64_t mostKinds, int64_t mostLayers, int64_t mostOptions) {
  auto upTo = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  KeepProblem problem;
  int64_t all = 0;
  for (int64_t kinds = 1 + upTo(mostKinds - 1); kinds > 0; --kinds) {
    KeepProblem::Layers layers{{}, 1 + upTo(mostLayers - 1)};
    for (int64_t options = 1 + upTo(mostOptions - 1); options > 0; --options)
      layers.options.push_back({"", double(upTo(1000)) / 64, upTo(1000)});
    all += layers.count * 500;
    problem.layers.push_back(std::move(layers));
  }
  problem.memory = upTo(2 * all);
  return problem;
}

/// Whether it is the optimum, and none where there is none.
void expectOptimum(const KeepProblem &problem, const std::optional<double> &best, int number) {
  Expected<KeepProblem::Solution> found = chooseWhatIsKept(problem);
  ASSERT_EQ(found.ok(), best.has_value()) << number;
  if (!best)
    return;
  Status verified = problem.verify(*found);
  ASSERT_TRUE(verified.ok()) << number << ": " << verified.message();
  ASSERT_NEAR(found->seconds, *best, 1e-6) << number;
}
} // namespace

TEST(KeepProblem, equalsAllChoices) {
  std::mt19937 random(5);
  for (int number = 0; number < 1000; ++number) {
    const KeepProblem problem = randomKeep(random, 3, 3, 4);
    expectOptimum(problem, bruteForce(problem), number);
  }
}

TEST(KeepProblem, equalsCbc) {
  std::mt19937 random(9);
  for (int number = 0; number < 25; ++number) {
    const KeepProblem problem = randomKeep(random, 4, 30, 8);
    expectOptimum(problem, cbc(problem), number);
  }
}

TEST(KeepProblem, boundIsACertificate) {
  // Two layers, 3 s less for 4 bytes each, 5 bytes: one of them takes it. At 0.75 s a byte both are indifferent: 2 * 5 - 0.75 * 5.
  KeepProblem problem;
  problem.layers = {{{{"again", 5, 0}, {"kept", 2, 4}}, 2}};
  problem.memory = 5;
  Expected<KeepProblem::Solution> found = chooseWhatIsKept(problem);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->chosen, (std::vector<std::vector<int64_t>>{{1, 1}}));
  EXPECT_EQ(found->seconds, 7);
  EXPECT_NEAR(found->price, 0.75, 1e-9);
  EXPECT_NEAR(found->bound, 6.25, 1e-9);
  problem.memory = 8;
  EXPECT_EQ(chooseWhatIsKept(problem)->price, 0);
  EXPECT_EQ(chooseWhatIsKept(problem)->bound, 4);
}

TEST(KeepProblem, fortyEightLayersOfSixteenAreFast) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  KeepProblem problem;
  for (int layer = 0; layer < 48; ++layer) {
    KeepProblem::Layers layers;
    for (int option = 0; option < 16; ++option) {
      const double share = (option + uniform(random)) / 16; // faster with more memory, as what is worth a look is
      layers.options.push_back({"", 1e-3 * (1.2 - share) * (1 + 0.1 * uniform(random)), int64_t(1e9 * share)});
    }
    problem.layers.push_back(std::move(layers));
  }
  problem.memory = int64_t(48 * 0.4e9);
  const auto begin = std::chrono::steady_clock::now();
  Expected<KeepProblem::Solution> found = chooseWhatIsKept(problem);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(problem.verify(*found).ok());
  EXPECT_LT(found->seconds - found->bound, 1e-3 * found->seconds);
  EXPECT_LT(seconds, 0.2);
}

TEST(KeepProblem, refusesWhatIsNoProblem) {
  KeepProblem problem;
  problem.layers = {{{}, 1}};
  EXPECT_FALSE(problem.check().ok());
  problem.layers = {{{{"", 1, 10}}, 2}};
  problem.memory = 19;
  Expected<KeepProblem::Solution> found = chooseWhatIsKept(problem);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().kind(), ErrorKind::Capacity);
  EXPECT_NE(found.status().message().find("20 bytes"), std::string::npos);
  problem.layers[0].options[0].seconds = -1;
  EXPECT_FALSE(problem.check().ok());
}
