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

} // namespace
