// What an op's results are partial over, result by result: a factor may be summed for one result and kept by another, and a
// partial operand may reach one result and not another.
#include "compiler/Dialect/Dist/FactorShardings.h"

#include "gtest/gtest.h"

using namespace hpc;
using namespace hpc::dist;

namespace {

Sharding parse(const char *text) { return *parseSharding(text); }

/// Row sums and column sums of one operand: each result lacks the factor that the other has.
TEST(FactorShardings, ReductionsArePerResult) {
  Mesh mesh = *parseMesh("a=2:data, b=3:tensor");
  ShardingRule rule = buildRule("mk->m,k; sum mk", {{4, 6}}, {{4}, {6}});
  OpSharding op = inferFromOperands(rule, {parse("[4@a, 6@b]")}, mesh);
  EXPECT_EQ(toString(op.result(0, mesh)), "[4@a] partial{b}");
  EXPECT_EQ(toString(op.result(1, mesh)), "[6@b] partial{a}");
  // Read back from the types, with what passes through.
  std::string why;
  auto again = readOpSharding(rule, {parse("[4@a, 6@b]")}, {op.result(0, mesh), op.result(1, mesh)}, mesh, why);
  ASSERT_TRUE(again) << why;
  again->setPassing({AxisNames{"b"}, AxisNames{"a"}}, {AxisNames()});
  EXPECT_TRUE(again->passing.empty());
}

/// As attention's output is linear in the values, and its log-sum-exp does not depend on them.
TEST(FactorShardings, PassingIsPerResult) {
  Mesh mesh = *parseMesh("tp=2:tensor");
  ShardingRule rule = buildRule("m,mv->mv,m; linear 1 -> 0", {{4}, {4, 6}}, {{4, 6}, {4}});
  OpSharding op = inferFromOperands(rule, {parse("[4]"), parse("[4, 6] partial{tp}")}, mesh);
  EXPECT_EQ(toString(op.operand(1, mesh)), "[4, 6] partial{tp}");
  EXPECT_EQ(toString(op.result(0, mesh)), "[4, 6] partial{tp}");
  EXPECT_EQ(toString(op.result(1, mesh)), "[4]");
  op.setPassing({AxisNames{"tp"}, AxisNames()}, {AxisNames(), AxisNames{"tp"}});
  EXPECT_EQ(op.passing, AxisNames{"tp"});
  EXPECT_EQ(op.carrier, 1);
}

/// A batch of 2 over two micro-batches and dp=3: dp cuts blocks of one row, and the merged dim does not tell whose they were.
TEST(FactorShardings, PinnedAxesOfMergedDimsFollowTheOtherDims) {
  Mesh mesh = *parseMesh("mb=2:time, dp=3:data");
  std::string why;
  ShardingRule merge = buildRule("mn->(mn)", {{8, 10}}, {{80}});
  auto merged = readOpSharding(merge, {parse("[(1@dp, 8@mb), 10]")}, {parse("[(1@dp, 80@mb)]")}, mesh, why);
  ASSERT_TRUE(merged) << why;
  EXPECT_EQ(toString(merged->operand(0, mesh)), "[(1@dp, 8@mb), 10]");
  EXPECT_EQ(toString(merged->result(0, mesh)), "[(1@dp, 80@mb)]");
  ShardingRule split = buildRule("(mn)->mn", {{80}}, {{8, 10}});
  auto apart = readOpSharding(split, {parse("[(1@dp, 80@mb)]")}, {parse("[(1@dp, 8@mb), 10]")}, mesh, why);
  ASSERT_TRUE(apart) << why;
  EXPECT_EQ(toString(apart->result(0, mesh)), "[(1@dp, 8@mb), 10]");
}

/// Two empty parts make an empty dim (a convolution's state of no columns): its digits weigh nothing, and dividing by them would be the end.
TEST(FactorShardings, AnEmptyMergedDimIsRead) {
  Mesh mesh = *parseMesh("tp=2:tensor");
  std::string why;
  ShardingRule rule; // two parts of no element
  rule.factors.push_back({2, false, {}});
  rule.factors.push_back({0, true, {}});
  rule.operands.push_back({{1}});
  rule.results.push_back({{0, 1}});
  auto op = readOpSharding(rule, {parse("[0]")}, {parse("[0]")}, mesh, why);
  ASSERT_TRUE(op) << why;
  EXPECT_EQ(toString(op->result(0, mesh)), "[0]");
}

} // namespace
