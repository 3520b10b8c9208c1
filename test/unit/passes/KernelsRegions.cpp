// Regions as models have them, compiled and compared with the interpreter: norms, softmax with its hard rows,
// reductions, views, gathers, sizes 0 and 1.
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

TEST_F(KernelTest, LayerNormAndWhatStandsRoundIt) {
  toleranceScale = 4; // sums of 40
  checkBody("%x: tensor<2x33x40xf32>, %res: tensor<2x33x40xf32>, %b: tensor<40xf32>, %w: tensor<40xf32>", R"(
    %0 = nn.add %x, %b : tensor<2x33x40xf32>, tensor<40xf32> -> tensor<2x33x40xf32>
    %1 = nn.add %0, %res : tensor<2x33x40xf32>, tensor<2x33x40xf32> -> tensor<2x33x40xf32>
    %2 = nn.layer_norm %1 weight %w : tensor<40xf32> bias %b : tensor<40xf32> {epsilon = 1.0e-5 : f64} : tensor<2x33x40xf32> -> tensor<2x33x40xf32>
    %r = nn.sub %2, %1 : tensor<2x33x40xf32>, tensor<2x33x40xf32> -> tensor<2x33x40xf32>)",
            "tensor<2x33x40xf32>",
            {someFloats({2, 33, 40}), someFloats({2, 33, 40}, 2), someFloats({40}, 3), someFloats({40}, 4)});
  EXPECT_EQ(numKernelRuns, 1);
}

// A row of -inf is NaN, a NaN stays in its row, one finite element takes everything.
TEST_F(KernelTest, SoftmaxOfHardRows) {
  Tensor x = someFloats({6, 33});
  for (int64_t j = 0; j < 33; ++j) {
    x.floats[33 + j] = -INFINITY;
    x.floats[66 + j] = j == 7 ? 1.0 : -INFINITY;
    x.floats[99 + j] = 1e30 * (j - 16);
    x.floats[132 + j] = -200.0 * j;
  }
  x.floats[5 * 33 + 31] = NAN;
  round(x);
  checkBody("%x: tensor<6x33xf32>", "%r = nn.softmax %x : tensor<6x33xf32> -> tensor<6x33xf32>", "tensor<6x33xf32>",
            {x});
  EXPECT_EQ(numKernelRuns, 1);
}

TEST_F(KernelTest, CausalAttention) {
  toleranceScale = 4;
  checkBody("%q: tensor<2x4x9x8xf32>, %k: tensor<2x2x12x8xf32>, %v: tensor<2x2x12x8xf32>",
            "%r = nn.attention %q, %k, %v {scale = 0.35 : f64, causal_offset = 3 : i64} : tensor<2x4x9x8xf32>, "
            "tensor<2x2x12x8xf32>, "
            "tensor<2x2x12x8xf32> -> tensor<2x4x9x8xf32>",
            "tensor<2x4x9x8xf32>",
            {someFloats({2, 4, 9, 8}), someFloats({2, 2, 12, 8}, 2), someFloats({2, 2, 12, 8}, 3)});
  EXPECT_EQ(numKernelRuns, 1);
}

TEST_F(KernelTest, RmsNormOfDoubles) {
  Tensor x = someFloats({5, 17});
  x.dtype = DType::F64;
  checkBody("%x: tensor<5x17xf64>",
            "%r = nn.rms_norm %x {epsilon = 1.0e-5 : f64} : tensor<5x17xf64> -> tensor<5x17xf64>", "tensor<5x17xf64>",
            {x});
}

// Ties, NaN, zeros of both signs, both ways, along any axis: as the interpreter sorts them.
TEST_F(KernelTest, SortPositions) {
  for (const char *type : {"f32", "f64", "f16", "bf16", "i64", "i8", "ui8", "ui64"})
    for (int64_t axis : {0, 1, 2})
      for (const char *order : {"", ", descending"}) {
        std::string element = type, from = "tensor<3x5x7x" + element + ">", to = "tensor<3x5x7xi64>";
        if (element[0] == 'u')
          element.erase(1, 1); // ui8 is u8
        Tensor x(*parseDType(element), {3, 5, 7});
        for (int64_t i = 0; i < x.size(); ++i)
          x.setNumber(i, double(i * 7 % 11 - 5));
        if (x.isFloat()) {
          x.floats[3] = x.floats[40] = NAN;
          x.floats[8] = -0.0;
          x.floats[17] = INFINITY;
          x.floats[18] = -INFINITY;
        } else if (x.dtype == DType::U64) {
          x.ints[4] = -1;
        }
        SCOPED_TRACE(from + " axis " + std::to_string(axis) + order);
        checkBody("%x: " + from,
                  "%r = nn.sort_position %x {axis = " + std::to_string(axis) + " : i64" + order + "} : " + from + " -> " + to,
                  to, {x});
      }
}

struct Reductions : KernelTest,
                    testing::WithParamInterface<std::tuple<const char *, const char *, const char *, const char *>> {};
TEST_P(Reductions, EqualTheInterpreter) {
  auto [kind, axes, result, type] = GetParam();
  toleranceScale = 10; // up to 105 terms; products grow
  Tensor x(*parseDType(type), {3, 5, 7});
  for (int64_t i = 0; i < x.size(); ++i)
    x.setNumber(i, x.isFloat() ? std::sin(double(i)) * 1.5 : double(i * 7 % 11 - 5));
  round(x);
  std::string from = std::string("tensor<3x5x7x") + type + ">", to = std::string("tensor<") + result + "x" + type + ">";
  checkBody("%x: " + from,
            std::string("%r = nn.reduce ") + kind + " %x {axes = array<i64: " + axes + ">} : " + from + " -> " + to, to,
            {x});
}
INSTANTIATE_TEST_SUITE_P(All, Reductions,
                         testing::Combine(testing::Values("sum", "max", "min", "prod"), testing::Values("2"),
                                          testing::Values("3x5x1"),
                                          testing::Values("f32", "f64", "i64", "i32", "f16")));
INSTANTIATE_TEST_SUITE_P(First, Reductions,
                         testing::Combine(testing::Values("sum", "max"), testing::Values("0"), testing::Values("1x5x7"),
                                          testing::Values("f32", "i64")));
INSTANTIATE_TEST_SUITE_P(Outer, Reductions,
                         testing::Combine(testing::Values("sum", "min"), testing::Values("0, 2"),
                                          testing::Values("1x5x1"), testing::Values("f32")));
INSTANTIATE_TEST_SUITE_P(Whole, Reductions,
                         testing::Combine(testing::Values("sum", "prod"), testing::Values("0, 1, 2"),
                                          testing::Values("1x1x1"), testing::Values("f32", "i32")));

// By columns: whole blocks, a last block that is not full, dims kept before and between, one column too many for one item.
INSTANTIATE_TEST_SUITE_P(Middle, Reductions,
                         testing::Combine(testing::Values("sum", "max", "min", "prod"), testing::Values("1"),
                                          testing::Values("3x1x7"),
                                          testing::Values("f32", "f64", "i64", "i8", "f16", "bf16")));

struct ColumnReductions : KernelTest,
                          testing::WithParamInterface<std::tuple<std::vector<int64_t>, std::vector<int64_t>, const char *>> {
};
TEST_P(ColumnReductions, EqualTheInterpreter) {
  auto [shape, axes, kind] = GetParam();
  SmallVector<int64_t> reduced(shape.begin(), shape.end());
  std::string from = "tensor<", to = "tensor<", list;
  int64_t count = 1;
  for (int64_t axis : axes) {
    list += (list.empty() ? "" : ", ") + std::to_string(axis);
    count *= reduced[size_t(axis)];
    reduced[size_t(axis)] = 1;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    from += std::to_string(shape[i]) + "x";
    to += std::to_string(reduced[i]) + "x";
  }
  from += "f32>", to += "f32>";
  toleranceScale = double(count); // in order down the rows
  // What is reduced is computed on the way, what is made of it after.
  checkBody("%x: " + from + ", %y: " + from,
            "%0 = nn.mul %x, %y : " + from + ", " + from + " -> " + from + "\n%1 = nn.reduce " + kind +
                " %0 {axes = array<i64: " + list + ">} : " + from + " -> " + to + "\n%2 = nn.reduce sum %y {axes = array<i64: " +
                list + ">} : " + from + " -> " + to + "\n%r = nn.sub %1, %2 : " + to + ", " + to + " -> " + to,
            to, {someFloats(shape), someFloats(shape, 2)});
  EXPECT_GT(numKernelRuns, 0);
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, ColumnReductions,
    testing::Combine(testing::Values(std::vector<int64_t>{6, 5, 64}, std::vector<int64_t>{16, 20, 65},
                                     std::vector<int64_t>{3, 7, 200}, std::vector<int64_t>{2, 640, 3}),
                     testing::Values(std::vector<int64_t>{0}, std::vector<int64_t>{1}, std::vector<int64_t>{0, 1},
                                     std::vector<int64_t>{0, 1, 2}),
                     testing::Values("sum", "max")));

TEST_F(KernelTest, MaxAndMinKeepNaN) {
  Tensor x = someFloats({2, 40});
  x.floats[37] = NAN;
  x.floats[41] = -INFINITY;
  checkBody("%x: tensor<2x40xf32>", R"(
    %0 = nn.reduce max %x {axes = array<i64: 1>} : tensor<2x40xf32> -> tensor<2x1xf32>
    %1 = nn.reduce min %x {axes = array<i64: 1>} : tensor<2x40xf32> -> tensor<2x1xf32>
    %r = nn.add %0, %1 : tensor<2x1xf32>, tensor<2x1xf32> -> tensor<2x1xf32>)",
            "tensor<2x1xf32>", {x});
}

TEST_F(KernelTest, ViewsOfViews) {
  checkBody("%x: tensor<4x6x10xf32>, %y: tensor<1x3xf32>", R"(
    %0 = nn.slice %x {starts = array<i64: 3, 1, 8>, steps = array<i64: -2, 2, -1>} : tensor<4x6x10xf32> -> tensor<2x3x8xf32>
    %1 = nn.transpose %0 {permutation = array<i64: 2, 0, 1>} : tensor<2x3x8xf32> -> tensor<8x2x3xf32>
    %2 = nn.reshape %1 : tensor<8x2x3xf32> -> tensor<4x12xf32>
    %3 = nn.exp %2 : tensor<4x12xf32> -> tensor<4x12xf32>
    %4 = nn.reshape %3 : tensor<4x12xf32> -> tensor<2x2x4x3xf32>
    %5 = nn.broadcast %y : tensor<1x3xf32> -> tensor<2x2x4x3xf32>
    %6 = nn.concat %4, %5 {axis = 1 : i64} : tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32> -> tensor<2x4x4x3xf32>
    %r = nn.pad %6 {low = array<i64: 1, 0, 0, 2>, high = array<i64: 0, 0, 1, 1>, value = 2.5 : f32} : tensor<2x4x4x3xf32> -> tensor<3x4x5x6xf32>)",
            "tensor<3x4x5x6xf32>", {someFloats({4, 6, 10}), someFloats({1, 3}, 2)});
}

/// Random chains of views with sums between them, which fuse to regions of many index maps.
struct RandomViews : KernelTest, testing::WithParamInterface<unsigned> {
  uint32_t state = 0;
  int64_t below(int64_t bound) {
    state = state * 1664525u + 1013904223u;
    return int64_t((state >> 8) % uint32_t(bound));
  }
  static std::string typeOf(ArrayRef<int64_t> shape) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + "f32>";
  }
  static std::string list(ArrayRef<int64_t> values) {
    std::string text;
    for (int64_t value : values)
      text += (text.empty() ? "" : ", ") + std::to_string(value);
    return "array<i64: " + text + ">";
  }
  /// Splits or merges dims at random.
  SmallVector<int64_t> regrouped(ArrayRef<int64_t> shape) {
    SmallVector<int64_t> result;
    for (int64_t size : shape) {
      if (!result.empty() && below(3) == 0) {
        result.back() *= size;
      } else if (int64_t part = 2 + below(4); size % part == 0 && below(2)) {
        result.push_back(part);
        result.push_back(size / part);
      } else {
        result.push_back(size);
      }
    }
    return result;
  }
};
TEST_P(RandomViews, EqualTheInterpreter) {
  state = GetParam() * 2654435761u + 7;
  SmallVector<int64_t> shape = {2 + below(4), 6, 4 + 2 * below(3)};
  SmallVector<int64_t> first = shape;
  std::string body, value = "%x";
  for (int step = 0; step < 9; ++step) {
    SmallVector<int64_t> next = shape;
    std::string name = "%v" + std::to_string(step), text, from = " : " + typeOf(shape);
    switch (below(7)) {
    case 0:
      next = regrouped(shape);
      text = "nn.reshape " + value + from;
      break;
    case 1: {
      SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(shape.size())));
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[size_t(below(int64_t(i)))]);
      for (size_t i = 0; i < order.size(); ++i)
        next[i] = shape[size_t(order[i])];
      text = "nn.transpose " + value + " {permutation = " + list(order) + "}" + from;
      break;
    }
    case 2: {
      SmallVector<int64_t> starts, steps;
      for (int64_t &size : next) {
        int64_t stride = 1 + below(2), start = below(size), isReversed = below(2);
        starts.push_back(start);
        steps.push_back(isReversed ? -stride : stride);
        size = std::min<int64_t>(isReversed ? start / stride + 1 : (size - 1 - start) / stride + 1, 12);
      }
      text = "nn.slice " + value + " {starts = " + list(starts) + ", steps = " + list(steps) + "}" + from;
      break;
    }
    case 3: {
      SmallVector<int64_t> low, high;
      for (int64_t &size : next) {
        low.push_back(below(3));
        high.push_back(below(2));
        size += low.back() + high.back();
      }
      text = "nn.pad " + value + " {low = " + list(low) + ", high = " + list(high) + ", value = 0.5 : f32}" + from;
      break;
    }
    case 4: {
      int64_t axis = below(int64_t(shape.size()));
      next[size_t(axis)] *= 2;
      text = "nn.concat " + value + ", " + value + " {axis = " + std::to_string(axis) + " : i64}" + from + ", " +
             typeOf(shape);
      break;
    }
    case 5: { // sizes and positions of the last dims
      size_t windowed = 1 + size_t(below(std::min<int64_t>(2, int64_t(shape.size()))));
      SmallVector<int64_t> strides, dilations, counts;
      for (size_t dim = shape.size() - windowed; dim < shape.size(); ++dim) {
        strides.push_back(1 + below(3));
        dilations.push_back(1 + below(2));
        int64_t most = (shape[dim] - 1) / dilations.back() + 1, size = 1 + below(std::min<int64_t>(most, 3));
        next[dim] = size;
        counts.push_back((shape[dim] - 1 - (size - 1) * dilations.back()) / strides.back() + 1);
      }
      llvm::append_range(next, counts);
      text = "nn.window " + value + " {strides = " + list(strides) + ", dilations = " + list(dilations) + "}" + from;
      break;
    }
    default:
      text = "nn.add " + value + ", " + value + from + ", " + typeOf(shape);
    }
    if (ShapedType::getNumElements(next) > 4000 || next.size() > 12)
      continue;
    body += "    " + name + " = " + text + " -> " + typeOf(next) + "\n";
    value = name;
    shape = next;
  }
  body += "    %r = nn.neg " + value + " : " + typeOf(shape) + " -> " + typeOf(shape);
  toleranceScale = 0;
  checkBody("%x: " + typeOf(first), body, typeOf(shape), {someFloats(first)});
}
INSTANTIATE_TEST_SUITE_P(All, RandomViews, testing::Range(0u, 60u));

// The norm before a pool and the padding round it are computed where the pool reads them, and the pool beside its neighbours:
// one region. An average that divides by how many elements count has the counts as a table.
TEST_F(KernelTest, PoolsOfWhatIsComputed) {
  checkBody("%x: tensor<2x3x9x11xf32>, %w: tensor<3x1x1xf32>", R"(
    %0 = nn.mul %x, %w : tensor<2x3x9x11xf32>, tensor<3x1x1xf32> -> tensor<2x3x9x11xf32>
    %1 = nn.relu %0 : tensor<2x3x9x11xf32> -> tensor<2x3x9x11xf32>
    %2 = nn.pad %1 {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0xFF800000 : f32} : tensor<2x3x9x11xf32> -> tensor<2x3x11x13xf32>
    %3 = nn.window %2 {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>} : tensor<2x3x11x13xf32> -> tensor<2x3x3x3x5x6xf32>
    %r = nn.reduce max %3 {axes = array<i64: 2, 3>} : tensor<2x3x3x3x5x6xf32> -> tensor<2x3x1x1x5x6xf32>)",
            "tensor<2x3x1x1x5x6xf32>", {someFloats({2, 3, 9, 11}), someFloats({3, 1, 1}, 2)});
  EXPECT_EQ(numKernelRuns, 1);
  toleranceScale = 2; // sums of 6
  checkBody("%x: tensor<2x5x70xf32>", R"(
    %0 = nn.window %x {strides = array<i64: 1, 1>, dilations = array<i64: 2, 1>} : tensor<2x5x70xf32> -> tensor<2x2x3x3x68xf32>
    %1 = nn.reduce sum %0 {axes = array<i64: 1, 2>} : tensor<2x2x3x3x68xf32> -> tensor<2x1x1x3x68xf32>
    %n = nn.constant dense<[[2.0], [4.0], [6.0]]> : tensor<3x1xf32> : tensor<3x1xf32>
    %r = nn.div %1, %n : tensor<2x1x1x3x68xf32>, tensor<3x1xf32> -> tensor<2x1x1x3x68xf32>)",
            "tensor<2x1x1x3x68xf32>", {someFloats({2, 5, 70})});
}

TEST_F(KernelTest, ConcatOfThreeOneEmpty) {
  checkBody("%x: tensor<2x3xi32>, %y: tensor<2x0xi32>, %z: tensor<2x4xi32>",
            "%r = nn.concat %x, %y, %z {axis = 1 : i64} : tensor<2x3xi32>, tensor<2x0xi32>, tensor<2x4xi32> -> "
            "tensor<2x7xi32>",
            "tensor<2x7xi32>",
            {[] {
               Tensor t(DType::I32, {2, 3});
               t.ints = {1, 2, 3, 4, 5, 6};
               return t;
             }(),
             Tensor(DType::I32, {2, 0}),
             [] {
               Tensor t(DType::I32, {2, 4});
               t.ints = {-1, -2, -3, -4, -5, -6, -7, -8};
               return t;
             }()});
}

// Negative ids count from the end; what names nothing is NaN; nothing outside the table is read, whatever the id.
TEST_F(KernelTest, EmbeddingOfAnyId) {
  std::vector<int64_t> ids = {0, 6, -1, -7, 7, -8, INT64_MAX, INT64_MIN, 3, 1234567890123};
  checkBody("%t: tensor<7x5xf32>, %i: tensor<2x5xi64>",
            "%r = nn.embedding %t, %i {vocabulary = 7 : i64} : tensor<7x5xf32>, tensor<2x5xi64> -> tensor<2x5x5xf32>",
            "tensor<2x5x5xf32>", {someFloats({7, 5}), someInts({2, 5}, ids)});
}

// So many ids that rows are told apart by bits first: of the call's rows alone, the last ones of their words, rows that many ids name, by both numbers, or none;
// ids of other parts of the table and of nothing. Without bits, and of a part, the answer is the same.
TEST_F(KernelTest, EmbeddingGradientOfManyIds) {
  for (int64_t count : {127, 128, 600})
    for (const char *element : {"f32", "bf16"})
      for (auto [rows, offset] : {std::pair<int64_t, int64_t>{131, 0}, {70, 60}, {1, 130}}) {
        std::vector<int64_t> ids;
        for (int64_t i = 0; i < count; ++i)
          ids.push_back(i * i * 7 % 262 - 131);
        for (auto [place, id] : {std::pair<size_t, int64_t>{3, 63}, {9, 64}, {11, 127}, {20, 128}, {21, 130}, {22, -1}, {40, 131}, {41, -132}, {50, INT64_MAX}, {60, INT64_MIN}})
          ids[place] = id;
        const std::string n = std::to_string(count), e = element, result = "tensor<" + std::to_string(rows) + "x5x" + e + ">", g = "tensor<" + n + "x5x" + e + ">";
        Tensor terms = someFloats({count, 5});
        terms.dtype = *parseDType(e);
        round(terms);
        Tensor start(DType::I64, {});
        start.ints = {offset};
        toleranceScale = 8; // some ten terms a row
        checkBody("%g: " + g + ", %i: tensor<" + n + "xi64>, %o: tensor<i64>",
                  "%r = nn.embedding_grad %g, %i offset %o : tensor<i64> {vocabulary = 131 : i64} : " + g + ", tensor<" + n + "xi64> -> " + result, result,
                  {terms, someInts({count}, ids), start});
      }
}

TEST_F(KernelTest, GatherOfAnyIndex) {
  std::vector<int64_t> ids = {0, 3, -1, -4, 1234567890123, -1234567890123};
  checkBody("%t: tensor<2x4x3xf32>, %i: tensor<3x2xi64>",
            "%r = nn.gather %t, %i {axis = 1 : i64} : tensor<2x4x3xf32>, tensor<3x2xi64> -> tensor<2x3x2x3xf32>",
            "tensor<2x3x2x3xf32>", {someFloats({2, 4, 3}), someInts({3, 2}, ids)});
}

TEST_F(KernelTest, GatherNd) {
  std::vector<int64_t> ids = {0, 0, -1, 2, 3, -3, 1234567890123, 0, 1, 1, 0, -1234567890123};
  checkBody(
      "%t: tensor<2x4x3x2xf32>, %i: tensor<2x3x2xi64>",
      "%r = nn.gather_nd %t, %i {batch_dims = 1 : i64} : tensor<2x4x3x2xf32>, tensor<2x3x2xi64> -> tensor<2x3x2xf32>",
      "tensor<2x3x2xf32>", {someFloats({2, 4, 3, 2}), someInts({2, 3, 2}, ids)});
}

struct Cumsums : KernelTest, testing::WithParamInterface<const char *> {};
TEST_P(Cumsums, EqualTheInterpreter) {
  checkBody("%x: tensor<3x5x2xf32>",
            std::string("%r = nn.cumsum %x {axis = 1 : i64") + GetParam() +
                "} : tensor<3x5x2xf32> -> tensor<3x5x2xf32>",
            "tensor<3x5x2xf32>", {someFloats({3, 5, 2})});
}
INSTANTIATE_TEST_SUITE_P(All, Cumsums, testing::Values("", ", exclusive", ", reverse", ", exclusive, reverse"));

TEST_F(KernelTest, MasksAndConstants) {
  checkBody("%x: tensor<2x5x5xf32>", R"(
    %i = nn.iota {dim = 0 : i64, start = 1 : i64} : tensor<5x1xi64>
    %j = nn.iota {dim = 1 : i64, step = 2 : i64} : tensor<1x5xi64>
    %m = nn.compare ge %i, %j : tensor<5x1xi64>, tensor<1x5xi64> -> tensor<5x5xi1>
    %k = nn.constant dense<[true, false, true, true, false]> : tensor<5xi1> : tensor<5xi1>
    %mk = nn.and %m, %k : tensor<5x5xi1>, tensor<5xi1> -> tensor<5x5xi1>
    %c = nn.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0]]> : tensor<1x5xf32> : tensor<1x5xf32>
    %low = nn.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
    %0 = nn.mul %x, %c : tensor<2x5x5xf32>, tensor<1x5xf32> -> tensor<2x5x5xf32>
    %r = nn.select %mk, %0, %low : tensor<5x5xi1>, tensor<2x5x5xf32>, tensor<f32> -> tensor<2x5x5xf32>)",
            "tensor<2x5x5xf32>", {someFloats({2, 5, 5})});
  EXPECT_EQ(numKernelRuns, 1);
}

TEST_F(KernelTest, NothingAndOneElement) {
  parse(R"(
    func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
      %r = nn.exp %x : tensor<f32> -> tensor<f32>
      return %r : tensor<f32>
    }
    func.func @empty(%x: tensor<3x0xf32>) -> (tensor<3x0xf32>, tensor<3x1xf32>, tensor<3x1xf32>) {
      %e = nn.exp %x : tensor<3x0xf32> -> tensor<3x0xf32>
      %s = nn.reduce sum %e {axes = array<i64: 1>} : tensor<3x0xf32> -> tensor<3x1xf32>
      %m = nn.reduce max %e {axes = array<i64: 1>} : tensor<3x0xf32> -> tensor<3x1xf32>
      return %e, %s, %m : tensor<3x0xf32>, tensor<3x1xf32>, tensor<3x1xf32>
    }
    func.func @rows(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
      %r = nn.softmax %x : tensor<0x4xf32> -> tensor<0x4xf32>
      return %r : tensor<0x4xf32>
    })");
  check("scalar", {someFloats({})});
  check("empty", {someFloats({3, 0})});
  check("rows", {someFloats({0, 4})});
  EXPECT_EQ(numKernelRuns, 3);
}

// An update in place reads every element before it writes it, although the other result, stored first, is read from the
// same buffers; 67 columns leave a tail of the vector loop.
TEST_F(KernelTest, ResultsInPlace) {
  parse(R"(
    func.func @main(%p: tensor<3x67xf32>, %m: tensor<3x67xf32>, %g: tensor<3x67xf32>) -> (tensor<3x67xf32>, tensor<3x67xf32>) {
      %r:2 = nn.fused "momentum" (%p, %m, %g) {in_place = array<i64: 1, 0>} : (tensor<3x67xf32>, tensor<3x67xf32>, tensor<3x67xf32>) -> (tensor<3x67xf32>, tensor<3x67xf32>) {
      ^bb0(%a: tensor<3x67xf32>, %b: tensor<3x67xf32>, %c: tensor<3x67xf32>):
        %0 = nn.add %b, %c : tensor<3x67xf32>, tensor<3x67xf32> -> tensor<3x67xf32>
        %1 = nn.sub %a, %b : tensor<3x67xf32>, tensor<3x67xf32> -> tensor<3x67xf32>
        nn.yield %0, %1 : tensor<3x67xf32>, tensor<3x67xf32>
      }
      return %r#0, %r#1 : tensor<3x67xf32>, tensor<3x67xf32>
    })");
  check("main", {someFloats({3, 67}), someFloats({3, 67}, 2), someFloats({3, 67}, 3)});
  EXPECT_EQ(numKernelRuns, 1);
}

// A product is rounded before it is added to, as the graph's two nodes say: a - b of equal numbers is 0 on both ways to
// them, so its logarithm is -inf and not NaN, its square root 0.
TEST_F(KernelTest, ProductsAndSumsOfTwoNodesAreNotContracted) {
  toleranceScale = 0;
  checkBody("%x: tensor<5x33xf32>, %y: tensor<5x33xf32>", R"(
    %0 = nn.mul %x, %y : tensor<5x33xf32>, tensor<5x33xf32> -> tensor<5x33xf32>
    %1 = nn.reduce max %0 {axes = array<i64: 1>} : tensor<5x33xf32> -> tensor<5x1xf32>
    %2 = nn.sub %1, %0 : tensor<5x1xf32>, tensor<5x33xf32> -> tensor<5x33xf32>
    %3 = nn.sqrt %2 : tensor<5x33xf32> -> tensor<5x33xf32>
    %4 = nn.mul %y, %y : tensor<5x33xf32>, tensor<5x33xf32> -> tensor<5x33xf32>
    %5 = nn.sub %0, %4 : tensor<5x33xf32>, tensor<5x33xf32> -> tensor<5x33xf32>
    %6 = nn.floor %5 : tensor<5x33xf32> -> tensor<5x33xf32>
    %r = nn.add %3, %6 : tensor<5x33xf32>, tensor<5x33xf32> -> tensor<5x33xf32>)",
            "tensor<5x33xf32>", {someFloats({5, 33}), someFloats({5, 33}, 2)});
  EXPECT_EQ(numKernelRuns, 1);
}

// What the whole object is: the same bytes for the same module.
TEST_F(KernelTest, TheSameBytesTwice) {
  const char *text = R"(
    func.func @main(%x: tensor<6x33xf32>) -> tensor<6x33xf32> {
      %0 = nn.softmax %x : tensor<6x33xf32> -> tensor<6x33xf32>
      return %0 : tensor<6x33xf32>
    })";
  parse(text);
  runPasses();
  Attribute first = (*module)->getAttr("hpc.code");
  parse(text);
  runPasses();
  EXPECT_EQ(first, (*module)->getAttr("hpc.code"));
}

} // namespace
} // namespace hpc::test
