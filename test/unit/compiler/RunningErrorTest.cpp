// Bounds of the running error analysis: wide enough for every order of summation that a plan may choose, too narrow for
// the smallest thing that a wrong plan leaves out.
#include "compiler/Interpreter/RunningError.h"

#include "test/unit/compiler/InterpreterFixture.h"

#include <cmath>
#include <random>

using namespace hpc;

namespace {

struct Analysed {
  Tensor exact;
  double bound, finiteBound, inDouble;
};

struct RunningErrorTest : InterpreterTest {
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

  /// %r, of type `type`, of a body that reads %x0, %x1, ...; in double, and its bound.
  Analysed analyse(const std::string &body, const std::string &type, ArrayRef<Tensor> inputs) {
    func::FuncOp main = program(body, type, inputs);
    RunningError errors;
    RunOptions options;
    options.doublePrecision = true;
    options.observe = [&](Value value, const LocalTensors &tensors) { return errors.observe(value, tensors.front()); };
    Expected<std::vector<Tensor>> results = runFunction(main, inputs, options);
    EXPECT_TRUE(results.ok()) << results.status().text();
    Value result = main.getBody().front().getTerminator()->getOperand(0);
    return {results->front(), errors.bound(result), errors.finiteBound(result), errors.boundInDouble(result)};
  }

  /// The same with results rounded to their types.
  Tensor rounded(const std::string &body, const std::string &type, ArrayRef<Tensor> inputs, bool ownPrecision = true) {
    RunOptions options;
    options.ownPrecision = ownPrecision;
    Expected<std::vector<Tensor>> results = runFunction(program(body, type, inputs), inputs, options);
    EXPECT_TRUE(results.ok()) << results.status().text();
    return results->front();
  }

  func::FuncOp program(const std::string &body, const std::string &type, ArrayRef<Tensor> inputs) {
    std::string text;
    for (const Tensor &input : inputs)
      text += (text.empty() ? "%x" : ", %x") + std::to_string(&input - inputs.data()) + ": " + typeOf(input);
    return parse("func.func @main(" + text + ") -> " + type + " {\n" + body + "\n return %r : " + type + "\n}");
  }

  static double largestDifference(const Tensor &a, const Tensor &b) {
    double largest = 0;
    for (int64_t i = 0; i < a.size(); ++i)
      largest = std::max(largest, std::abs(a.number(i) - b.number(i)));
    return largest;
  }
};

/// A product's elements in `lanes` partial sums of type Real, the last term first.
template <typename Real> Tensor productInLanes(const Tensor &a, const Tensor &b, int64_t lanes) {
  int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  Tensor result(a.dtype, {m, n});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      std::vector<Real> sums(lanes, 0);
      for (int64_t p = k; p-- > 0;)
        sums[p % lanes] += Real(a.floats[i * k + p]) * Real(b.floats[p * n + j]);
      Real sum = 0;
      for (Real lane : sums)
        sum += lane;
      result.floats[i * n + j] = roundTo(a.dtype, sum);
    }
  return result;
}

/// One term of k that is left out of a product, whichever it is, is more than the bound; every order of its sum is less.
TEST_F(RunningErrorTest, ProductsMissNoTerm) {
  for (auto [dtype, suffix] : {std::pair(DType::F32, "f32"), std::pair(DType::F64, "f64"), std::pair(DType::BF16, "bf16")})
    for (int64_t k : {1, 3, 16, 64, 256, 768, 4096}) {
      if (dtype == DType::BF16 && k > 64)
        continue; // a term is lost in the rounding of the result
      SCOPED_TRACE(std::string(suffix) + " k=" + std::to_string(k));
      Tensor a = normal(dtype, {6, k}), b = normal(dtype, {k, 20});
      std::string type = std::string("tensor<6x20x") + suffix + ">";
      Analysed product = analyse("%r = nn.matmul %x0, %x1 : " + typeOf(a) + ", " + typeOf(b) + " -> " + type, type, {a, b});
      for (int64_t lanes : {1, 3, 8, 16}) {
        Tensor other = dtype == DType::F64 ? productInLanes<double>(a, b, lanes) : productInLanes<float>(a, b, lanes);
        EXPECT_LE(largestDifference(other, product.exact), product.bound) << lanes;
      }
      for (int64_t missing = 0; missing < k; missing += std::max<int64_t>(1, k / 37)) {
        double term = 0;
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 0; j < 20; ++j)
            term = std::max(term, std::abs(a.floats[i * k + missing] * b.floats[missing * 20 + j]));
        EXPECT_GT(term, product.bound) << missing;
      }
    }
}

/// Machines that multiply pieces or pairs of bf16 take numbers below 2^-126 for 0, of a factor or of a term: that is no
/// difference. In f64, and a little above, it is.
TEST_F(RunningErrorTest, WhatIsSmallerThanNormalMayBeNothing) {
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
      EXPECT_EQ(largestDifference(nothing, product.exact) <= product.bound, mayBeNothing && isSmall);
    }
}

/// A f64 value that went through f32 on the way is off by far more than its bound: f32's would let it pass.
TEST_F(RunningErrorTest, DoublesAreJudgedByTheirOwnPrecision) {
  Tensor a = normal(DType::F64, {6, 64}), b = normal(DType::F64, {64, 20});
  std::string type = "tensor<6x20xf64>";
  Analysed product = analyse("%r = nn.matmul %x0, %x1 : " + typeOf(a) + ", " + typeOf(b) + " -> " + type, type, {a, b});
  EXPECT_GT(largestDifference(productInLanes<float>(a, b, 1), product.exact), 1e4 * product.bound);
}

/// Running sums that cancel to (almost) nothing: the bound follows the terms, and still finds one that is missing. A
/// bound relative to the result gave a false alarm here.
TEST_F(RunningErrorTest, SumsThatCancel) {
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
      Tensor forward = rounded("%r = " + op, type, {x});
      float tail = 0; // the last one, added up from the end
      for (int64_t i = n; i-- > 0;)
        tail += float(x.floats[i]);
      EXPECT_LE(largestDifference(forward, sums.exact), sums.bound);
      EXPECT_LE(std::abs(tail - sums.exact.floats.back()), sums.bound);
      EXPECT_LT(sums.bound, 0.02) << "a term is 0.8 on average";
    }
  }
}

/// Two thousand additions of one number: their errors have one sign and add up. A bound that takes them as independent
/// gave a false alarm.
TEST_F(RunningErrorTest, ChainsOfEqualAdditions) {
  std::string body = "%c = nn.constant dense<1.1e-3> : tensor<f32> : tensor<f32>\n%v0 = nn.add %x0, %c : tensor<5xf32>, tensor<f32> -> tensor<5xf32>\n";
  constexpr int length = 2000;
  for (int i = 1; i <= length; ++i)
    body += (i == length ? "%r" : "%v" + std::to_string(i)) + " = nn.add %v" + std::to_string(i - 1) +
            ", %c : tensor<5xf32>, tensor<f32> -> tensor<5xf32>\n";
  Tensor x = normal(DType::F32, {5});
  Analysed chain = analyse(body, "tensor<5xf32>", {x});
  EXPECT_LE(largestDifference(rounded(body, "tensor<5xf32>", {x}), chain.exact), chain.bound);
  EXPECT_LT(chain.bound, 1.1e-3) << "one addition that is missing";
}

/// A network of 48 residual blocks: the bound must not grow with depth by more than errors do, or faults in late layers
/// are not seen; and it holds for the f32 run.
TEST_F(RunningErrorTest, DeepNetworksStayTight) {
  constexpr int64_t width = 64;
  Tensor x = normal(DType::F32, {16, width}), up = normal(DType::F32, {width, width}), down = normal(DType::F32, {width, width});
  for (Tensor *weight : {&up, &down})
    for (double &value : weight->floats)
      value = float(value / 8);
  std::string t = "tensor<16x64xf32>", w = "tensor<64x64xf32>", body;
  for (int i = 0; i < 48; ++i) {
    std::string in = i ? "%o" + std::to_string(i - 1) : "%x0", n = std::to_string(i);
    body += "%n" + n + " = nn.layer_norm " + in + " {epsilon = 1.0e-5 : f64} : " + t + " -> " + t + "\n%u" + n +
            " = nn.matmul %n" + n + ", %x1 : " + t + ", " + w + " -> " + t + "\n%g" + n + " = nn.gelu %u" + n + " : " + t +
            " -> " + t + "\n%d" + n + " = nn.matmul %g" + n + ", %x2 : " + t + ", " + w + " -> " + t + "\n" +
            (i == 47 ? "%r" : "%o" + n) + " = nn.add " + in + ", %d" + n + " : " + t + ", " + t + " -> " + t + "\n";
  }
  Analysed net = analyse(body, t, {x, up, down});
  double largest = 0;
  for (double value : net.exact.floats)
    largest = std::max(largest, std::abs(value));
  EXPECT_LE(largestDifference(rounded(body, t, {x, up, down}, /*ownPrecision=*/false), net.exact), net.bound);
  EXPECT_LT(net.bound, 1e-4 * largest);
}

/// Where rounding decides between two whole numbers, both pass; where it does not, a comparison is exact.
TEST_F(RunningErrorTest, JumpsThatRoundingDecides) {
  Tensor tenths(DType::F32, {1, 10}), x = floatTensor({2}, {0.25, 0.75});
  std::fill(tenths.floats.begin(), tenths.floats.end(), double(0.1f));
  std::string sum = "%s = nn.reduce sum %x0 {axes = array<i64: 1>} : tensor<1x10xf32> -> tensor<1x1xf32>\n"
                    "%one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>\n";
  EXPECT_GE(analyse(sum + "%r = nn.floor %s : tensor<1x1xf32> -> tensor<1x1xf32>", "tensor<1x1xf32>", {tenths}).bound, 1);
  EXPECT_EQ(analyse(sum + "%r = nn.compare ge %s, %one : tensor<1x1xf32>, tensor<f32> -> tensor<1x1xi1>",
                    "tensor<1x1xi1>", {tenths}).bound, 1);
  EXPECT_EQ(analyse("%h = nn.constant dense<0.5> : tensor<f32> : tensor<f32>\n%y = nn.tanh %x0 : tensor<2xf32> -> tensor<2xf32>\n"
                    "%r = nn.compare ge %y, %h : tensor<2xf32>, tensor<f32> -> tensor<2xi1>", "tensor<2xi1>", {x}).bound, 0);
}

/// Numbers on a grid that is finer than their errors (--deterministic): rounding to it is no jump. Were each moved to the other end of
/// its bound, all of them by the same way, the bound of their sum would grow by sqrt(k) with every product.
TEST_F(RunningErrorTest, GridsFinerThanErrors) {
  Tensor x = normal(DType::F32, {16, 256}), w = normal(DType::F32, {256, 16});
  std::string y = "%y = nn.tanh %x0 : tensor<16x256xf32> -> tensor<16x256xf32>\n", wide = "tensor<16x256xf64>";
  double plain = analyse(y + "%r = nn.matmul %y, %x1 : tensor<16x256xf32>, tensor<256x16xf32> -> tensor<16x16xf32>",
                         "tensor<16x16xf32>", {x, w}).bound;
  auto grid = [&](int bits) {
    std::string text = y;
    llvm::raw_string_ostream stream(text);
    stream << "%d = nn.cast %y : tensor<16x256xf32> -> " << wide << "\n%c = nn.constant dense<" << std::to_string(std::ldexp(1.0, bits))
           << "> : tensor<f64> : tensor<f64>\n%m = nn.mul %d, %c : " << wide << ", tensor<f64> -> " << wide << "\n%n = nn.round %m : " << wide
           << " -> " << wide << "\n%v = nn.cast %x1 : tensor<256x16xf32> -> tensor<256x16xf64>\n%p = nn.matmul %n, %v : " << wide
           << ", tensor<256x16xf64> -> tensor<16x16xf64>\n%q = nn.div %p, %c : tensor<16x16xf64>, tensor<f64> -> tensor<16x16xf64>\n"
           << "%r = nn.cast %q : tensor<16x16xf64> -> tensor<16x16xf32>";
    return analyse(text, "tensor<16x16xf32>", {x, w}).bound;
  };
  for (int bits : {22, 26}) {
    EXPECT_LT(grid(bits), 2 * plain);
    EXPECT_GT(grid(bits), plain / 16);
  }
}

/// The gradient of a maximum asks where it was: an element and the maximum that it is have the same errors. Were each
/// taken for itself, nothing would be equal and the gradient divided by a count of 0: an infinite bound, or none at all.
TEST_F(RunningErrorTest, AMaximumIsItsElement) {
  Tensor x = normal(DType::F32, {4, 8});
  std::string body = "%y = nn.exp %x0 : tensor<4x8xf32> -> tensor<4x8xf32>\n"
                     "%m = nn.reduce max %y {axes = array<i64: 1>} : tensor<4x8xf32> -> tensor<4x1xf32>\n";
  for (const char *kind : {"eq", "ge"})
    EXPECT_EQ(analyse(body + "%r = nn.compare " + kind + " %y, %m : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xi1>",
                      "tensor<4x8xi1>", {x}).bound, 0) << kind;
  // Two values that are equal by chance, and not in every sample.
  Tensor fours = floatTensor({2}, {4, 4});
  EXPECT_EQ(analyse("%l = nn.log %x0 : tensor<2xf32> -> tensor<2xf32>\n%h = nn.sqrt %x0 : tensor<2xf32> -> tensor<2xf32>\n"
                    "%g = nn.log %h : tensor<2xf32> -> tensor<2xf32>\n%t = nn.add %g, %g : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>\n"
                    "%r = nn.compare eq %l, %t : tensor<2xf32>, tensor<2xf32> -> tensor<2xi1>", "tensor<2xi1>", {fours}).bound, 1);
}

/// A mask of ones and zeros, computed in floats as exporters do, is what it is in every plan: a bound there let a plan
/// attend to what it liked.
TEST_F(RunningErrorTest, WholeNumbersStandOnNoEdge) {
  Tensor mask = floatTensor({4}, {1, 0, 1, 1});
  std::string body = "%one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>\n%s = nn.sub %one, %x0 : tensor<f32>, tensor<4xf32> -> tensor<4xf32>\n";
  EXPECT_EQ(analyse(body + "%r = nn.cast %s : tensor<4xf32> -> tensor<4xi1>", "tensor<4xi1>", {mask}).bound, 0);
  EXPECT_EQ(analyse(body + "%r = nn.neg %s : tensor<4xf32> -> tensor<4xf32>", "tensor<4xf32>", {mask}).bound, 0);
}

/// Two rounded terms that cancel exactly in f32 need not cancel in a plan that rounds one of them otherwise; and the
/// square of what is left may be off by the square of its bound. Each gave a false alarm on gradients that are 0.
TEST_F(RunningErrorTest, TwoTermsThatCancel) {
  Tensor x = normal(DType::F32, {100});
  std::string t = "tensor<100xf32>", in = " : " + t + ", " + t + " -> " + t + "\n";
  std::string body = "%y = nn.exp %x0 : " + t + " -> " + t + "\n%n = nn.neg %y : " + t + " -> " + t + "\n";
  double largest = 0;
  for (double value : x.floats)
    largest = std::max(largest, std::exp(value));
  Analysed sum = analyse(body + "%r = nn.add %y, %n" + in, t, {x});
  EXPECT_GE(sum.bound, 0x1p-23 * largest);
  EXPECT_LT(sum.bound, 0x1p-19 * largest);
  EXPECT_NEAR(analyse(body + "%r = nn.sub %y, %y" + in, t, {x}).bound, sum.bound, 0.01 * sum.bound);
  Analysed square = analyse(body + "%s = nn.add %y, %n" + in + "%r = nn.mul %s, %s" + in, t, {x});
  EXPECT_GE(square.bound, 0.99 * sum.bound * sum.bound);
  EXPECT_LT(square.bound, 1.01 * sum.bound * sum.bound);
}

/// A row whose keys are all masked: masks absorb what is added to them and cancel exactly. Were they rounded like terms of their size,
/// their difference could be 1e31, and its exponential anything.
TEST_F(RunningErrorTest, MasksThatCancel) {
  std::string t = "tensor<4x8xf32>", one = "tensor<4x1xf32>";
  std::string body = "%c = nn.constant dense<-3.4e38> : tensor<f32> : tensor<f32>\n%y = nn.exp %x0 : " + t + " -> " + t +
                     "\n%m = nn.add %y, %c : " + t + ", tensor<f32> -> " + t + "\n%t = nn.reduce max %m {axes = array<i64: 1>} : " + t +
                     " -> " + one + "\n%d = nn.sub %m, %t : " + t + ", " + one + " -> " + t + "\n%r = nn.exp %d : " + t + " -> " + t;
  double bound = analyse(body, t, {normal(DType::F32, {4, 8})}).bound;
  EXPECT_LT(bound, 1e-5);
  EXPECT_GE(bound, 0x1p-22) << "two units in the last place of exp(0), which no plan need have exactly";
}

/// Beside a mask of -1e9 f32 keeps nothing of scores of a few: of a row that is hidden as a whole every plan has equal weights, and is off by that. A bound that cannot
/// say so is too narrow by chance, or says nothing at all: exponentials of errors of a hundred.
TEST_F(RunningErrorTest, MasksThatAbsorb) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    random.seed(seed);
    Tensor scores = normal(DType::F32, {4, 6}), weight = normal(DType::F32, {6, 6}), mask(DType::F32, {4, 1});
    mask.floats = {0, -1e9, 0, -1e9};
    const std::string body = "%s = nn.matmul %x0, %x2 : tensor<4x6xf32>, tensor<6x6xf32> -> tensor<4x6xf32>\n"
                             "%m = nn.add %s, %x1 : tensor<4x6xf32>, tensor<4x1xf32> -> tensor<4x6xf32>\n"
                             "%r = nn.softmax %m : tensor<4x6xf32> -> tensor<4x6xf32>";
    Analysed weights = analyse(body, "tensor<4x6xf32>", {scores, mask, weight});
    double off = 0;
    for (int64_t i = 0; i < 24; ++i)
      if (i / 6 % 2)
        off = std::max(off, std::abs(weights.exact.floats[size_t(i)] - 1.0 / 6));
    EXPECT_LE(off, weights.bound) << seed;
    EXPECT_LE(weights.bound, 17 * off) << seed; // few elements: a safety of up to 16
  }
}

/// Adam's quotient of a number that is nothing but rounding errors is 1 in f32, whose errors are far above its epsilon, and proportional to
/// them in double: the bound of f32 in parts of the type's precision is too small.
TEST_F(RunningErrorTest, CurvesThatAreSteeperInDouble) {
  std::string t = "tensor<100xf32>", in = " : " + t + ", " + t + " -> " + t + "\n";
  std::string body = "%y = nn.exp %x0 : " + t + " -> " + t + "\n%n = nn.neg %y : " + t + " -> " + t + "\n%g = nn.add %y, %n" + in +
                     "%a = nn.abs %g : " + t + " -> " + t + "\n%c = nn.constant dense<1.0e-12> : tensor<f32> : tensor<f32>\n%d = nn.add %a, %c : " + t +
                     ", tensor<f32> -> " + t + "\n%r = nn.div %g, %d" + in;
  Analysed found = analyse(body, t, {normal(DType::F32, {100})});
  EXPECT_GT(found.inDouble, 1e-5);
  EXPECT_LT(found.inDouble, 1e-1);
}

/// What a narrow operand is rounded to is a matter of chance in what follows: a plan may round it elsewhere in its interval. Of one sum of few
/// samples the errors may cancel where those of a plan do not.
TEST_F(RunningErrorTest, OneSumOfNarrowNumbers) {
  for (int trial = 0; trial < 1500; ++trial) {
    Tensor x = normal(DType::F32, {40}), weights = normal(DType::F32, {40});
    Analysed sum = analyse("%n = nn.cast %x0 : tensor<40xf32> -> tensor<40xbf16>\n %w = nn.cast %n : tensor<40xbf16> -> tensor<40xf32>\n"
                           "%p = nn.mul %w, %x1 : tensor<40xf32>, tensor<40xf32> -> tensor<40xf32>\n"
                           "%r = nn.reduce sum %p {axes = array<i64: 0>} : tensor<40xf32> -> tensor<1xf32>",
                           "tensor<1xf32>", {x, weights});
    std::uniform_real_distribution<double> chance(-1, 1);
    double other = 0;
    for (int64_t i = 0; i < 40; ++i)
      other += x.floats[i] * (1 + 0x1p-9 * chance(random)) * weights.floats[i];
    ASSERT_LE(std::abs(other - sum.exact.floats[0]), sum.bound) << trial;
    ASSERT_LT(sum.bound, 1) << trial;
  }
}

/// A sign turns with the number nearest to 0 where errors reach that far, though neither sample's may have: Adam's first step.
TEST_F(RunningErrorTest, SignsOfWhatIsNearZero) {
  int turned = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Tensor a = normal(DType::F32, {4, 32}), b = normal(DType::F32, {32, 10});
    std::string product = "%n = nn.cast %x0 : tensor<4x32xf32> -> tensor<4x32xbf16>\n %m = nn.cast %x1 : tensor<32x10xf32> -> tensor<32x10xbf16>\n"
                          "%p = nn.matmul %n, %m : tensor<4x32xbf16>, tensor<32x10xbf16> -> tensor<4x10xf32>\n";
    Analysed sums = analyse(product + "%z = nn.constant dense<0.0> : tensor<f32> : tensor<f32>\n %r = nn.add %p, %z : tensor<4x10xf32>, tensor<f32> -> tensor<4x10xf32>",
                            "tensor<4x10xf32>", {a, b});
    Analysed signs = analyse(product + "%s = nn.abs %p : tensor<4x10xf32> -> tensor<4x10xf32>\n %r = nn.div %p, %s : tensor<4x10xf32>, tensor<4x10xf32> -> tensor<4x10xf32>",
                             "tensor<4x10xf32>", {a, b});
    double nearest = INFINITY;
    for (double value : sums.exact.floats)
      nearest = std::min(nearest, std::abs(value));
    if (nearest > sums.bound / 8) // half of what some element of a sample is off by
      continue;
    ++turned;
    ASSERT_GE(signs.bound, 2) << trial;
  }
  EXPECT_GT(turned, 20);
}

/// What overflows in f32 on the way and not in double says nothing of the plan; infinities that the program has do.
TEST_F(RunningErrorTest, OverflowOnTheWay) {
  Tensor x = floatTensor({2}, {60, 1});
  std::string body = "%e = nn.exp %x0 : tensor<2xf32> -> tensor<2xf32>\n%p = nn.mul %e, %e : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>\n"
                     "%r = nn.div %p, %p : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>";
  Analysed overflown = analyse(body, "tensor<2xf32>", {x});
  EXPECT_TRUE(std::isinf(overflown.bound));
  // Runs in double do not overflow: they are as far apart, of their size, as the product's are, and no further.
  EXPECT_GE(overflown.finiteBound, 0x1p-23);
  EXPECT_LT(overflown.finiteBound, 1e-4);
  Tensor masked = floatTensor({2}, {-INFINITY, 1});
  EXPECT_LT(analyse("%r = nn.exp %x0 : tensor<2xf32> -> tensor<2xf32>", "tensor<2xf32>", {masked}).bound, 1e-5);
}

} // namespace
