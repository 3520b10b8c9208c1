// What single ops compute, against numbers from numpy and ONNX Runtime, and that no registered op lacks a meaning.
#include "test/unit/compiler/InterpreterFixture.h"

#include <cmath>

using namespace hpc;
using testing::ElementsAre;
using testing::Pointwise;

namespace {

/// Fails, naming the op, when a dialect has one that the interpreter forgot.
TEST_F(InterpreterTest, knowsEveryRegisteredOp) {
  int ops = 0;
  for (StringRef dialect : {"nn", "dist", "pipe"})
    for (RegisteredOperationName name : context.getRegisteredOperationsByDialect(dialect)) {
      ++ops;
      EXPECT_TRUE(isInterpreted(name)) << name.getStringRef().str()
                                       << " has no meaning: add it to compiler/Interpreter";
    }
  EXPECT_GT(ops, 50);
  EXPECT_FALSE(isInterpreted(OperationName("func.return", &context)));
}

TEST_F(InterpreterTest, unaryFloats) {
  std::string x = "dense<[-2.5, -0.5, 0.0, 0.5, 1.5, 3.0]> : tensor<6xf32>";
  auto check = [&](const std::string &op, std::vector<float> expected) {
    Tensor result = apply("nn." + op + " %a", "tensor<6xf32>", x);
    EXPECT_THAT(numbers(result), Pointwise(testing::DoubleEq(), expected)) << op;
  };
  check("neg", {2.5, 0.5, -0.0, -0.5, -1.5, -3});
  check("abs", {2.5, 0.5, 0, 0.5, 1.5, 3});
  check("exp",
        {0.08208499848842621, 0.6065306663513184, 1.0, 1.6487212181091309, 4.481688976287842, 20.08553695678711});
  check("tanh",
        {-0.9866142868995667, -0.46211716532707214, 0.0, 0.46211716532707214, 0.9051482677459717, 0.9950547814369202});
  check("erf",
        {-0.9995930194854736, -0.5204998850822449, 0.0, 0.5204998850822449, 0.9661051630973816, 0.9999778866767883});
  check("sigmoid",
        {0.07585818320512772, 0.3775406777858734, 0.5, 0.622459352016449, 0.8175745010375977, 0.9525741338729858});
  check("sin",
        {-0.5984721183776855, -0.4794255495071411, 0.0, 0.4794255495071411, 0.9974949955940247, 0.14112000167369843});
  check("cos",
        {-0.8011435866355896, 0.8775825500488281, 1.0, 0.8775825500488281, 0.07073719799518585, -0.9899924993515015});
  check("relu", {0, 0, 0, 0.5, 1.5, 3});
  check("floor", {-3, -1, 0, 0, 1, 3});
  check("ceil", {-2, 0, 0, 1, 2, 3});
  check("round", {-2, 0, 0, 0, 2, 3});
  check("sign", {-1, -1, 0, 1, 1, 1});
  check("gelu",
        {-0.015524162910878658, -0.1542687714099884, 0.0, 0.3457312285900116, 1.3997892141342163, 2.995950222015381});
  Tensor approximate = apply("nn.gelu %a {tanh_approximation}", "tensor<6xf32>", x);
  EXPECT_THAT(
      numbers(approximate),
      Pointwise(testing::DoubleEq(), std::vector<float>{-0.015084265731275082, -0.1542859971523285, 0.0,
                                                        0.3457140028476715, 1.3995715379714966, 2.9963626861572266}));
  std::string positive = "dense<[1.0, 2.0, 0.25]> : tensor<3xf32>";
  EXPECT_THAT(numbers(apply("nn.sqrt %a", "tensor<3xf32>", positive)), ElementsAre(1, double(std::sqrt(2.0f)), 0.5));
  EXPECT_THAT(numbers(apply("nn.log %a", "tensor<3xf32>", positive)),
              ElementsAre(0, double(std::log(2.0f)), double(float(std::log(0.25)))));
  EXPECT_THAT(numbers(apply("nn.reciprocal %a", "tensor<3xf32>", positive)), ElementsAre(1, 0.5, 4));
}

// Numbers of numpy, rounded to f32.
TEST_F(InterpreterTest, trigonometricAndHyperbolic) {
  std::string x = "dense<[-0.9, -0.25, 0.0, 0.5, 0.75]> : tensor<5xf32>";
  auto check = [&](const std::string &op, const std::string &operand, std::vector<float> expected) {
    Tensor result = apply("nn." + op + " %a", "tensor<5xf32>", operand);
    EXPECT_THAT(numbers(result), Pointwise(testing::DoubleEq(), expected)) << op;
  };
  check("tan", x,
        {-1.2601581811904907, -0.25534191727638245, 0.0, 0.5463024973869324, 0.9315964579582214});
  check("asin", x,
        {-1.1197694540023804, -0.252680242061615, 0.0, 0.5235987901687622, 0.8480620980262756});
  check("acos", x,
        {2.690565824508667, 1.8234765529632568, 1.5707963705062866, 1.0471975803375244, 0.722734272480011});
  check("atan", x,
        {-0.7328150868415833, -0.244978666305542, 0.0, 0.46364760398864746, 0.6435011029243469});
  check("sinh", x,
        {-1.0265166759490967, -0.25261232256889343, 0.0, 0.5210952758789062, 0.8223167061805725});
  check("cosh", x,
        {1.4330863952636719, 1.0314130783081055, 1.0, 1.1276259422302246, 1.2946833372116089});
  check("asinh", x,
        {-0.8088669180870056, -0.24746645987033844, 0.0, 0.4812118113040924, 0.6931471824645996});
  check("atanh", x,
        {-1.4722193479537964, -0.2554128170013428, 0.0, 0.5493061542510986, 0.972955048084259});
  check("acosh", "dense<[1.0, 1.5, 10.0, 100.0, 1.0e10]> : tensor<5xf32>",
        {0.0, 0.9624236226081848, 2.993222951889038, 5.29829216003418, 23.718997955322266});
}

// Counts that reach the width, and negative ones, leave nothing but the sign.
TEST_F(InterpreterTest, shifts) {
  auto ints = [&](const std::string &op, const std::string &type, const std::string &a, const std::string &b) {
    std::string full = "tensor<5x" + type + ">";
    return apply("nn." + op + " %a, %b", full, "dense<" + a + "> : " + full, "dense<" + b + "> : " + full).ints;
  };
  EXPECT_THAT(ints("shift_left", "i8", "[1, -1, 64, 3, 3]", "[7, 1, 1, 8, -1]"), ElementsAre(-128, -2, -128, 0, 0));
  EXPECT_THAT(ints("shift_right", "i8", "[-128, 127, -1, 64, -5]", "[7, 6, 1, 100, -1]"), ElementsAre(-1, 1, -1, 0, -1));
  EXPECT_THAT(ints("shift_right", "ui8", "[128, 255, 255, 64, 5]", "[7, 4, 8, 200, 0]"), ElementsAre(1, 15, 0, 0, 5));
  EXPECT_THAT(ints("shift_left", "i64", "[1, 1, -1, 1, 5]", "[63, 64, 4, -64, 0]"),
              ElementsAre(INT64_MIN, 0, -16, 0, 5));
  EXPECT_THAT(ints("shift_right", "ui64", "[18446744073709551615, 8, 8, 8, 8]", "[63, 64, 3, 1, 0]"),
              ElementsAre(1, 0, 1, 4, 8));
}

TEST_F(InterpreterTest, bitsAsAnotherType) {
  std::string x = "dense<[1.0, -2.0, 0x7FC00000]> : tensor<3xf32>";
  EXPECT_THAT(apply("nn.bitcast %a", "tensor<3xi32>", x).ints, ElementsAre(0x3F800000, INT32_MIN | 0x40000000, 0x7FC00000));
  EXPECT_THAT(numbers(apply("nn.bitcast %a", "tensor<2xbf16>", "dense<[16256, -16384]> : tensor<2xi16>")),
              ElementsAre(1, -2));
}

// numpy.argsort(kind="stable") inverted. NaN is the largest, whichever way; -0 and +0 are equal.
TEST_F(InterpreterTest, sortPositions) {
  std::string x = "dense<[3.0, 0x7FC00000, -0.0, 3.0, 0.0, 0xFF800000]> : tensor<6xf32>";
  EXPECT_THAT(apply("nn.sort_position %a {axis = 0 : i64}", "tensor<6xi64>", x).ints, ElementsAre(3, 5, 1, 4, 2, 0));
  EXPECT_THAT(apply("nn.sort_position %a {axis = 0 : i64, descending}", "tensor<6xi64>", x).ints,
              ElementsAre(1, 0, 3, 2, 4, 5));
  std::string columns = "dense<[[5, 1], [18446744073709551615, 1], [5, 0]]> : tensor<3x2xui64>";
  EXPECT_THAT(apply("nn.sort_position %a {axis = 0 : i64}", "tensor<3x2xi64>", columns).ints,
              ElementsAre(0, 1, 2, 2, 1, 0));
}

TEST_F(InterpreterTest, specialValues) {
  // NaN, inf, -inf as bits of f32.
  std::string x = "dense<[0x7FC00000, 0x7F800000, 0xFF800000, 1.0]> : tensor<4xf32>";
  EXPECT_THAT(numbers(apply("nn.is_nan %a", "tensor<4xi1>", x)), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(numbers(apply("nn.is_inf %a", "tensor<4xi1>", x)), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(numbers(apply("nn.cast %a", "tensor<4xi32>", x)), ElementsAre(0, INT32_MAX, INT32_MIN, 1));
  std::string one = "dense<1.0> : tensor<f32>";
  auto isNan = testing::NanSensitiveDoubleEq(NAN);
  EXPECT_THAT(numbers(apply("nn.max %a, %b", "tensor<4xf32>", x, one)), ElementsAre(isNan, INFINITY, 1, 1));
  EXPECT_THAT(numbers(apply("nn.max %a, %b", "tensor<4xf32>", one, x)), ElementsAre(isNan, INFINITY, 1, 1));
  EXPECT_THAT(numbers(apply("nn.min %a, %b", "tensor<4xf32>", x, one)), ElementsAre(isNan, 1, -INFINITY, 1));
  EXPECT_THAT(numbers(apply("nn.relu %a", "tensor<4xf32>", x)), ElementsAre(isNan, INFINITY, 0, 1));
  EXPECT_THAT(numbers(apply("nn.compare lt %a, %b", "tensor<4xi1>", x, one)), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(numbers(apply("nn.compare ne %a, %b", "tensor<4xi1>", x, one)), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(numbers(apply("nn.compare ge %a, %b", "tensor<4xi1>", x, one)), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(numbers(apply("nn.reduce max %a {axes = array<i64: 0>}", "tensor<1xf32>", x)), ElementsAre(isNan));
}

TEST_F(InterpreterTest, integersAreDefinedWhereCppIsNot) {
  std::string a = "dense<[7, -7, 9223372036854775807, -9223372036854775808, 5]> : tensor<5xi64>";
  std::string b = "dense<[3, 3, 1, -1, 0]> : tensor<5xi64>";
  auto ints = [&](const std::string &op) { return apply("nn." + op + " %a, %b", "tensor<5xi64>", a, b).ints; };
  EXPECT_THAT(ints("add"), ElementsAre(10, -4, INT64_MIN, INT64_MAX, 5));
  EXPECT_THAT(ints("mul"), ElementsAre(21, -21, INT64_MAX, INT64_MIN, 0));
  EXPECT_THAT(ints("div"), ElementsAre(2, -2, INT64_MAX, INT64_MIN, 0));
  EXPECT_THAT(ints("mod"), ElementsAre(1, 2, 0, 0, 0));
  EXPECT_THAT(ints("fmod"), ElementsAre(1, -1, 0, 0, 0));
  EXPECT_THAT(ints("pow"), ElementsAre(343, -343, INT64_MAX, 0, 1));
  EXPECT_THAT(ints("and"), ElementsAre(3, 1, 1, INT64_MIN, 0));
  EXPECT_THAT(ints("xor"), ElementsAre(4, -6, INT64_MAX - 1, INT64_MAX, 5));
  EXPECT_THAT(apply("nn.neg %a", "tensor<5xi64>", a).ints, ElementsAre(-7, 7, -INT64_MAX, INT64_MIN, -5));
  std::string bytes = "dense<[200, 100]> : tensor<2xui8>";
  EXPECT_THAT(apply("nn.add %a, %a", "tensor<2xui8>", bytes, bytes).ints, ElementsAre(144, 200));
  std::string big = "dense<[18446744073709551615, 4]> : tensor<2xui64>", three = "dense<3> : tensor<ui64>";
  EXPECT_THAT(apply("nn.div %a, %b", "tensor<2xui64>", big, three).ints, ElementsAre(6148914691236517205, 1));
  EXPECT_THAT(apply("nn.max %a, %b", "tensor<2xui64>", big, three).ints, ElementsAre(-1, 4));
  EXPECT_THAT(apply("nn.compare gt %a, %b", "tensor<2xi1>", big, three).ints, ElementsAre(1, 1));
  EXPECT_THAT(apply("nn.abs %a", "tensor<2xui64>", big).ints, ElementsAre(-1, 4));
  EXPECT_THAT(apply("nn.not %a", "tensor<2xi1>", "dense<[true, false]> : tensor<2xi1>").ints, ElementsAre(0, 1));
}

TEST_F(InterpreterTest, remaindersOfFloats) {
  std::string a = "dense<[-7.0, -7.0, 7.0, 7.0, 5.0, 0.5]> : tensor<6xf64>";
  std::string b = "dense<[3.0, -3.0, 3.0, -3.0, 0x7FF0000000000000, 0.25]> : tensor<6xf64>";
  EXPECT_THAT(numbers(apply("nn.mod %a, %b", "tensor<6xf64>", a, b)), ElementsAre(2, -1, 1, -2, 5, 0));
  EXPECT_THAT(numbers(apply("nn.fmod %a, %b", "tensor<6xf64>", a, b)), ElementsAre(-1, -1, 1, 1, 5, 0));
}

TEST_F(InterpreterTest, roundsEveryResultUnlessAskedNotTo) {
  std::string body = R"(
    %a = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
    %b = nn.constant dense<3.0> : tensor<f32> : tensor<f32>
    %c = nn.div %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>
    %r = nn.mul %c, %b : tensor<f32>, tensor<f32> -> tensor<f32>)";
  EXPECT_EQ(evaluate(body, "tensor<f32>").floats[0], 1.0);
  std::string third = body.substr(0, body.find("%r")) + "%r = nn.add %c, %c : tensor<f32>, tensor<f32> -> tensor<f32>";
  EXPECT_EQ(evaluate(third, "tensor<f32>").floats[0], double(2 * (1.0f / 3.0f)));
  RunOptions exact;
  exact.doublePrecision = true;
  EXPECT_EQ(evaluate(third, "tensor<f32>", exact).floats[0], 2.0 / 3.0);
}

TEST_F(InterpreterTest, views) {
  std::string x = "dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>";
  EXPECT_THAT(apply("nn.reshape %a", "tensor<3x2xi64>", x).ints, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(apply("nn.transpose %a {permutation = array<i64: 1, 0>}", "tensor<3x2xi64>", x).ints,
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(apply("nn.slice %a {starts = array<i64: 1, 2>, steps = array<i64: -1, -2>}", "tensor<2x2xi64>", x).ints,
              ElementsAre(6, 4, 3, 1));
  EXPECT_THAT(apply("nn.broadcast %a", "tensor<2x2x2xi64>", "dense<[[1], [2]]> : tensor<2x1xi64>").ints,
              ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
  EXPECT_THAT(
      apply("nn.concat %a, %b {axis = 1 : i64}", "tensor<2x4xi64>", x, "dense<[[7], [8]]> : tensor<2x1xi64>").ints,
      ElementsAre(1, 2, 3, 7, 4, 5, 6, 8));
  EXPECT_THAT(
      apply("nn.pad %a {low = array<i64: 1, 0>, high = array<i64: 0, 1>, value = 9 : i64}", "tensor<3x4xi64>", x).ints,
      ElementsAre(9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9));
}

// Against numpy's sliding_window_view: offsets come before positions, a step and a dilation belong to their own dim.
TEST_F(InterpreterTest, windows) {
  std::string x = "dense<[[1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14]]> : tensor<2x7xi64>";
  EXPECT_THAT(apply("nn.window %a {strides = array<i64: 2>, dilations = array<i64: 1>}", "tensor<2x3x3xi64>", x).ints,
              ElementsAre(1, 3, 5, 2, 4, 6, 3, 5, 7, 8, 10, 12, 9, 11, 13, 10, 12, 14));
  EXPECT_THAT(apply("nn.window %a {strides = array<i64: 1>, dilations = array<i64: 3>}", "tensor<2x2x4xi64>", x).ints,
              ElementsAre(1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 11, 12, 13, 14));
  EXPECT_THAT(
      apply("nn.window %a {strides = array<i64: 1, 3>, dilations = array<i64: 1, 2>}", "tensor<1x2x2x2xi64>", x).ints,
      ElementsAre(1, 4, 8, 11, 3, 6, 10, 13));
  EXPECT_THAT(apply("nn.window %a {strides = array<i64: 9>, dilations = array<i64: 9>}", "tensor<2x1x0xi64>", x).ints,
              ElementsAre());
}

TEST_F(InterpreterTest, selectBroadcastsAllThree) {
  Tensor result =
      evaluate(constant("%c", "dense<[[true], [false]]> : tensor<2x1xi1>") +
                   constant("%x", "dense<[1.0, 2.0]> : tensor<2xf32>") + constant("%y", "dense<-1.0> : tensor<f32>") +
                   "%r = nn.select %c, %x, %y : tensor<2x1xi1>, tensor<2xf32>, tensor<f32> -> tensor<2x2xf32>",
               "tensor<2x2xf32>");
  EXPECT_THAT(numbers(result), ElementsAre(1, 2, -1, -1));
}

TEST_F(InterpreterTest, indices) {
  std::string data = "dense<[[[0., 1.], [2., 3.], [4., 5.]], [[6., 7.], [8., 9.], [10., 11.]]]> : tensor<2x3x2xf32>";
  EXPECT_THAT(numbers(apply("nn.gather %a, %b {axis = 1 : i64}", "tensor<2x1x2x2xf32>", data,
                            "dense<[[2, -3]]> : tensor<1x2xi64>")),
              ElementsAre(4, 5, 0, 1, 10, 11, 6, 7));
  EXPECT_THAT(numbers(apply("nn.gather_nd %a, %b {batch_dims = 1 : i64}", "tensor<2x2x2xf32>", data,
                            "dense<[[[2], [0]], [[-1], [1]]]> : tensor<2x2x1xi64>")),
              ElementsAre(4, 5, 0, 1, 10, 11, 8, 9));
  EXPECT_THAT(numbers(apply("nn.gather_nd %a, %b {batch_dims = 0 : i64}", "tensor<2x2xf32>", data,
                            "dense<[[0, 2], [1, -3]]> : tensor<2x2xi64>")),
              ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(numbers(apply("nn.cumsum %a {axis = 1 : i64, exclusive, reverse}", "tensor<2x3x2xf32>", data)),
              ElementsAre(6, 8, 4, 5, 0, 0, 18, 20, 10, 11, 0, 0));
  EXPECT_THAT(numbers(apply("nn.cumsum %a {axis = 0 : i64}", "tensor<3xi64>", "dense<[1, 2, 3]> : tensor<3xi64>")),
              ElementsAre(1, 3, 6));
  auto isNan = testing::NanSensitiveDoubleEq(NAN);
  EXPECT_THAT(numbers(apply("nn.gather %a, %b {axis = 0 : i64}", "tensor<2xf32>", "dense<[1., 2.]> : tensor<2xf32>",
                            "dense<[1, 9223372036854775807]> : tensor<2xi64>")),
              ElementsAre(2, isNan));
  EXPECT_THAT(numbers(evaluate("%r = nn.iota {dim = 1 : i64, start = 5 : i64, step = -2 : i64} : tensor<2x3xi64>",
                               "tensor<2x3xi64>")),
              ElementsAre(5, 3, 1, 5, 3, 1));
}

/// Rows of a dim inside, at both ends of it.
TEST_F(InterpreterTest, updateSlice) {
  std::string state = "dense<[[[0., 1.], [2., 3.], [4., 5.]], [[6., 7.], [8., 9.], [10., 11.]]]> : tensor<2x3x2xf32>";
  std::string rows = "dense<[[[-1., -2.], [-3., -4.]], [[-5., -6.], [-7., -8.]]]> : tensor<2x2x2xf32>";
  for (int64_t position : {0, 1}) {
    std::vector<double> expected = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < 4; ++i)
        expected[size_t(b * 6 + position * 2 + i)] = -double(b * 4 + i + 1);
    std::string text = constant("%s", state) + constant("%n", rows) + constant("%p", "dense<" + std::to_string(position) + "> : tensor<i64>") +
                       "%r = nn.update_slice %s, %n, %p {dim = 1 : i64} : tensor<2x3x2xf32>, tensor<2x2x2xf32>, tensor<i64> -> tensor<2x3x2xf32>";
    EXPECT_THAT(numbers(evaluate(text, "tensor<2x3x2xf32>")), testing::ElementsAreArray(expected));
  }
}

/// A table that holds rows 2 and 3 of 5: rows held elsewhere are 0, ids that name no row are NaN.
TEST_F(InterpreterTest, embeddingWithAnOffset) {
  Tensor result = evaluate(R"(
    %t = nn.constant dense<[[20., 21.], [30., 31.]]> : tensor<2x2xf32> : tensor<2x2xf32>
    %i = nn.constant dense<[2, 3, 4, -2, -5, 5, -6, 9149024265190194927]> : tensor<8xi64> : tensor<8xi64>
    %o = nn.constant dense<2> : tensor<i64> : tensor<i64>
    %r = nn.embedding %t, %i offset %o : tensor<i64> {vocabulary = 5 : i64} : tensor<2x2xf32>, tensor<8xi64> -> tensor<8x2xf32>)",
                           "tensor<8x2xf32>");
  auto isNan = testing::NanSensitiveDoubleEq(NAN);
  EXPECT_THAT(numbers(result),
              ElementsAre(20, 21, 30, 31, 0, 0, 30, 31, 0, 0, isNan, isNan, isNan, isNan, isNan, isNan));
}

TEST_F(InterpreterTest, reductions) {
  std::string x = "dense<[[1, -2, 3], [4, 5, -6]]> : tensor<2x3xi32>";
  auto reduce = [&](const std::string &kind, const std::string &axes, const std::string &type) {
    return apply("nn.reduce " + kind + " %a {axes = array<i64: " + axes + ">}", type, x).ints;
  };
  EXPECT_THAT(reduce("sum", "1", "tensor<2x1xi32>"), ElementsAre(2, 3));
  EXPECT_THAT(reduce("max", "0", "tensor<1x3xi32>"), ElementsAre(4, 5, 3));
  EXPECT_THAT(reduce("min", "0, 1", "tensor<1x1xi32>"), ElementsAre(-6));
  EXPECT_THAT(reduce("prod", "1", "tensor<2x1xi32>"), ElementsAre(-6, -120));
  // Sums round once: 2^24 + 1 + 1 in f32 steps would stay at 2^24.
  EXPECT_THAT(numbers(apply("nn.reduce sum %a {axes = array<i64: 0>}", "tensor<1xf32>",
                            "dense<[16777216.0, 1.0, 1.0]> : tensor<3xf32>")),
              ElementsAre(16777218));
}

TEST_F(InterpreterTest, matrixProductsInAllStorageOrders) {
  std::string a = "dense<[[1., 2., 3.], [4., 5., 6.]]> : tensor<2x3xf32>";
  std::string aT = "dense<[[1., 4.], [2., 5.], [3., 6.]]> : tensor<3x2xf32>";
  std::string b = "dense<[[[1., 0.], [2., 1.], [0., 3.]], [[1., 1.], [1., 1.], [1., 1.]]]> : tensor<2x3x2xf32>";
  std::string bT = "dense<[[[1., 2., 0.], [0., 1., 3.]], [[1., 1., 1.], [1., 1., 1.]]]> : tensor<2x2x3xf32>";
  std::vector<double> expected = {5, 11, 14, 23, 6, 6, 15, 15};
  std::string type = "tensor<2x2x2xf32>";
  EXPECT_EQ(numbers(apply("nn.matmul %a, %b", type, a, b)), expected);
  EXPECT_EQ(numbers(apply("nn.matmul %a, %b {transpose_lhs}", type, aT, b)), expected);
  EXPECT_EQ(numbers(apply("nn.matmul %a, %b {transpose_rhs}", type, a, bT)), expected);
  EXPECT_EQ(numbers(apply("nn.matmul %a, %b {transpose_lhs, transpose_rhs}", type, aT, bT)), expected);
}

// The result's type is free of the operands': rounded once, to that type and not to theirs (256 + 1 is no bf16).
TEST_F(InterpreterTest, matrixProductsRoundToTheResultsType) {
  std::string a = "dense<[[16., 1.]]> : tensor<1x2xbf16>", b = "dense<[[16.], [1.]]> : tensor<2x1xbf16>";
  EXPECT_THAT(numbers(apply("nn.matmul %a, %b", "tensor<1x1xf32>", a, b)), ElementsAre(257));
  EXPECT_THAT(numbers(apply("nn.matmul %a, %b", "tensor<1x1xbf16>", a, b)), ElementsAre(256));
}

/// Wider than the panels in which the product runs.
TEST_F(InterpreterTest, wideMatrixProduct) {
  func::FuncOp main = parse(R"(func.func @main(%a: tensor<3x70xf32>, %b: tensor<131x70xf32>) -> tensor<3x131xf32> {
    %r = nn.matmul %a, %b {transpose_rhs} : tensor<3x70xf32>, tensor<131x70xf32> -> tensor<3x131xf32>
    return %r : tensor<3x131xf32> })");
  Tensor a = counting({3, 70}), b = counting({131, 70});
  auto results = runFunction(main, {a, b});
  ASSERT_TRUE(results.ok());
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 131; ++j) {
      double sum = 0;
      for (int k = 0; k < 70; ++k)
        sum += a.floats[i * 70 + k] * b.floats[j * 70 + k];
      ASSERT_EQ(results->front().floats[i * 131 + j], double(float(sum)));
    }
}

TEST_F(InterpreterTest, compositesByTheirDecomposition) {
  std::string x = "dense<[[1., 2., 4., -3.], [0.5, 0.25, -1., 8.]]> : tensor<2x4xf32>";
  Tensor norm = evaluate(constant("%x", x) + R"(
    %w = nn.constant dense<[1., 2., -1., 0.5]> : tensor<4xf32> : tensor<4xf32>
    %b = nn.constant dense<[0., 1., 0., -1.]> : tensor<4xf32> : tensor<4xf32>
    %r = nn.layer_norm %x weight %w : tensor<4xf32> bias %b : tensor<4xf32> {epsilon = 1.0e-5} : tensor<2x4xf32> -> tensor<2x4xf32>)",
                         "tensor<2x4xf32>");
  EXPECT_THAT(numbers(norm),
              Pointwise(testing::DoubleNear(4e-7),
                        {0.0, 1.784463882446289, -1.1766959428787231, -1.784463882446289, -0.40538451075553894,
                         0.048227667808532715, 0.8283945322036743, -0.14516735076904297}));
  EXPECT_THAT(numbers(apply("nn.softmax %a", "tensor<2x4xf32>", x)),
              Pointwise(testing::DoubleNear(1e-7),
                        {0.041977766901254654, 0.1141074076294899, 0.843146026134491, 0.0007688496843911707,
                         0.0005524726584553719, 0.0004302661691326648, 0.0001232733193319291, 0.9988940358161926}));
}

/// The diagonal is where the sums of all starts say, whatever type a start has; numbers from PyTorch's float64.
TEST_F(InterpreterTest, attentionByPositions) {
  Tensor q(DType::F32, {1, 4, 2, 2}), k(DType::F32, {1, 2, 3, 2}), v(DType::F32, {1, 2, 3, 2});
  for (int i = 0; i < 16; ++i)
    q.floats[i] = (i % 7 - 3) / 4.0;
  for (int i = 0; i < 12; ++i) {
    k.floats[i] = (i % 5 - 2) / 2.0;
    v.floats[i] = i % 4;
  }
  Tensor five(DType::I64, {}), one(DType::F64, {}), three(DType::I32, {});
  five.ints[0] = 5;
  one.floats[0] = 1;
  three.ints[0] = 3;
  func::FuncOp main = parse(R"(
    func.func @main(%q: tensor<1x4x2x2xf32>, %k: tensor<1x2x3x2xf32>, %v: tensor<1x2x3x2xf32>, %a: tensor<i64>, %b: tensor<f64>, %c: tensor<i32>) -> tensor<1x4x2x2xf32> {
      %r = nn.attention %q, %k, %v query_start %a, %b : tensor<i64>, tensor<f64> key_start %c : tensor<i32> {scale = 0.5, causal_offset = -2 : i64}
        : tensor<1x4x2x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32> -> tensor<1x4x2x2xf32>
      return %r : tensor<1x4x2x2xf32>
    })");
  RunOptions exact;
  exact.doublePrecision = true;
  auto results = runFunction(main, {q, k, v, five, one, three}, exact);
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(numbers(results->front()),
              Pointwise(testing::DoubleNear(1e-14),
                        {0.6972902706678915, 1.6972902706678914, 0.6632079585392667, 1.663207958539267,
                         1.1853331999081393, 2.1853331999081393, 0.43921394724301505, 1.439213947243015,
                         1.1853331999081393, 2.1853331999081393, 1.2624079633815404, 2.2624079633815404,
                         0.6972902706678915, 1.6972902706678914, 1.6311212261655585, 2.6311212261655585}));
}

/// Each query is where its position says, in each sequence of the batch elsewhere, plus the start; numbers from PyTorch's float64.
TEST_F(InterpreterTest, attentionByGivenPositions) {
  Tensor q(DType::F32, {2, 2, 3, 2}), k(DType::F32, {2, 1, 4, 2}), v(DType::F32, {2, 1, 4, 2}), g(DType::F32, {2, 2, 3, 2});
  for (int i = 0; i < 24; ++i) {
    q.floats[i] = (i % 7 - 3) / 4.0;
    g.floats[i] = (i % 4 - 1) / 2.0;
  }
  for (int i = 0; i < 16; ++i) {
    k.floats[i] = (i % 5 - 2) / 2.0;
    v.floats[i] = i % 6;
  }
  Tensor places(DType::I32, {2, 3}), one(DType::I64, {});
  places.ints = {2, 0, 1, -1, 5, 0};
  one.ints[0] = 1;
  func::FuncOp main = parse(R"(
    func.func @main(%q: tensor<2x2x3x2xf32>, %k: tensor<2x1x4x2xf32>, %v: tensor<2x1x4x2xf32>, %g: tensor<2x2x3x2xf32>, %p: tensor<2x3xi32>, %s: tensor<i64>)
        -> (tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>) {
      %r = nn.attention %q, %k, %v query_start %s : tensor<i64> query_positions %p : tensor<2x3xi32> {scale = 0.5, causal_offset = 0 : i64}
        : tensor<2x2x3x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32> -> tensor<2x2x3x2xf32>
      %d:3 = nn.attention_grad %q, %k, %v, %g query_start %s : tensor<i64> query_positions %p : tensor<2x3xi32> {scale = 0.5, causal_offset = 0 : i64}
        : tensor<2x2x3x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>, tensor<2x2x3x2xf32> -> tensor<2x2x3x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>
      return %r, %d#0, %d#1, %d#2 : tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>
    })");
  RunOptions exact;
  exact.doublePrecision = true;
  auto results = runFunction(main, {q, k, v, g, places, one}, exact);
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(numbers((*results)[0]), Pointwise(testing::DoubleNear(1e-14), std::vector<double>{
      1.1461134369971913, 2.146113436997191, 0.9375812532524876, 1.9375812532524879, 2.0742158655887235,
      3.074215865588723, 2.199362758894323, 3.199362758894323, 0.8146668000918604, 1.8146668000918602,
      1.9605625880078328, 2.9605625880078326, 2.0, 3.0, 2.3775096015946557, 3.3775096015946553, 3.0934763039692275,
      4.0934763039692275, 2.0, 3.0, 2.0, 3.0, 3.274061588960766, 4.274061588960766}));
  EXPECT_THAT(numbers((*results)[1]), Pointwise(testing::DoubleNear(1e-14), std::vector<double>{
      -0.27594514890480754, 0.06477128208719768, 0.37353896252042634, 0.3735389625204262, -0.29656140335909087,
      0.08354489707072478, 1.0664903043326885, -0.4859138810835827, -0.12070645062647617, -0.12070645062647618,
      0.9462227314869154, -0.2229203448887928, 0.0, 0.0, -0.5783027312484128, -0.4244219046848459,
      0.18586165886179737, 0.18586165886179734, 0.0, 0.0, 0.09003186205528385, 0.09003186205528385,
      -0.5202507630691688, -0.5202507630691686}));
  EXPECT_THAT(numbers((*results)[2]), Pointwise(testing::DoubleNear(1e-14), std::vector<double>{
      -0.23029317494855983, 0.09407903813314224, -0.02076039204410219, 0.07724668386113982, 0.5299255548795013,
      -0.35668492187487266, -0.27887198788683915, 0.18535919988059052, 0.1762144631921632, 0.10922478405335467,
      -0.5806394322317558, -0.26630160251064494, 0.35826072107052254, 0.1263006531445769, 0.046164247969070024,
      0.03077616531271335}));
  EXPECT_THAT(numbers((*results)[3]), Pointwise(testing::DoubleNear(1e-14), std::vector<double>{
      -0.0957491970822448, 1.0367344413277508, 0.00689893411418252, 1.017650369046041, 0.12936434512751732,
      0.7655514655156404, -0.040514082159454845, 0.1800637241105677, -0.05565235244848532, 1.5220208672289834,
      0.1581907825068156, 1.0431834411088128, 0.018667060860267093, 0.2173978458311019, -0.12120549091859753,
      0.2173978458311019}));
}

/// The position that is given for a row decides what is dropped of it: rows in another order are those of the whole, in that order.
TEST_F(InterpreterTest, dropoutByGivenPositions) {
  Tensor x(DType::F32, {2, 5, 3}), swapped = x, step(DType::F64, {}), seed(DType::I64, {}), places(DType::I64, {5});
  places.ints = {4, 0, 3, 1, 2};
  step.floats[0] = 3;
  seed.ints[0] = 17;
  auto at = [](int batch, int64_t row, int channel) { return size_t((batch * 5 + row) * 3 + channel); };
  for (int batch = 0; batch < 2; ++batch)
    for (int row = 0; row < 5; ++row)
      for (int channel = 0; channel < 3; ++channel) {
        x.floats[at(batch, row, channel)] = double(at(batch, row, channel)) + 1;
        swapped.floats[at(batch, row, channel)] = double(at(batch, places.ints[size_t(row)], channel)) + 1;
      }
  func::FuncOp main = parse(R"(
    func.func @main(%x: tensor<2x5x3xf32>, %y: tensor<2x5x3xf32>, %step: tensor<f64>, %seed: tensor<i64>, %p: tensor<5xi64>) -> (tensor<2x5x3xf32>, tensor<2x5x3xf32>) {
      %0 = nn.dropout %x, %step, %seed {site = 3 : i64, rate = 0.5 : f64} : tensor<2x5x3xf32>, tensor<f64>, tensor<i64> -> tensor<2x5x3xf32>
      %1 = nn.dropout %y, %step, %seed offsets %p : tensor<5xi64> {site = 3 : i64, rate = 0.5 : f64, offset_dims = array<i64: 1>} : tensor<2x5x3xf32>, tensor<f64>, tensor<i64> -> tensor<2x5x3xf32>
      return %0, %1 : tensor<2x5x3xf32>, tensor<2x5x3xf32>
    })");
  auto results = runFunction(main, {x, swapped, step, seed, places});
  ASSERT_TRUE(results.ok()) << results.status().text();
  const Tensor &whole = (*results)[0], &placed = (*results)[1];
  EXPECT_THAT(numbers(whole), testing::Contains(0));
  for (int batch = 0; batch < 2; ++batch)
    for (int row = 0; row < 5; ++row)
      for (int channel = 0; channel < 3; ++channel)
        EXPECT_EQ(placed.floats[at(batch, row, channel)], whole.floats[at(batch, places.ints[size_t(row)], channel)]);
}

/// Four heads share two groups of keys; numbers from numpy.
TEST_F(InterpreterTest, groupedCausalAttention) {
  func::FuncOp main = parse(R"(
    func.func @main(%q: tensor<1x4x3x2xf32>, %k: tensor<1x2x3x2xf32>, %v: tensor<1x2x3x2xf32>) -> tensor<1x4x3x2xf32> {
      %r = nn.attention %q, %k, %v {scale = 0.5, causal_offset = 0 : i64}
        : tensor<1x4x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32> -> tensor<1x4x3x2xf32>
      return %r : tensor<1x4x3x2xf32>
    })");
  Tensor q(DType::F32, {1, 4, 3, 2}), k(DType::F32, {1, 2, 3, 2}), v(DType::F32, {1, 2, 3, 2});
  for (int i = 0; i < 24; ++i)
    q.floats[i] = (i % 7 - 3) / 4.0;
  for (int i = 0; i < 12; ++i) {
    k.floats[i] = (i % 5 - 2) / 2.0;
    v.floats[i] = i % 4;
  }
  RunOptions exact;
  exact.doublePrecision = true;
  auto results = runFunction(main, {q, k, v}, exact);
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(numbers(results->front()), Pointwise(testing::DoubleNear(1e-14), {0.0,
                                                                                1.0,
                                                                                0.9375812532524875,
                                                                                1.9375812532524876,
                                                                                0.8110003892110944,
                                                                                1.8110003892110942,
                                                                                0.0,
                                                                                1.0,
                                                                                0.8146668000918604,
                                                                                1.8146668000918602,
                                                                                0.7375920366184594,
                                                                                1.7375920366184596,
                                                                                2.0,
                                                                                3.0,
                                                                                1.3027097293321084,
                                                                                2.302709729332108,
                                                                                1.4010861965101418,
                                                                                2.4010861965101418,
                                                                                2.0,
                                                                                3.0,
                                                                                1.0,
                                                                                2.0,
                                                                                1.5249458162698617,
                                                                                2.5249458162698617}));
}

TEST_F(InterpreterTest, regionsObserversAndParameters) {
  func::FuncOp main = parse(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = pipe.stage 0 forward (%x) : (tensor<2xf32>) -> tensor<2xf32> {
      ^bb0(%a: tensor<2xf32>):
        %w = nn.parameter "w" {value = dense<[10.0, 20.0]> : tensor<2xf32>} : tensor<2xf32>
        %s = nn.fused "k" (%a, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
        ^bb1(%b: tensor<2xf32>, %c: tensor<2xf32>):
          %d = nn.add %b, %c : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
          nn.yield %d : tensor<2xf32>
        }
        pipe.yield %s : tensor<2xf32>
      }
      %1 = pipe.transfer %0 {from = 0 : i64, to = 1 : i64} : tensor<2xf32> -> tensor<2xf32>
      return %1 : tensor<2xf32>
    })");
  int seen = 0;
  RunOptions options;
  options.parameters = [](nn::ParameterOp op, ArrayRef<int64_t>) { return tensorFromAttr(*op.getValue()); };
  options.observe = [&](Value, const LocalTensors &locals) {
    EXPECT_EQ(locals.size(), 1u);
    ++seen;
    return Status::success();
  };
  auto results = runFunction(main, {floatTensor({2}, {1, 2})}, options);
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(11, 22));
  EXPECT_EQ(seen, 9); // x, a, w, b, c, d, s, 0, 1

  options.observe = [](Value value, const LocalTensors &) {
    return value.getDefiningOp<nn::AddOp>() ? Status::error(ErrorKind::Internal, "stop") : Status::success();
  };
  EXPECT_EQ(runFunction(main, {floatTensor({2}, {1, 2})}, options).status().message(), "stop");
  EXPECT_THAT(runFunction(main, {floatTensor({3}, {1, 2, 3})}).status().message(),
              "input 0 is f32 3, the program takes tensor<2xf32>");
  EXPECT_THAT(runFunction(main, {}).status().message(), "the program takes 1 input, 0 are given");
}

/// Shardings on global shapes mean nothing to a serial run.
TEST_F(InterpreterTest, serialRunIgnoresShardings) {
  func::FuncOp main = parse(R"(module attributes {dist.mesh = #dist.mesh<"tp=2:tensor">} {
    func.func @main(%x: tensor<3xf32, #dist.sharding<"[3@tp]">>) -> tensor<3xf32> {
      %0 = nn.neg %x : tensor<3xf32, #dist.sharding<"[3@tp]">> -> tensor<3xf32, #dist.sharding<"[3@tp]">>
      %1 = dist.reshard %0 : tensor<3xf32, #dist.sharding<"[3@tp]">> -> tensor<3xf32, #dist.sharding<"[3]">>
      %2 = nn.neg %1 : tensor<3xf32, #dist.sharding<"[3]">> -> tensor<3xf32>
      return %2 : tensor<3xf32>
    } })");
  auto results = runFunction(main, {counting({3})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(1, 2, 3));
}

TEST_F(InterpreterTest, errorsNameTheOpAndItsNode) {
  func::FuncOp main = parse(R"(func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
    %0 = nn.exp %x : tensor<2xi64> -> tensor<2xi64> loc("/h.0/Exp"("h.0"))
    return %0 : tensor<2xi64> })");
  EXPECT_EQ(runFunction(main, {integerTensor({2}, {1, 2})}).status().text(),
            "error[unsupported]: nn.exp (/h.0/Exp) has no meaning on i64");
}

TEST_F(InterpreterTest, aMissingFileNamesTheParameter) {
  func::FuncOp main = parse(R"(func.func @main() -> tensor<2xf32> {
    %0 = nn.parameter "w" stored <file = "nowhere.bin", bytes = 8, hashes = [1]> : tensor<2xf32>
    return %0 : tensor<2xf32> })");
  Status status = runFunction(main, {}).status();
  EXPECT_EQ(status.kind(), ErrorKind::Io);
  EXPECT_THAT(status.message(), testing::HasSubstr("parameter 'w'"));
}

} // namespace
