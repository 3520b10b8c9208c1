// Every sharding of small tensors into every other, each step simulated on explicit elements; and the sequences one
// expects.
#include "ReshardSimulator.h"

#include <gmock/gmock.h>

using namespace hpc;
using namespace hpc::dist;
using testing::HasSubstr;

static const char *nameOf(ReshardStep::Kind kind) {
  static const char *names[] = {"slice", "permute", "all-to-all", "all-gather", "all-reduce", "accumulate", "reduce-scatter"};
  return names[kind];
}

static std::string describe(const std::vector<ReshardStep> &steps) {
  std::string text;
  for (const ReshardStep &step : steps) {
    text += (text.empty() ? "" : ", ") + std::string(nameOf(step.kind));
    for (const std::string &axis : step.axes)
      text += " " + axis;
  }
  return text;
}

static std::string simulate(const Sharding &from, const Sharding &to, const Mesh &mesh,
                            std::vector<ReshardStep> &steps) {
  Expected<std::vector<ReshardStep>> plan = planReshard(from, to, mesh);
  if (!plan.ok())
    return plan.status().message();
  steps = *plan;
  brute::ReshardSimulator simulator(from, mesh);
  for (size_t i = 0; i < steps.size(); ++i)
    if (std::string wrong = simulator.run(steps[i]); !wrong.empty())
      return "step " + std::to_string(i) + ": " + wrong;
  if (std::string wrong = simulator.check(to); !wrong.empty())
    return wrong;
  bool equal = normalize(from, mesh) == normalize(to, mesh);
  if (equal != steps.empty())
    return equal ? "steps between equal shardings" : "no steps between different shardings";
  return "";
}

/// Every sharding of a shape: up to two sub-dims a dim, every cut, every choice of partial axes; one of each meaning.
static std::vector<Sharding> allShardings(const std::vector<int64_t> &shape, const Mesh &mesh) {
  std::map<std::string, Sharding> found;
  std::function<void(Sharding, size_t)> extend = [&](Sharding sharding, size_t d) {
    if (d == shape.size()) {
      std::vector<SubDim> subs;
      for (const DimSharding &dim : sharding.dims)
        subs.insert(subs.end(), dim.begin(), dim.end());
      brute::forEachCut(subs, mesh, [&] {
        Sharding cut = sharding;
        size_t next = 0;
        for (DimSharding &dim : cut.dims)
          for (SubDim &sub : dim)
            sub = subs[next++];
        std::vector<std::string> free, used = cutAxes(cut);
        for (const Mesh::Axis &axis : mesh.axes)
          if (std::find(used.begin(), used.end(), axis.name) == used.end())
            free.push_back(axis.name);
        for (size_t mask = 0; mask < size_t(1) << free.size(); ++mask) {
          cut.partial.clear();
          for (size_t i = 0; i < free.size(); ++i)
            if (mask >> i & 1)
              cut.partial.push_back(free[i]);
          Sharding normal = normalize(cut, mesh);
          found.try_emplace(toString(normal), normal);
        }
      });
      return;
    }
    for (int64_t major = 1; major <= shape[d]; ++major)
      if (shape[d] % major == 0 && major <= 6 && shape[d] / major <= 6) {
        Sharding more = sharding;
        more.dims.push_back({{major, {}}, {shape[d] / major, {}}});
        extend(more, d + 1);
      }
  };
  extend({}, 0);
  std::vector<Sharding> result;
  for (auto &[text, sharding] : found)
    result.push_back(sharding);
  return result;
}

/// All pairs, or with `every` > 1 each so-many-th.
static void checkPairs(const std::vector<int64_t> &shape, const std::vector<int64_t> &sizes, size_t every = 1) {
  Mesh mesh = brute::mesh(sizes);
  std::vector<Sharding> all = allShardings(shape, mesh);
  size_t number = 0, failures = 0;
  for (const Sharding &from : all)
    for (const Sharding &to : all) {
      if (!std::includes(from.partial.begin(), from.partial.end(), to.partial.begin(), to.partial.end()) ||
          number++ % every != 0)
        continue;
      std::vector<ReshardStep> steps;
      std::string wrong = simulate(from, to, mesh, steps);
      ASSERT_LE(failures += !wrong.empty(), 5u);
      EXPECT_EQ(wrong, "") << toString(from) << " to " << toString(to) << ": " << describe(steps);
    }
  EXPECT_GT(number, 0u);
}

TEST(Reshard, AllPairsOverOneAxis) {
  for (int64_t k : {2, 3, 4})
    for (auto shape : std::vector<std::vector<int64_t>>{{1, 1}, {1, 4}, {2, 3}, {4, 4}, {5, 6}, {6, 10}, {12, 9}})
      checkPairs(shape, {k});
}
TEST(Reshard, AllPairsOverTwoAxes) {
  for (auto shape : std::vector<std::vector<int64_t>>{{1, 1}, {1, 2}, {1, 6}, {2, 2}, {3, 4}, {4, 4}, {5, 4}, {6, 3}}) {
    checkPairs(shape, {2, 2});
    checkPairs(shape, {2, 3});
  }
}
TEST(Reshard, SampledPairsOfLargerShapes) {
  for (auto shape : std::vector<std::vector<int64_t>>{{12, 6}, {6, 20}, {36, 4}, {18, 12}}) {
    checkPairs(shape, {2, 2}, 47);
    checkPairs(shape, {2, 3}, 47);
    checkPairs(shape, {4, 2}, 47);
  }
  checkPairs({4, 6}, {2, 2, 2}, 97);
  checkPairs({4, 6}, {2, 3, 2}, 97);
}

TEST(Reshard, Examples) {
  Mesh mesh = *parseMesh("dp=2:data, tp=2:tensor, q=3:tensor, mb=2:time");
  for (auto [from, to, steps] : std::vector<std::tuple<const char *, const char *, const char *>>{
           {"[4@dp, 8]", "[4@dp, 8]", ""},
           {"[(4@dp, 2), 8]", "[8@dp, 8]", ""},
           {"[8, 8]", "[8@dp, 8@tp]", "slice dp, slice tp"},
           {"[8@dp, 8]", "[8, 8]", "all-gather dp"},
           {"[8@tp, 8]", "[8, 8@tp]", "all-to-all tp"},
           {"[8@(dp, tp), 8]", "[8@dp, 8@tp]", "all-to-all tp"},
           {"[8@tp, 8]", "[8@dp, 8@tp]", "permute tp dp, slice tp"},
           {"[8@dp, 8@tp]", "[8@tp, 8@dp]", "permute dp tp"},
           {"[8@(dp, tp)]", "[8@(tp, dp)]", "permute dp tp"},
           {"[6@(tp, q)]", "[6@(q, tp)]", "permute tp q"},
           {"[8@tp, 9@q]", "[8@q, 9@tp]", "all-gather q, all-to-all tp, slice q"},
           {"[8] partial{tp}", "[8]", "all-reduce tp"},
           {"[8] partial{tp}", "[8@tp]", "reduce-scatter tp"},
           {"[8@dp] partial{tp}", "[8@(dp, tp)]", "reduce-scatter tp"},
           {"[8@dp] partial{tp}", "[8@tp]", "all-reduce tp, permute dp tp"},
           {"[8] partial{dp, tp}", "[8@tp] partial{dp}", "reduce-scatter tp"},
           {"[8] partial{dp, tp}", "[8@(dp, tp)]", "reduce-scatter dp, reduce-scatter tp"},
           // Several axes at once are one all-reduce; what time adds up comes first, so the rest is once a step.
           {"[8] partial{dp, tp}", "[8]", "all-reduce dp tp"},
           {"[8] partial{dp, mb, tp}", "[8]", "accumulate mb, all-reduce dp tp"},
           {"[8, 6] partial{dp, mb}", "[8@dp, 6]", "accumulate mb, reduce-scatter dp"},
           {"[8, 6@tp] partial{dp, mb}", "[8, 6@tp] partial{dp}", "accumulate mb"},
           {"[(3, 5@tp, 8)]", "[120]", "all-gather tp"},
           {"[120@tp]", "[(3, 5@tp, 8)]", "all-gather tp, slice tp"},
           {"[120@tp]", "[(3, 40@tp)]", "all-gather tp, slice tp"},
           {"[(4@tp, 10)]", "[(4, 10@tp)]", "all-to-all tp"},
           {"[7@(tp, q)]", "[7@(q, tp)]", "all-gather q, all-gather tp, slice q, slice tp"},
           {"[1@tp]", "[1@(dp, tp)]", "slice dp"},
           {"[1@(dp, tp)]", "[1@tp]", "all-gather dp"},
           {"[1@tp, 4]", "[1, 4@tp]", "all-to-all tp"}}) {
    std::vector<ReshardStep> plan;
    EXPECT_EQ(simulate(*parseSharding(from), *parseSharding(to), mesh, plan), "") << from << " to " << to;
    EXPECT_EQ(describe(plan), steps) << from << " to " << to;
  }
}

TEST(Reshard, GatherThenSliceActsOnWholeSubDims) {
  auto steps = planReshard(*parseSharding("[120@tp]"), *parseSharding("[(3, 5@tp, 8)]"), *parseMesh("tp=2:tensor"));
  ASSERT_TRUE(steps.ok());
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ(toString((*steps)[0].before), "[120@tp]");
  EXPECT_EQ(toString((*steps)[0].after), "[120]");
  EXPECT_EQ(toString((*steps)[1].before), "[(3, 5, 8)]");
  EXPECT_EQ(toString((*steps)[1].after), "[(3, 5@tp, 8)]");
  EXPECT_EQ((*steps)[1].toSub, 1);
}

TEST(Reshard, Refusals) {
  Mesh mesh = *parseMesh("tp=2:tensor");
  auto refuse = [&](const char *from, const char *to) {
    return planReshard(*parseSharding(from), *parseSharding(to), mesh).status().message();
  };
  EXPECT_THAT(refuse("[4]", "[5]"), HasSubstr("different global shapes"));
  EXPECT_THAT(refuse("[4]", "[4] partial{tp}"), HasSubstr("a full value is not a partial sum over 'tp'"));
  EXPECT_THAT(refuse("[4]", "[4@dp]"), HasSubstr("has no axis 'dp'"));
}

TEST(Reshard, BytesMoved) {
  Mesh mesh = *parseMesh("dp=2:data, q=4:tensor");
  auto bytes = [&](const char *from, const char *to) {
    return bytesMoved(*planReshard(*parseSharding(from), *parseSharding(to), mesh), mesh, 4);
  };
  EXPECT_EQ(bytes("[8, 16]", "[8@dp, 16@q]"), 0);
  EXPECT_EQ(bytes("[8, 16@q]", "[8, 16]"), 3 * 8 * 4 * 4);           // 3 of 4 parts
  EXPECT_EQ(bytes("[8, 10@q]", "[8, 10]"), 3 * 8 * 3 * 4);           // boxes of 3, one of them mostly padding
  EXPECT_EQ(bytes("[8@q, 16]", "[8, 16@q]"), 3 * 2 * 4 * 4);         // 3 chunks of 2 x 4
  EXPECT_EQ(bytes("[8, 16] partial{q}", "[8, 16]"), 2 * 3 * 32 * 4); // twice 3/4
  EXPECT_EQ(bytes("[8, 16] partial{q}", "[8, 16@q]"), 3 * 32 * 4);
  EXPECT_EQ(bytes("[2, 33, 40] partial{dp}", "[2, 33, 40]"), 10560); // the worked example's all-reduce
  EXPECT_EQ(bytes("[8, 16] partial{dp, q}", "[8, 16]"), 2 * 7 * 16 * 4); // one ring of 8
  EXPECT_EQ(bytes("[8@dp, 16]", "[8@dp, 16]"), 0);
  EXPECT_EQ(bytesMoved(*planReshard(*parseSharding("[8@x]"), *parseSharding("[8@y]"), *parseMesh("x=2:tensor, y=2:tensor")),
                       *parseMesh("x=2:tensor, y=2:tensor"), 4),
            4 * 4);
}
