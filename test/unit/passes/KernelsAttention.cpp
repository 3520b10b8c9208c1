// Attention as one kernel against its definition in the interpreter: masks, groups, sizes, layouts and types.
#include "test/unit/passes/AttentionHarness.h"

namespace hpc::test {
namespace {

/// Positions of two intervals, as zigzag deals them out, or in any order.
SmallVector<int64_t> placesOf(int64_t queries, int64_t keys, bool isZigzag) {
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < queries; ++i)
    places.push_back(isZigzag ? (i < queries / 2 ? i + 3 : keys - queries + i) : i * 7919 % keys);
  return places;
}

// Each query is where its position says: in two intervals, in any order, in each sequence of a batch elsewhere, before the first key and beyond
// the last; blocks of queries, few of them, groups, sections of keys, dropout that draws by position, 16 bits in pairs.
TEST_F(AttentionKernels, GivenPositions) {
  for (bool isZigzag : {true, false}) {
    for (bool isGradient : {false, true}) {
      check({.batch = 2, .queries = 40, .keys = 130, .depth = 4, .width = 5, .causalOffset = 0, .isGradient = isGradient,
             .positions = placesOf(40, 130, isZigzag)});
      check({.groups = 2, .repeat = 3, .queries = 23, .keys = 60, .depth = 4, .width = 4, .causalOffset = 2, .guarded = true, .bias = {1, 6, 23, 60},
             .isGradient = isGradient, .queryStart = {-4}, .keyStart = {1}, .positions = placesOf(23, 60, isZigzag), .positionElement = "i32"});
      check({.batch = 2, .repeat = 2, .queries = 18, .keys = 100, .depth = 4, .width = 4, .causalOffset = 0, .isGradient = isGradient,
             .dropout = 0.3, .positions = placesOf(18, 100, isZigzag)});
      check({.queries = 20, .keys = 30, .depth = 4, .width = 4, .isGradient = isGradient, .dropout = 0.3, .positions = placesOf(20, 30, isZigzag)});
    }
    check({.queries = 40, .keys = 130, .depth = 8, .width = 8, .causalOffset = 0, .element = "bf16", .resultElement = "bf16",
           .toleranceScale = 8, .positions = placesOf(40, 130, isZigzag)});
  }
  // A row of each sequence, and some that see nothing.
  SmallVector<int64_t> each = {50, 0, 3, 7, -1, 200};
  for (bool guarded : {false, true}) {
    check({.batch = 2, .queries = 3, .keys = 60, .depth = 8, .width = 8, .causalOffset = 0, .guarded = guarded, .positions = each});
    check({.batch = 2, .groups = 2, .repeat = 12, .queries = 3, .keys = 60, .depth = 8, .width = 8, .causalOffset = 0, .guarded = guarded, .positions = each});
    check({.batch = 3, .repeat = 2, .queries = 2, .keys = 100, .depth = 8, .width = 8, .causalOffset = 0, .guarded = guarded, .isGradient = true, .positions = each});
  }
  check({.queries = 33, .keys = 2000, .depth = 64, .width = 64, .causalOffset = 0, .isGradient = true, .positions = placesOf(33, 2000, true)});
}

// Rows start where numbers of the run say: before the keys, among them, beyond, and where no query sees a key; kernels of
// blocks of queries and of few, groups, biases, dropout, sections of keys, 16 bits in pairs.
TEST_F(AttentionKernels, Positions) {
  for (int64_t start : {-100, -3, 37, 1000})
    for (bool guarded : {false, true}) {
      check({.queries = 4, .keys = 60, .depth = 4, .width = 4, .causalOffset = 0, .guarded = guarded, .queryStart = {start}});
      check({.repeat = 2, .queries = 18, .keys = 100, .depth = 4, .width = 5, .causalOffset = 2, .guarded = guarded, .isGradient = start == -3 || start == 37,
             .queryStart = {start, 4}, .keyStart = {6}});
    }
  for (bool isGradient : {false, true})
    check({.groups = 2, .queries = 33, .keys = 40, .depth = 4, .width = 4, .causalOffset = 5, .bias = {1, 2, 33, 40}, .isGradient = isGradient, .dropout = 0.3,
           .queryStart = {2}});
  check({.queries = 40, .keys = 150, .depth = 500, .width = 512, .causalOffset = 0, .isGradient = true, .queryStart = {81}});
  check({.queries = 40, .keys = 64, .depth = 64, .width = 64, .causalOffset = 0, .element = "bf16", .resultElement = "bf16", .queryStart = {7}});
  check({.queries = 40, .keys = 64, .depth = 8, .width = 8, .causalOffset = std::numeric_limits<int64_t>::max(), .queryStart = {40}});
}

// Blocks of 32 queries and 96 keys, whole and broken, one and several; a tile of a product that begins before its
// block.
TEST_F(AttentionKernels, Sizes) {
  for (bool isGradient : {false, true})
    for (int64_t queries : {1, 32, 33, 70})
      for (int64_t keys : {1, 5, 16, 96, 97, 200})
        check({.batch = 2, .queries = queries, .keys = keys, .depth = 5, .width = 3, .isGradient = isGradient});
}

// More keys than the stack holds gradients of: they come in sections, and dq is summed after. What is known of a query waits where its dq will be, in as many
// elements as it has bits, or is found again where dq has too few.
TEST_F(AttentionKernels, SectionsOfKeys) {
  for (std::optional<int64_t> offset : {std::optional<int64_t>(), {0}, {120}})
    check({.queries = 70, .keys = 150, .depth = 500, .width = 512, .causalOffset = offset, .isGradient = true});
  for (const char *element : {"f16", "bf16", "f64"})
    for (int64_t depth : {5, 500})
      check({.repeat = 2, .queries = 40, .keys = 250, .depth = depth, .width = 512, .causalOffset = 120, .element = element, .resultElement = element, .isGradient = true});
}

// As many queries of a group of keys as there are: none of them has a place on the stack.
TEST_F(AttentionKernels, ManyQueries) {
  check({.groups = 1, .repeat = 16, .queries = 2100, .keys = 7, .depth = 4, .width = 4, .isGradient = true});
}

// Heads side by side in one buffer, read and written through views, and a bias that the region makes of positions and
// of a mask for each row of the batch.
TEST_F(AttentionKernels, ViewsAndBiasInside) {
  const std::string x = "tensor<2x40x72xf32>", p = "tensor<2x40x24xf32>", r = "tensor<2x40x3x8xf32>",
                    t = "tensor<2x3x40x8xf32>";
  std::string body;
  for (auto [name, start] : {std::pair<std::string, int>{"q", 0}, {"k", 24}, {"v", 48}})
    body += "%" + name + "0 = nn.slice %x {starts = array<i64: 0, 0, " + std::to_string(start) +
            ">, steps = array<i64: 1, 1, 1>} : " + x + " -> " + p + "\n%" + name + "1 = nn.reshape %" + name +
            "0 : " + p + " -> " + r + "\n%" + name + " = nn.transpose %" + name +
            "1 {permutation = array<i64: 0, 2, 1, 3>} : " + r + " -> " + t + "\n";
  body += R"(
    %rows = nn.iota {dim = 2 : i64} : tensor<1x1x40x1xi64>
    %columns = nn.iota {dim = 3 : i64, start = -3 : i64} : tensor<1x1x1x40xi64>
    %visible = nn.compare ge %rows, %columns : tensor<1x1x40x1xi64>, tensor<1x1x1x40xi64> -> tensor<1x1x40x40xi1>
    %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
    %b = nn.select %visible, %m, %low : tensor<1x1x40x40xi1>, tensor<2x1x1x40xf32>, tensor<f32> -> tensor<2x1x40x40xf32>
    %a = nn.attention %q, %k, %v bias %b : tensor<2x1x40x40xf32> {scale = 0.3 : f64} : )" +
          t + ", " + t + ", " + t + " -> " + t +
          "\n%c = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : " + t + " -> " + r +
          "\n%r = nn.reshape %c : " + r + " -> " + p;
  toleranceScale = 16;
  checkBody("%x: " + x + ", %m: tensor<2x1x1x40xf32>", body, p,
            {someFloats({2, 40, 72}), someFloats({2, 1, 1, 40}, 2)});
  EXPECT_EQ(numKernelRuns, 1);
}

// Depths and widths that are one vector, less, more, none of a tile's rows.
TEST_F(AttentionKernels, Channels) {
  for (bool isGradient : {false, true})
    for (auto [depth, width] : {std::pair<int64_t, int64_t>{1, 1}, {8, 8}, {16, 16}, {64, 64}, {17, 40}, {80, 12}})
      check({.groups = 2, .queries = 37, .keys = 41, .depth = depth, .width = width, .isGradient = isGradient});
}

// A step of decoding: few queries, with channels in vectors of their own. Blocks of keys that are whole and broken, queries
// that see less than all, nothing, biases of each kind, rows of channels that one vector or several make, of each width.
TEST_F(AttentionKernels, FewQueries) {
  for (int64_t keys : {1, 3, 7, 255, 256, 257, 600})
    check({.batch = 2, .groups = 2, .queries = 1, .keys = keys, .depth = 16, .width = 48});
  for (auto [depth, width] : {std::pair<int64_t, int64_t>{4, 8}, {8, 4}, {64, 64}, {80, 20}, {128, 16}})
    check({.groups = 2, .queries = 2, .keys = 70, .depth = depth, .width = width, .causalOffset = 68});
  for (auto [repeat, queries] : {std::pair<int64_t, int64_t>{4, 1}, {2, 3}, {8, 1}, {1, 8}, {3, 3}})
    check({.batch = 2, .groups = 3, .repeat = repeat, .queries = queries, .keys = 70, .depth = 8, .width = 16, .causalOffset = 66});
  for (auto [repeat, queries] : {std::pair<int64_t, int64_t>{4, 1}, {2, 3}})
    for (int64_t mask : {0, 1, 6, 8, 15})
      check({.batch = 2,
             .groups = 2,
             .repeat = repeat,
             .queries = queries,
             .keys = 70,
             .depth = 8,
             .width = 8,
             .causalOffset = 69 - queries,
             .bias = {mask & 1 ? 2 : 1, mask & 2 ? 2 * repeat : 1, mask & 4 ? queries : 1, mask & 8 ? 70 : 1}});
  for (bool guarded : {false, true})
    for (int64_t offset : {-1, -2, -9})
      check({.queries = 4, .keys = 70, .depth = 4, .width = 4, .causalOffset = offset, .guarded = guarded});
  for (const char *element : {"f16", "bf16", "f64"})
    for (const char *result : {element, "f32"})
      check({.repeat = 2, .queries = 2, .keys = 70, .depth = 24, .width = 40, .causalOffset = 67, .bias = {1, 1, 1, 70}, .element = element, .biasElement = element,
             .resultElement = result});
  for (int64_t which = 0; which < 4; ++which)
    check({.batch = which != 0, .queries = 1, .keys = which == 1 ? 0 : 4, .depth = which == 2 ? 0 : 4, .width = which == 3 ? 0 : 4});
}

// Keys and values of few queries are read where their parts lie: cut within a block of 96, at its edge, into one key, at
// places of their own; heads that share keys, biases, keys that nothing sees, channels that make no vectors, dropout.
TEST_F(AttentionKernels, FewQueriesOfParts) {
  const SmallVector<int64_t> none;
  bool positionsFirst = false;
  for (auto [keys, cuts] : {std::pair<int64_t, SmallVector<int64_t>>{70, {69, 1}}, {70, {1, 69}}, {600, {256, 344}}, {5, {2, 1, 2}}, {600, {70, 265, 265}}})
    for (auto [repeat, queries] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}})
      check({.batch = 2, .groups = 3, .repeat = repeat, .queries = queries, .keys = keys, .depth = 8, .width = 16, .causalOffset = keys - queries, .keyParts = cuts,
             .valueParts = cuts, .positionsFirst = positionsFirst = !positionsFirst});
  for (auto [keyParts, valueParts] : {std::pair{SmallVector<int64_t>{69, 1}, none}, {none, SmallVector<int64_t>{64, 6}}, {{40, 30}, {10, 20, 40}}, {{0, 70}, {70, 0}}})
    check({.batch = 2, .groups = 2, .queries = 1, .keys = 70, .depth = 16, .width = 8, .keyParts = keyParts, .valueParts = valueParts});
  for (int64_t mask : {0, 8, 15})
    check({.batch = 2, .groups = 2, .repeat = 2, .queries = 3, .keys = 70, .depth = 8, .width = 8, .causalOffset = 66,
           .bias = {mask & 1 ? 2 : 1, mask & 2 ? 4 : 1, mask & 4 ? 3 : 1, mask & 8 ? 70 : 1}, .keyParts = {66, 4}, .valueParts = {66, 4}});
  for (bool guarded : {false, true})
    for (int64_t offset : {-2, 20, 40})
      check({.queries = 4, .keys = 70, .depth = 4, .width = 4, .causalOffset = offset, .guarded = guarded, .keyParts = {40, 30}, .valueParts = {40, 30}});
  for (auto [depth, width] : {std::pair<int64_t, int64_t>{5, 3}, {1, 1}, {500, 512}})
    check({.groups = 2, .queries = 2, .keys = 70, .depth = depth, .width = width, .causalOffset = 68, .keyParts = {68, 2}, .valueParts = {67, 3}});
  check({.groups = 2, .queries = 2, .keys = 70, .depth = 8, .width = 8, .dropout = 0.3, .keyParts = {68, 2}, .valueParts = {68, 2}});
}

// Past keys of another type are rounded as a cast before or behind the concatenation rounds them, and widened; where there is no concatenation too.
TEST_F(AttentionKernels, FewQueriesOfCastParts) {
  for (auto [element, stored, depth] : {std::tuple<const char *, const char *, int64_t>{"bf16", "f32", 24}, {"bf16", "f32", 5}, {"f16", "f64", 24}, {"f32", "f16", 24}, {"f64", "f32", 24}, {"f32", "f64", 5}}) {
    check({.groups = 2, .queries = 1, .keys = 70, .depth = depth, .width = 16, .element = element, .resultElement = "f32", .keyParts = {69, 1}, .valueParts = {70}, .past = stored});
    check({.groups = 2, .queries = 1, .keys = 70, .depth = depth, .width = 16, .element = element, .resultElement = "f32", .keyParts = {69, 1}, .valueParts = {69, 1}, .behind = stored,
           .positionsFirst = true});
  }
  check({.queries = 1, .keys = 70, .depth = 8, .width = 16, .element = "bf16", .keyParts = {69, 1}, .valueParts = {69, 1}, .past = "f64", .behind = "f32"});
}

// Whether parts are read where they lie or put together before, results have the same bits.
TEST_F(AttentionKernels, FewQueriesOfPartsHaveTheBitsOfAWhole) {
  for (const char *element : {"f32", "bf16"}) {
    const std::string e = element, q = "tensor<1x4x2x16x" + e + ">", p = "tensor<1x2x66x16xf32>", n = "tensor<1x2x4x16xf32>", w = "tensor<1x2x70x16xf32>", k = "tensor<1x2x70x16x" + e + ">";
    std::vector<Tensor> inputs = {typed(someFloats({1, 4, 2, 16}), e), someFloats({1, 2, 66, 16}, 2), someFloats({1, 2, 4, 16}, 3)}, results;
    for (bool isGiven : {false, true}) {
      std::string kept = isGiven ? ", " + w : "", name = isGiven ? ", %w" : "";
      parse("func.func @main(%q: " + q + ", %p: " + p + ", %n: " + n + ") -> (" + q + kept + ") {\n%w = nn.concat %p, %n {axis = 2 : i64} : " + p + ", " + n + " -> " + w + "\n" +
            (e == "f32" ? "%k = nn.reshape %w : " : "%k = nn.cast %w : ") + w + " -> " + k + "\n%r = nn.attention %q, %k, %k {scale = 0.3 : f64, causal_offset = 68 : i64} : " + q +
            ", " + k + ", " + k + " -> " + q + "\nreturn %r" + name + " : " + q + kept + "\n}");
      toleranceScale = 24;
      int before = numKernelRuns;
      KernelTest::check("main", inputs);
      if (HasFatalFailure())
        return;
      EXPECT_EQ(numKernelRuns - before, isGiven ? 2 : 1);
      results.push_back(runKernels(inputs));
    }
    EXPECT_EQ(results[0].floats, results[1].floats) << e;
  }
}

// The same through views: one position of heads side by side, keys with other keys between them.
TEST_F(AttentionKernels, FewQueriesInViews) {
  const std::string x = "tensor<2x70x72xf32>", p = "tensor<2x70x24xf32>", r = "tensor<2x70x3x8xf32>", t = "tensor<2x3x70x8xf32>", q = "tensor<2x3x1x8xf32>";
  std::string body;
  for (auto [name, start] : {std::pair<std::string, int>{"q", 0}, {"k", 24}, {"v", 48}})
    body += "%" + name + "0 = nn.slice %x {starts = array<i64: 0, 0, " + std::to_string(start) + ">, steps = array<i64: 1, 1, 1>} : " + x + " -> " + p + "\n%" + name +
            "1 = nn.reshape %" + name + "0 : " + p + " -> " + r + "\n%" + name + " = nn.transpose %" + name + "1 {permutation = array<i64: 0, 2, 1, 3>} : " + r + " -> " +
            t + "\n";
  body += "%one = nn.slice %q {starts = array<i64: 0, 0, 69, 0>, steps = array<i64: 1, 1, 1, 1>} : " + t + " -> " + q +
          "\n%a = nn.attention %one, %k, %v {scale = 0.3 : f64} : " + q + ", " + t + ", " + t + " -> " + q +
          "\n%c = nn.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : " + q + " -> tensor<2x1x3x8xf32>" +
          "\n%r = nn.reshape %c : tensor<2x1x3x8xf32> -> tensor<2x1x24xf32>";
  toleranceScale = 24;
  checkBody("%x: " + x, body, "tensor<2x1x24xf32>", {someFloats({2, 70, 72})});
  EXPECT_EQ(numKernelRuns, 1);
}

// What a query sees ends within a block of keys, at its edge, before its first key or behind its last; blocks that
// nothing sees are left out, and what would have been read there must not show.
TEST_F(AttentionKernels, Causal) {
  for (bool isGradient : {false, true})
    for (int64_t repeat : {1, 3})
      for (int64_t offset : {0, 1, 63, 64, 100, 1000})
        check({.repeat = repeat,
               .queries = 70,
               .keys = 150,
               .depth = 4,
               .width = 4,
               .causalOffset = offset,
               .isGradient = isGradient});
}

// A query that sees nothing is NaN, or 0 where guarded, and so is what it gives.
TEST_F(AttentionKernels, QueriesThatSeeNothing) {
  for (bool isGradient : {false, true})
    for (bool guarded : {false, true})
      for (int64_t offset : {-1, -40, -100})
        check({.queries = 75,
               .keys = 70,
               .depth = 4,
               .width = 4,
               .causalOffset = offset,
               .guarded = guarded,
               .isGradient = isGradient});
}

// Heads that share keys lie in one block, position by position: each reads its own query and writes its own row.
TEST_F(AttentionKernels, Groups) {
  for (bool isGradient : {false, true})
    for (int64_t repeat : {2, 4, 5})
      for (int64_t queries : {1, 6, 40})
        check({.batch = 2, .groups = 3, .repeat = repeat, .queries = queries, .keys = 45, .depth = 8, .width = 8, .causalOffset = 5,
               .isGradient = isGradient});
}

// Every way in which a bias broadcasts.
TEST_F(AttentionKernels, Bias) {
  for (bool isGradient : {false, true})
    for (int64_t mask : {0, 1, 6, 7, 9, 12, 15})
      check({.batch = 2,
             .groups = 2,
             .repeat = 2,
             .queries = 19,
             .keys = 70,
             .depth = 4,
             .width = 4,
             .causalOffset = 51,
             .bias = {mask & 1 ? 2 : 1, mask & 2 ? 4 : 1, mask & 4 ? 19 : 1, mask & 8 ? 70 : 1},
             .isGradient = isGradient});
  check({.groups = 2, .queries = 40, .keys = 70, .depth = 4, .width = 4, .bias = {1, 2, 1, 70}});
  check({.groups = 2, .queries = 40, .keys = 70, .depth = 4, .width = 4, .bias = {1, 2, 40, 1}});
}

// Scores that a number replaces, by masks that broadcast in each way: whole rows of -inf see nothing, whole rows of another
// number have equal weights and give no gradient. Beside a bias, a causal mask, dropout; few queries, parts of keys.
TEST_F(AttentionKernels, Visible) {
  for (bool isGradient : {false, true})
    for (double hidden : {-double(INFINITY), -3.4028234663852886e38, 0.0}) {
      for (int64_t mask : {8, 9, 12, 14, 15})
        check({.batch = 2,
               .groups = 2,
               .repeat = 2,
               .queries = 19,
               .keys = 70,
               .depth = 4,
               .width = 4,
               .isGradient = isGradient,
               .visible = {mask & 1 ? 2 : 1, mask & 2 ? 4 : 1, mask & 4 ? 19 : 1, mask & 8 ? 70 : 1},
               .hidden = hidden});
      check({.queries = 40, .keys = 120, .depth = 8, .width = 8, .causalOffset = 70, .guarded = true, .bias = {1, 1, 1, 120}, .isGradient = isGradient, .dropout = 0.3,
             .visible = {1, 1, 40, 120}, .hidden = hidden});
      check({.queries = 40, .keys = 40, .depth = 8, .width = 8, .causalOffset = 0, .bias = {1, 1, 40, 40}, .isGradient = isGradient, .visible = {1, 1, 40, 40},
             .hidden = hidden});
    }
  for (double hidden : {-double(INFINITY), -3.0})
    for (int64_t mask : {8, 15}) {
      const SmallVector<int64_t> visible = {mask & 1 ? 2 : 1, mask & 2 ? 4 : 1, mask & 4 ? 3 : 1, 70};
      check({.batch = 2, .groups = 2, .repeat = 2, .queries = 3, .keys = 70, .depth = 8, .width = 8, .causalOffset = 66, .keyParts = {66, 4}, .valueParts = {66, 4}, .visible = visible,
             .hidden = hidden});
      check({.batch = 2, .groups = 2, .repeat = 2, .queries = 3, .keys = 70, .depth = 8, .width = 8, .bias = {1, 1, 3, 70}, .visible = visible, .hidden = hidden});
    }
}

// Weights that are dropped are dropped in every sweep, in any order of lanes and threads, and nobody's else: blocks that are whole and broken, heads that
// share a block, masks, a gradient whose keys come in sections, one whose query has too few channels to keep facts of it.
TEST_F(AttentionKernels, Dropout) {
  for (bool isGradient : {false, true}) {
    for (double rate : {0.0, 0.1, 0.9})
      check({.batch = 2, .groups = 2, .queries = 33, .keys = 70, .depth = 8, .width = 8, .isGradient = isGradient, .dropout = rate});
    for (int64_t repeat : {1, 3})
      for (int64_t queries : {1, 6, 40})
        check({.batch = 2,
               .groups = 3,
               .repeat = repeat,
               .queries = queries,
               .keys = 70,
               .depth = 2,
               .width = 5,
               .causalOffset = 30,
               .bias = {1, 1, 1, 70},
               .isGradient = isGradient,
               .dropout = 0.3});
    check({.queries = 70, .keys = 150, .depth = 500, .width = 512, .causalOffset = 120, .isGradient = isGradient, .dropout = 0.5});
    check({.queries = 40, .keys = 40, .depth = 4, .width = 4, .causalOffset = -5, .guarded = true, .isGradient = isGradient, .dropout = 0.5});
    for (const char *element : {"f16", "bf16", "f64"})
      check({.repeat = 2, .queries = 20, .keys = 70, .depth = 24, .width = 16, .causalOffset = 30, .element = element, .resultElement = element,
             .isGradient = isGradient, .dropout = 0.5});
    for (int64_t which = 0; which < 3; ++which)
      check({.batch = which != 0, .queries = which == 1 ? 0 : 3, .keys = which == 2 ? 0 : 4, .depth = 2, .width = 2, .isGradient = isGradient, .dropout = 0.5});
  }
}

// More weights than 32 bits count: positions have two words.
TEST_F(AttentionKernels, DropoutOfALargeWhole) {
  const std::string q = "tensor<1x2x3x4xf32>", k = "tensor<1x1x5x4xf32>";
  checkBody("%q: " + q + ", %k: " + k + ", %s: tensor<f64>", R"(
    %a = nn.constant dense<2000000000> : tensor<i64> : tensor<i64>
    %o = nn.constant dense<7> : tensor<i64> : tensor<i64>
    %r = nn.attention %q, %k, %k dropout %s, %s, %a, %o : tensor<f64>, tensor<f64>, tensor<i64>, tensor<i64> {scale = 0.5 : f64, site = 1 : i64, rate = 5.0e-1 : f64,
      global_shape = array<i64: 4000000000, 9, 2, 3, 5>, offset_dims = array<i64: 0, 1>} : )" + q + ", " + k + ", " + k + " -> " + q,
            q, {someFloats({1, 2, 3, 4}), someFloats({1, 1, 5, 4}, 2), Tensor(DType::F64, {})});
}

// A rank's heads and rows have the masks that they have in the whole: batch and groups of heads are cut unevenly, a rank has one head of each of its groups or all.
TEST_F(AttentionKernels, DropoutOnEveryRank) {
  for (bool isApart : {false, true}) {
    const std::string sharding = isApart ? "#dist.sharding<\"[3@dp, (3, 2@tp), 6, 4]\">" : "#dist.sharding<\"[3@dp, (3@tp, 2), 6, 4]\">";
    const std::string keySharding = isApart ? "#dist.sharding<\"[3@dp, 3, 6, 4]\">" : "#dist.sharding<\"[3@dp, 3@tp, 6, 4]\">";
    const std::string q = std::string(isApart ? "tensor<2x3x6x4xf32, " : "tensor<2x4x6x4xf32, ") + sharding + ">",
                      k = std::string(isApart ? "tensor<2x3x6x4xf32, " : "tensor<2x2x6x4xf32, ") + keySharding + ">",
                      number = "tensor<f64, #dist.sharding<\"[]\">>", offset = "tensor<i64, #dist.sharding<\"[]\">>";
    parse("module attributes {dist.mesh = #dist.mesh<\"dp=2:data, tp=2:tensor\">} {\nfunc.func @main(%q: " + q + ", %k: " + k + ", %s: " + number + ") -> " + q + " {\n" +
          "%a = dist.offset {dim = #dist.sharding<\"[3@dp]\">} : " + offset + "\n%b = dist.offset {dim = #dist.sharding<\"[" + (isApart ? "2@tp" : "3@tp") + "]\">} : " + offset +
          "\n%r = nn.attention %q, %k, %k dropout %s, %s, %a, %b : " + number + ", " + number + ", " + offset + ", " + offset +
          " {scale = 0.5 : f64, causal_offset = 0 : i64, site = 1 : i64, rate = 5.0e-1 : f64, global_shape = array<i64: 3, 3, 2, 6, 6>, offset_dims = array<i64: 0, " +
          (isApart ? "2" : "1") + ">} : " + q + ", " + k + ", " + k + " -> " + q + "\nreturn %r : " + q + "\n}\n}");
    if (HasFatalFailure())
      return;
    compiled = false;
    const std::vector<Tensor> inputs = {someFloats({3, 6, 6, 4}), someFloats({3, 3, 6, 4}, 2), Tensor(DType::F64, {})};
    KernelTest::check("main", inputs, true);
    auto parts = runPartitioned(module->lookupSymbol<func::FuncOp>("main"), inputs, dist::meshOf(*module), {});
    ASSERT_TRUE(parts.ok()) << parts.status().text();
    const std::string wholeQ = "tensor<3x6x6x4xf32>", wholeK = "tensor<3x3x6x4xf32>";
    parse("func.func @main(%q: " + wholeQ + ", %k: " + wholeK + ", %s: tensor<f64>) -> " + wholeQ + " {\n%r = nn.attention %q, %k, %k dropout %s, %s : tensor<f64>, tensor<f64> " +
          "{scale = 0.5 : f64, causal_offset = 0 : i64, site = 1 : i64, rate = 5.0e-1 : f64} : " + wholeQ + ", " + wholeK + ", " + wholeK + " -> " + wholeQ + "\nreturn %r : " + wholeQ + "\n}");
    if (HasFatalFailure())
      return;
    auto whole = runFunction(module->lookupSymbol<func::FuncOp>("main"), inputs, {});
    ASSERT_TRUE(whole.ok()) << whole.status().text();
    for (int64_t i = 0; i < (*whole)[0].size(); ++i)
      EXPECT_NEAR((*parts)[0].floats[size_t(i)], (*whole)[0].floats[size_t(i)], 1e-12) << i;
  }
}

// Sums are f32 or wider whatever is read, and are rounded once, to the result's type.
TEST_F(AttentionKernels, EveryFloatType) {
  for (bool isGradient : {false, true})
    for (const char *element : {"f16", "bf16", "f32", "f64"})
      for (const char *result : {element, "f32"})
        for (const char *bias : {element, "f32"})
          check({.repeat = 2,
                 .queries = 20,
                 .keys = 70,
                 .depth = 24,
                 .width = 16,
                 .causalOffset = 30,
                 .bias = {1, 1, 1, 70},
                 .element = element,
                 .biasElement = bias,
                 .resultElement = result,
                 .isGradient = isGradient});
}

// Where the machine multiplies pairs of bf16 they are neighbours along channels, then along keys: odd numbers of both, channels that lie apart, keys
// that nothing sees, dropout. What is rounded beside the result is weights, to nearest, so few roundings of bf16 are enough for all sizes.
TEST_F(AttentionKernels, PairsOfBFloats) {
  const AttentionCase pairs = {.groups = 2, .queries = 41, .keys = 70, .depth = 24, .width = 16, .element = "bf16", .biasElement = "bf16", .resultElement = "bf16", .toleranceScale = 1};
  auto checkWith = [&](auto change) {
    AttentionCase c = pairs;
    change(c);
    check(c);
  };
  for (int64_t keys : {1, 2, 3, 11, 12, 13, 95, 96, 97, 201})
    for (int64_t depth : {1, 2, 7, 24, 33})
      checkWith([&](AttentionCase &c) { c.keys = keys, c.depth = depth, c.width = depth == 7 ? 64 : depth; });
  for (int64_t queries : {3, 5}) // in shorter vectors
    checkWith([&](AttentionCase &c) { c.groups = 3, c.queries = queries, c.depth = 5, c.width = 3; });
  for (int64_t queries : {9, 16, 32, 100})
    for (int64_t offset : {-3, 0, 20, 29})
      for (bool guarded : {false, true})
        checkWith([&](AttentionCase &c) { c.queries = queries, c.repeat = 3, c.causalOffset = offset, c.guarded = guarded; });
  for (int64_t mask : {8, 15})
    checkWith([&](AttentionCase &c) { c.keys = 71, c.bias = {1, mask & 2 ? 2 : 1, mask & 4 ? 41 : 1, 71}; });
  checkWith([](AttentionCase &c) { c.keys = 71, c.dropout = 0.3; });
  checkWith([](AttentionCase &c) { c.keys = 71, c.keyParts = {71}, c.valueParts = {71}, c.positionsFirst = true; });
  const std::string q = "tensor<1x2x40x6xbf16>", k = "tensor<1x2x6x33xbf16>", t = "tensor<1x2x33x6xbf16>";
  toleranceScale = 1;
  checkBody("%q: " + q + ", %k: " + k + ", %v: " + k,
            "%kt = nn.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : " + k + " -> " + t + "\n%vt = nn.transpose %v {permutation = array<i64: 0, 1, 3, 2>} : " + k + " -> " + t +
                "\n%r = nn.attention %q, %kt, %vt {scale = 0.4 : f64} : " + q + ", " + t + ", " + t + " -> " + q,
            q, {typed(someFloats({1, 2, 40, 6}), "bf16"), typed(someFloats({1, 2, 6, 33}, 2), "bf16"), typed(someFloats({1, 2, 6, 33}, 3), "bf16")});
}

// No rows, no keys, no channels: nothing is read, and a sum of nothing is 0.
TEST_F(AttentionKernels, Empty) {
  for (bool isGradient : {false, true})
    for (int64_t which = 0; which < 6; ++which)
      check({.batch = which != 0,
             .groups = which != 1,
             .queries = which == 2 ? 0 : 3,
             .keys = which == 3 ? 0 : 4,
             .depth = which == 4 ? 0 : 2,
             .width = which == 5 ? 0 : 2,
             .isGradient = isGradient});
}

} // namespace
} // namespace hpc::test
