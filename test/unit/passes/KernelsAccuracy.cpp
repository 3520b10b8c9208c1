// Errors of the generated exp, tanh and erf in ulp of f32 against libm in double precision, over every exponent with
// many mantissas. The bounds are those that passes/Kernels/Elements/Approximations.cpp states.
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

double ulp(float value) {
  float magnitude = std::max(std::fabs(value), std::numeric_limits<float>::min());
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

/// All floats whose low 13 bits are a varying pattern: 2^19 of them, of both signs.
Tensor sampledFloats() {
  Tensor tensor(DType::F32, {512, 1024});
  for (uint32_t i = 0; i < (1u << 19); ++i) {
    uint32_t bits = (i << 13) | (i * 2654435761u >> 19);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    tensor.floats[i] = double(value);
  }
  return tensor;
}

struct Accuracy : KernelTest {
  /// `ofOperand`: in ulp of the operand, for what is a part of it.
  void measure(const std::string &op, double (*exact)(double), double bound, const std::string &attributes = "",
               bool ofOperand = false) {
    std::string type = "tensor<512x1024xf32>";
    parse("func.func @main(%x: " + type + ") -> " + type + " {\n  %r = nn." + op + " %x " + attributes + " : " + type + " -> " +
          type + "\n  return %r : " + type + "\n}");
    runPasses();
    LoadedCode code(*module);
    Tensor x = sampledFloats(), actual;
    module->walk([&](nn::FusedOp region) { actual = call(code, region, {&x}, {}, 0)[0]; });
    double worst = 0, at = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      double expected = exact(x.floats[i]);
      float rounded = float(expected);
      if (std::isnan(expected) || std::isinf(rounded)) {
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(actual.floats[i])
                                         : actual.floats[i] == double(rounded) || expected < 3.5e38)
            << op << "(" << x.floats[i] << ") = " << actual.floats[i];
        continue;
      }
      double error = std::fabs(actual.floats[i] - expected) / ulp(ofOperand ? float(x.floats[i]) : rounded);
      if (error > worst)
        worst = error, at = x.floats[i];
    }
    RecordProperty(op + "_ulp", std::to_string(worst));
    std::printf("%s: %.3f ulp at %.9g\n", op.c_str(), worst, at);
    EXPECT_LE(worst, bound) << op << " at " << at;
  }
};

TEST_F(Accuracy, Exp) {
  measure("exp", [](double x) { return std::exp(x); }, 0.9);
}
TEST_F(Accuracy, Tanh) {
  measure("tanh", [](double x) { return std::tanh(x); }, 1.5);
}
TEST_F(Accuracy, Erf) {
  measure("erf", [](double x) { return std::erf(x); }, 1.0);
}
// libm's: a bound that is exceeded says that another libm came in.
TEST_F(Accuracy, Trigonometric) {
  measure("tan", [](double x) { return std::tan(x); }, 1.5);
  measure("asin", [](double x) { return std::asin(x); }, 1.0);
  measure("acos", [](double x) { return std::acos(x); }, 1.0);
  measure("atan", [](double x) { return std::atan(x); }, 1.0);
}
TEST_F(Accuracy, Hyperbolic) {
  measure("sinh", [](double x) { return std::sinh(x); }, 2.0);
  measure("cosh", [](double x) { return std::cosh(x); }, 2.0);
  measure("asinh", [](double x) { return std::asinh(x); }, 2.0);
  measure("acosh", [](double x) { return std::acosh(x); }, 2.0);
  measure("atanh", [](double x) { return std::atanh(x); }, 2.0);
}
TEST_F(Accuracy, Sigmoid) {
  measure("sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 3.0);
}
// What is left of a negative operand is as small as the factor's last bits: relative to the operand both are one rounding
// of the factor and one of the product.
TEST_F(Accuracy, Gelu) {
  measure("gelu", [](double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }, 1.5, "", true);
  measure("gelu", [](double x) { return x / (1 + std::exp(-2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x))); }, 1.5,
          "{tanh_approximation}", true);
}
// The factor of GELU ends at 0 and 1 exactly, on both sides of where its polynomial does, and is nowhere beyond.
TEST_F(Accuracy, GeluFarFromZero) {
  std::string type = "tensor<512x1024xf32>";
  parse("func.func @main(%x: " + type + ") -> " + type + " {\n  %r = nn.gelu %x : " + type + " -> " + type +
        "\n  return %r : " + type + "\n}");
  runPasses();
  LoadedCode code(*module);
  Tensor x(DType::F32, {512, 1024}), actual;
  for (int64_t i = 0; i < x.size(); ++i)
    x.floats[i] = float(-8 + 16 * (double(i) / double(x.size())));
  module->walk([&](nn::FusedOp region) { actual = call(code, region, {&x}, {}, 0)[0]; });
  for (int64_t i = 0; i < x.size(); ++i) {
    double a = x.floats[i], y = actual.floats[i];
    ASSERT_TRUE(std::fabs(a) < 5.7 || y == std::max(a, 0.0)) << a << " " << y;
    ASSERT_TRUE(a >= 0 ? y >= a / 2 && y <= a : y <= 0 && y >= a / 2) << a << " " << y;
  }
}

} // namespace
} // namespace hpc::test
