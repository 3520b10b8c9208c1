// Bounds of what lies between two values that --verify compares: wide enough for every order of summation and every approximation
// that a plan may choose, too narrow for the smallest thing that a wrong plan leaves out.
#include "compiler/Interpreter/Follower.h"

#include "test/unit/compiler/InterpreterFixture.h"

#include <cmath>
#include <random>

using namespace hpc;

namespace {

struct Analysed {
  Tensor value;              ///< as the interpreter rounds it
  std::vector<double> bound; ///< by element

  double largest() const { return *std::max_element(bound.begin(), bound.end()); }
  /// Of the first element of another tensor that is out of bounds; -1: of none.
  int64_t firstOutside(const Tensor &other) const {
    for (int64_t i = 0; i < value.size(); ++i)
      if (double is = other.number(i), should = value.number(i);
          !(is == should || (std::isnan(is) && std::isnan(should)) || std::abs(is - should) <= bound[size_t(i)]))
        return i;
    return -1;
  }
};

struct LocalBoundsTest : InterpreterTest {
  std::mt19937 random{7};

  Tensor normal(DType dtype, ArrayRef<int64_t> shape) {
    Tensor tensor(dtype, shape);
    std::normal_distribution<double> distribution;
    for (double &value : tensor.floats)
      value = roundTo(dtype, distribution(random));
    return tensor;
  }

  static std::string typeOf(const Tensor &tensor) {
    std::string text = "tensor<";
    for (int64_t size : tensor.shape)
      text += std::to_string(size) + "x";
    return text + (isFloat(tensor.dtype) ? "" : "i") + (tensor.dtype == DType::BF16 ? "bf16" : tensor.dtype == DType::I64 ? "64" : name(tensor.dtype)) + ">";
  }

  func::FuncOp program(const std::string &body, const std::string &type, ArrayRef<Tensor> inputs) {
    std::string text;
    for (const Tensor &input : inputs)
      text += (text.empty() ? "%x" : ", %x") + std::to_string(&input - inputs.data()) + ": " + typeOf(input);
    return parse("func.func @main(" + text + ") -> " + type + " {\n" + body + "\n return %r : " + type + "\n}");
  }

  /// %r, of type `type`, of a body that reads %x0, %x1, ..., none of whose values but these is compared.
  Analysed analyse(const std::string &body, const std::string &type, ArrayRef<Tensor> inputs, bool doublePrecision = false) {
    func::FuncOp main = program(body, type, inputs);
    Follower follower(dist::Mesh(), doublePrecision, [](Value, LocalTensors &, const LocalTensors &) { return Status::success(); });
    RunOptions options;
    options.doublePrecision = doublePrecision;
    options.follow = [&](Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results) {
      return follower.follow(op, operands, results);
    };
    Expected<std::vector<Tensor>> results = runFunction(main, inputs, options);
    EXPECT_TRUE(results.ok()) << results.status().text();
    LocalTensors bounds = follower.boundsOf(main.getBody().front().getTerminator()->getOperand(0));
    Analysed found{results->front(), std::vector<double>(size_t(results->front().size()), 0)};
    if (!bounds.empty() && bounds.front())
      found.bound = bounds.front()->floats;
    return found;
  }

  /// The same with sums that go term by term in f32.
  Tensor termByTerm(const std::string &body, const std::string &type, ArrayRef<Tensor> inputs) {
    RunOptions options;
    options.ownPrecision = true;
    Expected<std::vector<Tensor>> results = runFunction(program(body, type, inputs), inputs, options);
    EXPECT_TRUE(results.ok()) << results.status().text();
    return results->front();
  }
};

/// A product's elements in `lanes` partial sums of type Real, the last term first.
template <typename Real> Tensor productInLanes(const Tensor &a, const Tensor &b, int64_t lanes, int64_t missing = -1) {
  int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  Tensor result(a.dtype, {m, n});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      std::vector<Real> sums(lanes, 0);
      for (int64_t p = k; p-- > 0;)
        if (p != missing)
          sums[p % lanes] += Real(a.floats[i * k + p]) * Real(b.floats[p * n + j]);
      Real sum = 0;
      for (Real lane : sums)
        sum += lane;
      result.floats[i * n + j] = roundTo(a.dtype, sum);
    }
  return result;
}

/// One term of k that is left out of a product, whichever it is, is more than the bound somewhere; every order of its sum is less.
TEST_F(LocalBoundsTest, ProductsMissNoTerm) {
  for (auto [dtype, suffix] : {std::pair(DType::F32, "f32"), std::pair(DType::F64, "f64"), std::pair(DType::BF16, "bf16")})
    for (int64_t k : {1, 3, 16, 64, 256, 768, 4096}) {
      SCOPED_TRACE(std::string(suffix) + " k=" + std::to_string(k));
      Tensor a = normal(dtype, {6, k}), b = normal(dtype, {k, 20});
      std::string type = std::string("tensor<6x20x") + suffix + ">";
      Analysed product = analyse("%r = nn.matmul %x0, %x1 : " + typeOf(a) + ", " + typeOf(b) + " -> " + type, type, {a, b});
      auto inLanes = [&, dtype = dtype](int64_t lanes, int64_t missing) {
        return dtype == DType::F64 ? productInLanes<double>(a, b, lanes, missing) : productInLanes<float>(a, b, lanes, missing);
      };
      for (int64_t lanes : {1, 3, 8, 16})
        EXPECT_EQ(product.firstOutside(inLanes(lanes, -1)), -1) << lanes;
      for (int64_t missing = 0; missing < k; missing += std::max<int64_t>(1, k / 37))
        EXPECT_GE(product.firstOutside(inLanes(8, missing)), 0) << missing;
    }
}

/// Machines that multiply pieces or pairs of bf16 take numbers below 2^-126 for 0, of a factor or of a term: that is no
/// difference. In f64, and a little above, it is.
TEST_F(LocalBoundsTest, WhatIsSmallerThanNormalMayBeNothing) {
  for (auto [dtype, suffix, mayBeNothing] :
       {std::tuple(DType::F32, "f32", true), {DType::BF16, "bf16", true}, {DType::F64, "f64", false}})
    for (auto [left, right] : {std::pair(0x1p-70, 0x1p-70), {0x1p-128, 2.0}, {0x1p-60, 0x1p-50}}) {
      const bool isSmall = left * right < 0x1p-120;
      SCOPED_TRACE(std::string(suffix) + (isSmall ? " small" : " normal"));
      Tensor a(dtype, {6, 64}), b(dtype, {64, 20}), nothing(dtype, {6, 20});
      a.floats.assign(a.floats.size(), 1.25 * left);
      b.floats.assign(b.floats.size(), 1.5 * right);
      const std::string type = std::string("tensor<6x20x") + suffix + ">";
      Analysed product =
          analyse("%r = nn.matmul %x0, %x1 : " + typeOf(a) + ", " + typeOf(b) + " -> " + type, type, {a, b});
      EXPECT_EQ(product.firstOutside(nothing) < 0, mayBeNothing && isSmall);
    }
}

/// A f64 value that went through f32 on the way is off by far more than its bound: f32's would let it pass.
TEST_F(LocalBoundsTest, DoublesAreJudgedByTheirOwnPrecision) {
  Tensor a = normal(DType::F64, {6, 64}), b = normal(DType::F64, {64, 20});
  std::string type = "tensor<6x20xf64>", body = "%r = nn.matmul %x0, %x1 : " + typeOf(a) + ", " + typeOf(b) + " -> " + type;
  Analysed product = analyse(body, type, {a, b});
  Tensor single = productInLanes<float>(a, b, 1);
  for (int64_t i = 0; i < single.size(); ++i)
    EXPECT_GT(std::abs(single.floats[i] - product.value.floats[i]), 1e2 * product.bound[i]) << i;
  EXPECT_LT(analyse(body, type, {a, b}, /*doublePrecision=*/true).largest(), 1e-12);
}

/// Running sums that cancel to (almost) nothing: the bound follows the terms, and still finds one that is missing.
TEST_F(LocalBoundsTest, SumsThatCancel) {
  for (int64_t n : {8, 100, 3000}) {
    Tensor x = normal(DType::F32, {1, n});
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += x.floats[i];
    for (double &value : x.floats)
      value = float(value - sum / double(n));
    std::string in = typeOf(x), tail = " : " + in + " -> ";
    for (const std::string &op : {"nn.reduce sum %x0 {axes = array<i64: 1>}" + tail + "tensor<1x1xf32>",
                                  "nn.cumsum %x0 {axis = 1 : i64}" + tail + in}) {
      SCOPED_TRACE(op);
      std::string type = op.substr(op.rfind("-> ") + 3);
      Analysed sums = analyse("%r = " + op, type, {x});
      float last = 0; // the last one, added up from the end
      for (int64_t i = n; i-- > 0;)
        last += float(x.floats[i]);
      EXPECT_EQ(sums.firstOutside(termByTerm("%r = " + op, type, {x})), -1);
      EXPECT_LE(std::abs(last - sums.value.floats.back()), sums.bound.back());
      EXPECT_LT(sums.bound.back(), 0.1) << "a term is 0.8 on average";
    }
  }
}

/// Equal terms round the same way, as the gradient of a mean does in the gradient of a bias: their errors have one sign and add up.
TEST_F(LocalBoundsTest, EqualTerms) {
  for (int64_t n : {10, 100, 1000, 4096})
    for (double term : {0.1, 1.0 / 3, 1.0 / double(n), 1e-3, 0.7})
      for (int64_t lanes : {1, 8, 64}) {
        if (n / lanes > 1024)
          continue; // no plan has such a chain: rows go by lanes, columns by blocks
        Tensor x(DType::F32, {1, n});
        std::fill(x.floats.begin(), x.floats.end(), double(float(term)));
        Analysed sum = analyse("%r = nn.reduce sum %x0 {axes = array<i64: 1>} : " + typeOf(x) + " -> tensor<1x1xf32>", "tensor<1x1xf32>", {x});
        std::vector<float> sums(size_t(lanes), 0);
        for (int64_t i = 0; i < n; ++i)
          sums[size_t(i % lanes)] += float(term);
        float total = 0;
        for (float each : sums)
          total += each;
        EXPECT_LE(std::abs(double(total) - sum.value.floats[0]), sum.bound[0]) << n << " of " << term << " in " << lanes;
        EXPECT_LT(sum.bound[0], term) << "one of them that is missing";
      }
}

/// What IEEE rounds correctly is the same in every plan, and so is what compares, chooses and moves it.
TEST_F(LocalBoundsTest, ExactOpsHaveNoBound) {
  Tensor x = normal(DType::F32, {4, 8}), y = normal(DType::F32, {4, 8});
  std::string t = "tensor<4x8xf32>", two = " : " + t + ", " + t + " -> " + t, one = " : " + t + " -> " + t;
  for (const std::string &op : {"nn.add %x0, %x1" + two, "nn.sub %x0, %x1" + two, "nn.mul %x0, %x1" + two, "nn.div %x0, %x1" + two,
                                "nn.max %x0, %x1" + two, "nn.sqrt %x0" + one, "nn.floor %x0" + one, "nn.relu %x0" + one})
    EXPECT_EQ(analyse("%r = " + op, t, {x, y}).largest(), 0) << op;
  EXPECT_EQ(analyse("%p = nn.mul %x0, %x1" + two + "\n%q = nn.mul %x0, %x1" + two + "\n%d = nn.sub %p, %q" + two + "\n%r = nn.log %d" + one, t, {x, y}).largest(), 0)
      << "-inf everywhere";
  EXPECT_EQ(analyse("%r = nn.reduce max %x0 {axes = array<i64: 1>} : " + t + " -> tensor<4x1xf32>", "tensor<4x1xf32>", {x}).largest(), 0);
  EXPECT_EQ(analyse("%w = nn.round %x0" + one + "\n%r = nn.reduce sum %w {axes = array<i64: 1>} : " + t + " -> tensor<4x1xf32>", "tensor<4x1xf32>", {x}).largest(), 0)
      << "a sum of whole numbers";
}

/// Adam's step of a gradient that is nothing but rounding errors: from moments that were compared it is known to the last bits, though
/// its sign is anybody's. A formula that is wrong in it is seen.
TEST_F(LocalBoundsTest, StepsOfRoundingErrors) {
  Tensor gradient = normal(DType::F32, {100}), square(DType::F32, {100});
  for (int64_t i = 0; i < 100; ++i) {
    gradient.floats[i] = float(gradient.floats[i] * 1e-9);
    square.floats[i] = float(gradient.floats[i] * gradient.floats[i]);
  }
  std::string t = "tensor<100xf32>", in = " : " + t + ", " + t + " -> " + t + "\n";
  std::string step = "%s = nn.sqrt %x1 : " + t + " -> " + t + "\n%c = nn.constant dense<1.0e-12> : tensor<f32> : tensor<f32>\n%d = nn.add %s, %c : " + t +
                     ", tensor<f32> -> " + t + "\n";
  Analysed right = analyse(step + "%r = nn.div %x0, %d" + in, t, {gradient, square});
  EXPECT_EQ(right.largest(), 0);
  EXPECT_GE(right.firstOutside(termByTerm(step + "%r = nn.div %x0, %s" + in, t, {gradient, square})), 0) << "without epsilon";
}

/// Composites: every step rounds, or is contracted with the next, or is a product with a reciprocal; sums have any order.
TEST_F(LocalBoundsTest, CompositesStayTight) {
  for (int64_t n : {4, 64, 1000}) {
    Tensor x = normal(DType::F32, {4, n});
    std::string t = typeOf(x);
    for (const std::string &op : {"nn.softmax %x0 : " + t + " -> " + t, "nn.layer_norm %x0 {epsilon = 1.0e-5 : f64} : " + t + " -> " + t,
                                  "nn.rms_norm %x0 {epsilon = 1.0e-5 : f64} : " + t + " -> " + t}) {
      SCOPED_TRACE(op);
      Analysed found = analyse("%r = " + op, t, {x});
      EXPECT_EQ(found.firstOutside(termByTerm("%r = " + op, t, {x})), -1);
      double largest = 0;
      for (double value : found.value.floats)
        largest = std::max(largest, std::abs(value));
      EXPECT_LT(found.largest(), 1e-4 * largest);
      EXPECT_GT(found.largest(), 0x1p-24 * largest);
    }
  }
}

/// Where rounding decides between two whole numbers inside a region, both pass; where it does not, a comparison is exact.
TEST_F(LocalBoundsTest, JumpsThatRoundingDecides) {
  Tensor tenths(DType::F32, {1, 10}), x = floatTensor({2}, {0.25, 0.75});
  std::fill(tenths.floats.begin(), tenths.floats.end(), double(0.1f));
  std::string sum = "%s = nn.reduce sum %x0 {axes = array<i64: 1>} : tensor<1x10xf32> -> tensor<1x1xf32>\n"
                    "%one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>\n";
  EXPECT_EQ(analyse(sum + "%r = nn.floor %s : tensor<1x1xf32> -> tensor<1x1xf32>", "tensor<1x1xf32>", {tenths}).bound[0], 1);
  std::string compared = sum + "%b = nn.compare ge %s, %one : tensor<1x1xf32>, tensor<f32> -> tensor<1x1xi1>\n";
  EXPECT_EQ(analyse(compared + "%r = nn.not %b : tensor<1x1xi1> -> tensor<1x1xi1>", "tensor<1x1xi1>", {tenths}).bound[0], 1);
  EXPECT_GE(analyse(compared + "%t = nn.constant dense<3.0> : tensor<f32> : tensor<f32>\n%r = nn.select %b, %t, %one : tensor<1x1xi1>, tensor<f32>, tensor<f32> -> tensor<1x1xf32>",
                    "tensor<1x1xf32>", {tenths}).bound[0], 2);
  EXPECT_EQ(analyse("%h = nn.constant dense<0.5> : tensor<f32> : tensor<f32>\n%y = nn.tanh %x0 : tensor<2xf32> -> tensor<2xf32>\n"
                    "%r = nn.compare ge %y, %h : tensor<2xf32>, tensor<f32> -> tensor<2xi1>", "tensor<2xi1>", {x}).largest(), 0);
}

/// The gradient of a maximum asks where it was: an element and the maximum that it is have the same errors. Were each
/// taken for itself, nothing would be equal and the gradient divided by a count of 0.
TEST_F(LocalBoundsTest, AMaximumIsItsElement) {
  Tensor x = normal(DType::F32, {4, 8});
  std::string body = "%y = nn.exp %x0 : tensor<4x8xf32> -> tensor<4x8xf32>\n"
                     "%m = nn.reduce max %y {axes = array<i64: 1>} : tensor<4x8xf32> -> tensor<4x1xf32>\n";
  for (const char *kind : {"eq", "ge"})
    EXPECT_EQ(analyse(body + "%r = nn.compare " + kind + " %y, %m : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xi1>",
                      "tensor<4x8xi1>", {x}).largest(), 0) << kind;
  // Two values that are equal by chance.
  Tensor fours = floatTensor({2}, {4, 4});
  EXPECT_EQ(analyse("%l = nn.log %x0 : tensor<2xf32> -> tensor<2xf32>\n%h = nn.sqrt %x0 : tensor<2xf32> -> tensor<2xf32>\n"
                    "%g = nn.log %h : tensor<2xf32> -> tensor<2xf32>\n%t = nn.add %g, %g : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>\n"
                    "%r = nn.compare eq %l, %t : tensor<2xf32>, tensor<2xf32> -> tensor<2xi1>", "tensor<2xi1>", {fours}).largest(), 1);
}

/// A large mask absorbs the errors of the score that is added to it, in every plan alike: a row that is hidden as a whole has equal weights.
TEST_F(LocalBoundsTest, MasksThatAbsorb) {
  for (double mask : {-1e9, -1e30, -3.4e38}) {
    Tensor scores = normal(DType::F32, {4, 6}), weight = normal(DType::F32, {6, 6}), hidden(DType::F32, {4, 1});
    hidden.floats = {0, float(mask), 0, float(mask)};
    const std::string body = "%s = nn.matmul %x0, %x2 : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>\n"
                             "%m = nn.add %s, %x1 : tensor<4x6xf32>, tensor<4x1xf32> -> tensor<4x6xf32>\n";
    Analysed sums = analyse(body + "%r = nn.neg %m : tensor<4x6xf32> -> tensor<4x6xf32>", "tensor<4x6xf32>", {scores, hidden, weight});
    Analysed weights = analyse(body + "%r = nn.softmax %m : tensor<4x6xf32> -> tensor<4x6xf32>", "tensor<4x6xf32>", {scores, hidden, weight});
    for (size_t i = 0; i < 24; ++i) {
      EXPECT_EQ(sums.bound[i] == 0, i / 6 % 2 == 1) << mask << " " << i;
      EXPECT_LT(weights.bound[i], 1e-4) << mask << " " << i;
    }
  }
}

/// Two rounded terms that cancel need not cancel in a plan that rounds one of them otherwise.
TEST_F(LocalBoundsTest, TwoTermsThatCancel) {
  Tensor x = normal(DType::F32, {100});
  std::string t = "tensor<100xf32>", in = " : " + t + ", " + t + " -> " + t + "\n";
  Analysed sum = analyse("%y = nn.exp %x0 : " + t + " -> " + t + "\n%n = nn.neg %y : " + t + " -> " + t + "\n%r = nn.add %y, %n" + in, t, {x});
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_GE(sum.bound[i], 0x1p-23 * std::exp(x.floats[i]));
    EXPECT_LT(sum.bound[i], 0x1p-18 * std::exp(x.floats[i]));
  }
}

/// 16 bits: a number near 0 has a spacing of its own, and a step of a composite that rounds to them may be left out.
TEST_F(LocalBoundsTest, NarrowNumbersNearZero) {
  Tensor a = normal(DType::F16, {4, 32}), b = normal(DType::F16, {32, 4});
  for (double &value : a.floats)
    value = roundTo(DType::F16, value * 0x1p-20);
  std::string type = "tensor<4x4xf16>";
  Analysed product = analyse("%r = nn.matmul %x0, %x1 : " + typeOf(a) + ", " + typeOf(b) + " -> " + type, type, {a, b});
  EXPECT_EQ(product.firstOutside(productInLanes<float>(a, b, 4)), -1);
  for (double bound : product.bound)
    EXPECT_GE(bound, 0x1p-24);
}

/// A sum whose terms leave f32 may be infinite on the way in one order and not in another.
TEST_F(LocalBoundsTest, SumsThatLeaveTheirType) {
  Tensor x = floatTensor({1, 4}, {3e38, 3e38, -3e38, -3e38});
  x.shape = {1, 4};
  EXPECT_TRUE(std::isinf(analyse("%r = nn.reduce sum %x0 {axes = array<i64: 1>} : tensor<1x4xf32> -> tensor<1x1xf32>", "tensor<1x1xf32>", {x}).bound[0]));
}

/// Bounds of ranks' terms add up with the terms, and what fills a tail is exact, though the tail itself is poison.
TEST_F(LocalBoundsTest, SumsOfRanks) {
  func::FuncOp main = parse(R"(
    #c = #dist.sharding<"[5@x]">
    #p = #dist.sharding<"[1] partial{x}">
    #full = #dist.sharding<"[1]">
    func.func @main(%x: tensor<3xf32, #c>) -> tensor<1xf32, #full> {
      %e = nn.exp %x : tensor<3xf32, #c> -> tensor<3xf32, #c>
      %f = dist.fill_tail %e {dims = array<i64: 0>, value = 0.0 : f32} : tensor<3xf32, #c> -> tensor<3xf32, #c>
      %s = nn.reduce sum %f {axes = array<i64: 0>} : tensor<3xf32, #c> -> tensor<1xf32, #p>
      %r = dist.all_reduce %s {before = #p, after = #full, axes = ["x"], kind = #dist<reduce_kind sum>} : tensor<1xf32, #p> -> tensor<1xf32, #full>
      return %r : tensor<1xf32, #full>
    })");
  ASSERT_TRUE(main);
  dist::Mesh mesh = *dist::parseMesh("x=2:tensor");
  Follower follower(mesh, /*doublePrecision=*/false, [](Value, LocalTensors &, const LocalTensors &) { return Status::success(); });
  RunOptions options;
  options.follow = [&](Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results) {
    return follower.follow(op, operands, results);
  };
  Tensor x = normal(DType::F32, {5});
  Expected<std::vector<Tensor>> results = runPartitioned(main, {x}, mesh, options);
  ASSERT_TRUE(results.ok()) << results.status().text();
  double sum = 0;
  for (double value : x.floats)
    sum += std::exp(value);
  LocalTensors bounds = follower.boundsOf(main.getBody().front().getTerminator()->getOperand(0));
  ASSERT_EQ(bounds.size(), 2u);
  for (const SharedTensor &bound : bounds) {
    ASSERT_TRUE(bound);
    EXPECT_GT(bound->floats[0], 4 * 0x1p-23 * sum) << "four units of each exponential";
    EXPECT_LT(bound->floats[0], 32 * 0x1p-23 * sum);
  }
}

/// What the other run has takes the place of what was computed, and with it errors end.
TEST_F(LocalBoundsTest, ComparedValuesEndErrors) {
  Tensor x = normal(DType::F32, {8});
  func::FuncOp main = program("%e = nn.exp %x0 : tensor<8xf32> -> tensor<8xf32>\n%r = nn.add %e, %e : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>", "tensor<8xf32>", {x});
  auto other = std::make_shared<Tensor>(DType::F32, ArrayRef<int64_t>{8});
  std::fill(other->floats.begin(), other->floats.end(), 3.0);
  int judged = 0;
  Follower follower(dist::Mesh(), /*doublePrecision=*/false, [&](Value value, LocalTensors &tensors, const LocalTensors &bounds) {
    ++judged;
    if (isa<nn::ExpOp>(value.getDefiningOp())) {
      EXPECT_FALSE(bounds.empty());
      tensors = {other};
    } else {
      EXPECT_TRUE(bounds.empty());
      EXPECT_EQ(tensors.front()->floats[0], 6);
    }
    return Status::success();
  });
  RunOptions options;
  options.follow = [&](Operation *op, ArrayRef<LocalTensors> operands, MutableArrayRef<LocalTensors> results) {
    return follower.follow(op, operands, results);
  };
  Expected<std::vector<Tensor>> results = runFunction(main, {x}, options);
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_EQ(judged, 2);
  EXPECT_EQ(results->front().floats[7], 6);
}

} // namespace
