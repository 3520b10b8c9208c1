// The text form: what is printed parses back, and what is wrong is refused with its place.
#include "compiler/Dialect/Dist/Sharding.h"

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
  for (const char *text : {"", "tp=2", "mb=2, dp=1, tp.row=4"}) {
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
           {"[4] partial{}", "expected the name of a mesh axis at column 13"}}) {
    Expected<Sharding> sharding = parseSharding(text);
    ASSERT_FALSE(sharding.ok()) << text;
    EXPECT_EQ(sharding.status().kind(), ErrorKind::Sidecar);
    EXPECT_THAT(sharding.status().message(), HasSubstr(message));
  }
  for (auto [text, message] :
       std::vector<std::pair<const char *, const char *>>{{"tp", "expected '='"},
                                                          {"tp=0", "axis 'tp' has size 0"},
                                                          {"a=2, a=3", "axis 'a' is given twice"},
                                                          {"a=2 b=3", "unexpected text"},
                                                          {"a=2,", "expected the name"}}) {
    Expected<Mesh> mesh = parseMesh(text);
    ASSERT_FALSE(mesh.ok()) << text;
    EXPECT_EQ(mesh.status().kind(), ErrorKind::Usage);
    EXPECT_THAT(mesh.status().message(), HasSubstr(message));
  }
}

TEST(ShardingText, VerifyNamesWhatIsWrong) {
  Mesh mesh = *parseMesh("dp=2, tp=3");
  auto check = [&](const char *text, std::vector<int64_t> shape) { return verify(*parseSharding(text), shape, mesh); };
  EXPECT_TRUE(check("[4@dp, (3, 5@tp)]", {4, 15}).ok());
  EXPECT_THAT(check("[4]", {4, 1}).message(), HasSubstr("has 1 dims, the tensor has 2"));
  EXPECT_THAT(check("[(3, 4)]", {10}).message(), HasSubstr("multiply to 12, the tensor's dim is 10"));
  EXPECT_THAT(check("[4@pp]", {4}).message(), HasSubstr("has no axis 'pp'"));
  EXPECT_THAT(check("[4@tp, 3@tp]", {4, 3}).message(), HasSubstr("'tp' is used twice"));
  EXPECT_THAT(check("[4@tp] partial{tp}", {4}).message(), HasSubstr("'tp' is used twice"));
  EXPECT_THAT(verify({{{{-2, {}}, {-2, {}}}}, {}}, {4}, mesh).message(), HasSubstr("negative size -2"));
}
