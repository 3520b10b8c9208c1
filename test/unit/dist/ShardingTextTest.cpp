// The text form: what is printed parses back, and what is wrong is refused with its place.
#include "compiler/Dialect/Dist/ShardingSeed.h"

#include <gmock/gmock.h>

using namespace hpc;
using namespace hpc::dist;
using testing::HasSubstr;

TEST(ShardingText, RoundTrips) {
  for (const char *text :
       {"[]", "[1]", "[4@mb, 33, (3, 5@tp, 8)] partial{dp}", "[8@(dp, tp)]", "[(1@tp, 3)] partial{dp, mb}",
        "[503@tp, 40]", "[0, 9223372036854775807]", "[5@(tp.row, tp.col)]"}) {
    Expected<Sharding> sharding = parseSharding(text);
    ASSERT_TRUE(sharding.ok()) << sharding.status().text();
    EXPECT_EQ(toString(*sharding), text);
  }
  Expected<Sharding> loose = parseSharding(" [ ( 3,5 @ tp ),2@(a)]partial{ z,y } ");
  ASSERT_TRUE(loose.ok()) << loose.status().text();
  EXPECT_EQ(toString(*loose), "[(3, 5@tp), 2@a] partial{y, z}");
  for (const char *text : {"", "tp=2:tensor", "mb=2:time, dp=1:data, tp.row=4:tensor"}) {
    Expected<Mesh> mesh = parseMesh(text);
    ASSERT_TRUE(mesh.ok()) << mesh.status().text();
    EXPECT_EQ(toString(*mesh), text);
  }
}

TEST(ShardingText, RefusesWithPlace) {
  for (auto [text, message] : std::vector<std::pair<const char *, const char *>>{
           {"", "expected '[' at column 1"},
           {"[4", "expected ']' at column 3"},
           {"[4@]", "expected the name of a mesh axis at column 4"},
           {"[4@(a,]", "expected the name of a mesh axis at column 7"},
           {"[(2, 3]", "expected ')' at column 7"},
           {"[-1]", "expected a number at column 2"},
           {"[9223372036854775808]", "the number is too large"},
           {"[4] x", "unexpected text at column 5"},
           {"[4?]", "expected ']'"},
           // 7 * 2635249153387078808 is 40 modulo 2^64, and was taken for it.
           {"[(7, 2635249153387078808@tp)]", "multiply to more than 2^63 - 1"},
           {"[4] partial{}", "expected the name of a mesh axis at column 13"}}) {
    Expected<Sharding> sharding = parseSharding(text);
    ASSERT_FALSE(sharding.ok()) << text;
    EXPECT_EQ(sharding.status().kind(), ErrorKind::Sidecar);
    EXPECT_THAT(sharding.status().message(), HasSubstr(message));
  }
  for (auto [text, message] :
       std::vector<std::pair<const char *, const char *>>{{"tp", "expected '='"},
                                                          {"tp=0:tensor", "axis 'tp' has size 0"},
                                                          {"a=2:tensor, a=3:tensor", "axis 'a' is given twice"},
                                                          {"mb=2, tp=2", "axis 'mb' needs a role: time, data"},
                                                          {"tp=2:model", "axis 'tp' needs a role"},
                                                          {"a=2:data b=3", "unexpected text"},
                                                          {"a=2:sequence,", "expected the name"}}) {
    Expected<Mesh> mesh = parseMesh(text);
    ASSERT_FALSE(mesh.ok()) << text;
    EXPECT_EQ(mesh.status().kind(), ErrorKind::Usage);
    EXPECT_THAT(mesh.status().message(), HasSubstr(message));
  }
}

TEST(ShardingText, VerifyNamesWhatIsWrong) {
  Mesh mesh = *parseMesh("dp=2:data, tp=3:tensor");
  auto check = [&](const char *text, std::vector<int64_t> shape) { return verify(*parseSharding(text), shape, mesh); };
  EXPECT_TRUE(check("[4@dp, (3, 5@tp)]", {4, 15}).ok());
  EXPECT_THAT(check("[4]", {4, 1}).message(), HasSubstr("has 1 dim, the tensor has 2"));
  EXPECT_THAT(check("[(3, 4)]", {10}).message(), HasSubstr("multiply to 12, the tensor's dim is 10"));
  EXPECT_THAT(check("[4@pp]", {4}).message(), HasSubstr("has no axis 'pp'"));
  EXPECT_THAT(check("[4@tp, 3@tp]", {4, 3}).message(), HasSubstr("'tp' is used twice"));
  EXPECT_THAT(check("[4@tp] partial{tp}", {4}).message(), HasSubstr("'tp' is used twice"));
  EXPECT_THAT(verify({{{{-2, {}}, {-2, {}}}}, {}}, {4}, mesh).message(), HasSubstr("negative size -2"));
}

/// A seed's text says which dims others may cut; a bare sharding as a seed leaves open what it does not cut.
TEST(ShardingText, Seeds) {
  for (const char *text : {"[]", "[4@(mb, dp), 33?]", "[4, 33?, (3, 5@tp, 8)]"}) {
    Expected<Seed> seed = parseSeedSharding(text);
    ASSERT_TRUE(seed.ok()) << seed.status().text();
    EXPECT_EQ(shardingText(*seed), text);
    EXPECT_EQ(seed->open.size(), seed->sharding.dims.size());
  }
  EXPECT_THAT(parseSeedSharding("[4@tp?]").status().message(), HasSubstr("a dim that the seed cuts is closed"));
  EXPECT_THAT(parseSeedSharding("[4] partial{tp}").status().message(), HasSubstr("unexpected text"));
  EXPECT_EQ(shardingText(layoutSeed(*parseSharding("[4, 33@tp]"))), "[4?, 33@tp]");
  EXPECT_EQ(shardingText(layoutSeed(*parseSharding("[4, 33]"))), "[4, 33]");
}

/// Passes ask roles, whatever the names.
TEST(ShardingText, Roles) {
  Mesh mesh = *parseMesh("dp=2:time, tp=3:data, mb=5:tensor, row=2:tensor");
  EXPECT_THAT(mesh.axesOf(AxisRole::Tensor), testing::ElementsAre("mb", "row"));
  EXPECT_EQ(mesh.sizeOf(AxisRole::Tensor), 10);
  EXPECT_TRUE(mesh.axesOf(AxisRole::Pipeline).empty());
  EXPECT_TRUE(mesh.hasRole("dp", AxisRole::Time));
  EXPECT_FALSE(mesh.hasRole("absent", AxisRole::Tensor));
  EXPECT_TRUE(cutsBatch({"mb", "tp"}, mesh));
  EXPECT_FALSE(cutsBatch({"mb", "row"}, mesh));
  EXPECT_TRUE(isPerMicroBatch(*parseSharding("[4@mb] partial{dp}"), mesh));
  EXPECT_FALSE(isPerMicroBatch(*parseSharding("[4@tp] partial{mb}"), mesh));
  // Use is storage without what cuts over data.
  EXPECT_EQ(toString(withoutRows(*parseSharding("[8@(mb, tp), 6@row]"), mesh)), "[8@mb, 6@row]");
}
