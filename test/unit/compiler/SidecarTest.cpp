// The sidecar's plain parts: text there and back, patterns, cuts against the algebra of shardings.
#include "compiler/Sidecar/Cuts.h"
#include "compiler/Sidecar/Sidecar.h"

#include <gmock/gmock.h>

namespace hpc {
namespace {

using namespace dist;
using testing::HasSubstr;

// What --write-spec writes must be what --spec reads: every field, names with quotes, control characters and non-ASCII.
TEST(SidecarTest, TextThereAndBack) {
  Sidecar sidecar;
  sidecar.mesh = {{"pp", 3}, {"tp", 65536}, {"tp.x", 2}, {"tp.z", 3}};
  sidecar.layout = "2.5d";
  for (std::string name : {"a", "h.0/\"x\"\\[1]", "tab\tand\nline", "gewicht-\xc3\xa4"})
    for (int flags = 0; flags < 6; ++flags) {
      ParamRule rule;
      rule.match = patternFor(name);
      rule.optional = flags % 2;
      rule.inferred = flags / 2 == 1;
      rule.outputReplicate = flags / 2 == 2;
      SidecarCut whole, inside;
      whole.dim = -1;
      whole.axis = "tp";
      whole.parts = 2;
      inside.dim = 1;
      inside.of = {3, 12, 9223372036854775807};
      inside.at = 1;
      inside.axis = name;
      rule.shard = {whole, inside};
      if (flags % 3)
        rule.trainable = flags % 3 == 1;
      if (flags == 1) {
        rule.decidesCut = false;
        rule.shard.clear();
      }
      sidecar.params.push_back(rule);
      TensorRule tensor;
      tensor.match = name;
      tensor.shard = {inside};
      sidecar.tensors.push_back(tensor);
      StageRule stage;
      stage.match = name;
      stage.stage = flags;
      stage.chunk = flags / 2;
      sidecar.stages.push_back(stage);
    }
  std::string text = sidecarText(sidecar);
  Expected<Sidecar> read = parseSidecar(text, "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(sidecarText(*read), text);
  ASSERT_EQ(read->params.size(), sidecar.params.size());
  for (size_t i = 0; i < sidecar.params.size(); ++i) {
    const ParamRule &given = sidecar.params[i], &got = read->params[i];
    EXPECT_EQ(given.match, got.match);
    EXPECT_TRUE(given.shard == got.shard);
    EXPECT_EQ(given.decidesCut, got.decidesCut);
    EXPECT_EQ(given.trainable, got.trainable);
    EXPECT_EQ(given.outputReplicate, got.outputReplicate);
    EXPECT_EQ(given.inferred, got.inferred);
    EXPECT_EQ(given.optional, got.optional);
    EXPECT_EQ(sidecar.tensors[i].match, read->tensors[i].match);
    EXPECT_TRUE(sidecar.tensors[i].shard == read->tensors[i].shard);
    EXPECT_EQ(sidecar.stages[i].stage, read->stages[i].stage);
    EXPECT_EQ(sidecar.stages[i].chunk, read->stages[i].chunk);
  }
  EXPECT_EQ(read->mesh, sidecar.mesh);
  EXPECT_EQ(read->layout, sidecar.layout);
}

// A sidecar of nothing but brackets or keys: refused before its tree fills the memory, and in no time.
TEST(SidecarTest, EmptyValuesWithoutEnd) {
  auto errorOf = [](const std::string &text) { return parseSidecar(text, "s.json").status().message(); };
  auto repeated = [](const std::string &piece, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i)
      text += piece;
    return text;
  };
  for (const char *piece : {"{},", "[],", "1,", "null,"})
    EXPECT_THAT(errorOf("{\"params\": [" + repeated(piece, 4'000'000) + "{}]}"), HasSubstr("values so far, nearly all of them empty")) << piece;
  std::string keys;
  for (int64_t i = 0; i < 1000; ++i)
    keys += "\"" + std::to_string(i) + "\": 1,";
  EXPECT_THAT(errorOf("{" + keys + "\"x\": 1}"), HasSubstr("an object of more than 64 keys"));
  // A long list of real rules is none of that.
  Expected<Sidecar> real = parseSidecar("{\"version\": 1, \"params\": [" + repeated("{\"match\": \"a.weight\", \"shard\": []},", 100'000) +
                                        "{\"match\": \"*\", \"shard\": []}]}", "s.json");
  ASSERT_TRUE(real.ok()) << real.status().text();
  EXPECT_EQ(real->params.size(), 100'001u);
}

// A rule's line is that of its brace: --explain and errors send people there.
TEST(SidecarTest, LinesOfRules) {
  Expected<Sidecar> sidecar = parseSidecar("{\n\"version\": 1, \"params\": [\n\n  {\"match\":\n \"a\", \"shard\": []},"
                                           "{\"match\": \"b\", \"shard\":\n []},\n{\"shard\": [], \"match\": \"c\"}]}",
                                           "f");
  ASSERT_TRUE(sidecar.ok()) << sidecar.status().message();
  ASSERT_EQ(sidecar->params.size(), 3u);
  EXPECT_EQ(sidecar->place(sidecar->params[0]), "f:4");
  EXPECT_EQ(sidecar->place(sidecar->params[1]), "f:5");
  EXPECT_EQ(sidecar->place(sidecar->params[2]), "f:7");
}

// `*` crosses dots and slashes; a pattern made for a name matches that name and nothing that only looks like it.
TEST(SidecarTest, Patterns) {
  EXPECT_TRUE(matchesName("transformer.h.*.c_fc.*", "transformer.h.10.mlp.c_fc.weight"));
  EXPECT_TRUE(matchesName("/h.[0-1]/*", "/h.1/mlp/Add"));
  EXPECT_FALSE(matchesName("/h.[0-1]/*", "/h.2/mlp/Add"));
  EXPECT_FALSE(matchesName("c_fc", "mlp.c_fc"));
  EXPECT_FALSE(matchesName("A*", "a"));
  for (std::string name : {"onnx::MatMul_1", "a*b", "a[0]", "a?b", "a\\b", "[", "\\"}) {
    EXPECT_TRUE(matchesName(patternFor(name), name)) << name;
    for (std::string other : {"aXb", "a0", "ab", "a/b", "X"})
      EXPECT_FALSE(matchesName(patternFor(name), other)) << name << " " << other;
  }
}

// The nearest name is the one that a typing error would have been meant for, not the shortest; far ones are not offered.
TEST(SidecarTest, NearestNames) {
  std::vector<std::string> names = {"h", "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.weight", "h.1.mlp.c_fc.weight"};
  EXPECT_EQ(nearestMatch("h.*.mpl.c_fc.weight", names), "h.0.mlp.c_fc.weight");
  EXPECT_EQ(nearestMatch("h.1.mlp.c_fc.weigth", names), "h.1.mlp.c_fc.weight");
  EXPECT_EQ(nearestMatch("h.[0-9].mlp.cproj.*", names), "h.0.mlp.c_proj.weight");
  EXPECT_EQ(nearestMatch("zzzzzzzzzzzzzzz", names), "");
}

const Mesh mesh{{{"mb", 2, AxisRole::Time}, {"dp", 3, AxisRole::Data}, {"tp", 2, AxisRole::Tensor}}};

// Every sharding that the algebra can write is said in cuts and read back: else --write-spec loses a layout.
TEST(SidecarTest, CutsThereAndBack) {
  size_t count = 0;
  for (const char *text : {"[4, 6]", "[4@tp, 6@dp]", "[4@(dp, tp), 6]", "[4@(tp, dp), 6]", "[(2@tp, 2@dp), 6]", "[4, (3, 2@tp)]",
                           "[(2, 2@(dp, tp)), (6@mb)]", "[4@mb, (2@dp, 3@tp)]", "[4@tp, 5@dp]"}) {
    Expected<Sharding> sharding = parseSharding(text);
    ASSERT_TRUE(sharding.ok());
    std::vector<int64_t> shape = globalShape(*sharding);
    Expected<Sharding> again = resolveCuts(cutsOf(*sharding), shape, false, mesh, "x");
    ASSERT_TRUE(again.ok()) << text << ": " << again.status().message();
    EXPECT_EQ(toString(normalize(*again, mesh)), toString(normalize(*sharding, mesh)));
    // A rule on a name of the transpose speaks of the dims the other way round.
    Sharding transposed = *sharding;
    std::reverse(transposed.dims.begin(), transposed.dims.end());
    Expected<Sharding> turned = resolveCuts(cutsOf(transposed), shape, true, mesh, "x");
    ASSERT_TRUE(turned.ok());
    EXPECT_EQ(toString(normalize(*turned, mesh)), toString(normalize(*sharding, mesh)));
    ++count;
  }
  EXPECT_EQ(count, 9u);
}

/// The flat elements that a coordinate holds.
std::vector<int64_t> heldElements(const Sharding &sharding, const std::vector<int64_t> &coordinate) {
  std::vector<int64_t> held, shape = globalShape(sharding);
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  for (int64_t element = 0; element < elements; ++element) {
    int64_t rest = element;
    bool isHeld = true;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim])
      isHeld &= localIndex(sharding.dims[dim], mesh, coordinate, rest % shape[dim]) >= 0;
    if (isHeld)
      held.push_back(element);
  }
  return held;
}

// A rule speaks of [B*S, C] where the compiler computes [B, S, C]: both must mean the same elements on every rank.
TEST(SidecarTest, ReshapedCutsHoldTheSameElements) {
  size_t possible = 0, impossible = 0;
  for (const char *text : {"[12, 10@tp]", "[12@tp, 10]", "[12@dp, 10@tp]", "[(2@tp, 6), 10]", "[(4, 3@dp), 10]", "[12, (2, 5@dp)]",
                           "[12@(dp, tp), 10]", "[120@tp]", "[(5@tp, 24)]", "[2@tp, 60]"})
    for (std::vector<int64_t> shape : {std::vector<int64_t>{2, 6, 10}, {4, 3, 10}, {12, 2, 5}, {12, 5, 2}, {120}, {3, 40}, {12, 10, 1}}) {
      Expected<Sharding> sharding = parseSharding(text);
      ASSERT_TRUE(sharding.ok());
      std::optional<Sharding> reshaped = reshapedCuts(*sharding, shape, mesh);
      if (!reshaped) {
        ++impossible;
        continue;
      }
      ++possible;
      EXPECT_EQ(globalShape(*reshaped), shape);
      for (int64_t rank = 0; rank < mesh.numCoordinates(); ++rank)
        EXPECT_EQ(heldElements(*reshaped, mesh.coordinate(rank)), heldElements(*sharding, mesh.coordinate(rank)))
            << text << " as " << toString(*reshaped);
    }
  EXPECT_GT(possible, 30u);
  EXPECT_GT(impossible, 0u);
}

} // namespace
} // namespace hpc
