// Infinities, NaN and the ends of number ranges: ONNX nodes through import, interpreter and generated code, against the
// standard's reference evaluator (onnx 1.23, numpy). docs/numerics.md lists where it defines nothing, or we differ.
#include "test/unit/passes/KernelsHarness.h"

#include "compiler/Import/OnnxImporter.h"
#include "compiler/Location.h"
#include "runtime/base/File.h"
#include "test/unit/compiler/OnnxWriter.h"

#include <cstdlib>
#include "llvm/Support/FileSystem.h"

namespace hpc::test {
namespace {

using namespace onnxwriter;
constexpr float inf = INFINITY, nan = NAN;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

struct Input {
  std::vector<int64_t> shape;
  std::variant<Floats, Ints, std::vector<bool>> elements;

  int type() const { return std::array<int, 3>{f32, i64, boolean}[elements.index()]; }
  Tensor tensor() const {
    Tensor tensor(std::array<DType, 3>{DType::F32, DType::I64, DType::Bool}[elements.index()], shape);
    if (auto *floats = std::get_if<Floats>(&elements))
      tensor.floats.assign(floats->begin(), floats->end());
    else if (auto *ints = std::get_if<Ints>(&elements))
      tensor.ints = *ints;
    else
      for (size_t i = 0; i < tensor.ints.size(); ++i)
        tensor.ints[i] = std::get<std::vector<bool>>(elements)[i];
    return tensor;
  }
};

struct Numerics : KernelTest {
  /// Expects `expected` of one node from the interpreter: NaN and infinities exactly, the rest to 1e-6; and the same of
  /// every kernel. `fixed` are inputs behind the others that the compiler has to know.
  void expect(const std::string &op, const std::vector<Input> &inputs, const std::vector<double> &expected,
              const std::vector<std::string> &attributes = {}, const std::vector<std::string> &fixed = {},
              int64_t opset = 18, int resultType = f32) {
    SCOPED_TRACE(op);
    Graph graph;
    graph.opset = opset;
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    for (const Input &input : inputs) {
      names.push_back("x" + std::to_string(names.size()));
      std::vector<std::string> dims;
      for (int64_t size : input.shape)
        dims.push_back(std::to_string(size));
      graph.inputs.push_back(value(names.back(), input.type(), dims));
      tensors.push_back(input.tensor());
    }
    for (size_t i = 0; i < fixed.size(); ++i)
      names.push_back("fixed" + std::to_string(i));
    graph.initializers = fixed;
    graph.nodes = {node(op, names, {"y"}, attributes)};
    graph.outputs = {value("y", resultType, {})};
    char path[] = "/tmp/hpc-numerics-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    std::string file = std::string(path) + "/model.onnx", text = graph.model();
    ASSERT_TRUE(writeFile(file, {text.data(), text.size()}).ok());
    Expected<OwningOpRef<ModuleOp>> imported = importOnnx(file, {}, &context);
    llvm::sys::fs::remove_directories(path);
    ASSERT_TRUE(imported.ok()) << imported.status().text();
    module = std::move(*imported);
    compiled = false;
    Expected<std::vector<Tensor>> results = runFunction(module->lookupSymbol<func::FuncOp>("main"), tensors);
    ASSERT_TRUE(results.ok()) << results.status().text();
    const Tensor &actual = results->front();
    ASSERT_EQ(size_t(actual.size()), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      double a = actual.number(int64_t(i)), e = expected[i];
      EXPECT_TRUE(std::isnan(e) ? std::isnan(a) : a == e || std::fabs(a - e) <= 1e-6 * std::max(1.0, std::fabs(e)))
          << "element " << i << ": " << a << ", expected " << e;
    }
    check("main", tensors);
  }
};

std::string axes(int64_t axis) { return ints("fixed0", {1}, {axis}); }

// A NaN bound is a NaN result; the upper bound wins over a greater lower one.
TEST_F(Numerics, Clip) {
  Input x{{4}, Floats{1, 5, nan, -inf}};
  expect("Clip", {x, {{}, Floats{nan}}, {{}, Floats{2}}}, {nan, nan, nan, nan});
  expect("Clip", {x, {{}, Floats{0}}, {{}, Floats{nan}}}, {nan, nan, nan, nan});
  expect("Clip", {x, {{}, Floats{3}}, {{}, Floats{2}}}, {2, 2, nan, 2});
}

// What a running sum has not reached does not show in it.
TEST_F(Numerics, CumSum) {
  Input x{{6}, Floats{1, inf, 2, -inf, 3, nan}};
  std::string axis = onnxwriter::tensor<int64_t>("fixed0", i64, {}, {0});
  auto flags = [](int64_t exclusive, int64_t reverse) {
    return std::vector<std::string>{attribute("exclusive", exclusive), attribute("reverse", reverse)};
  };
  expect("CumSum", {x}, {1, inf, inf, nan, nan, nan}, flags(0, 0), {axis});
  expect("CumSum", {x}, {nan, nan, nan, nan, nan, nan}, flags(0, 1), {axis});
  expect("CumSum", {x}, {0, 1, inf, inf, nan, nan}, flags(1, 0), {axis});
  expect("CumSum", {x}, {nan, nan, nan, nan, nan, 0}, flags(1, 1), {axis});
}

const Input hardRows{{7, 3}, Floats{1,  2,    inf, 1,    nan,  3,     -inf, -inf, -inf, -inf, 1,
                                    2,  inf,  -inf, 0,   1000, 1000,  -1000, -1e30f, -1e30f, -inf}};

// Rows with NaN or infinities are NaN; equal numbers center to 0, however large; squares that overflow give 0.
TEST_F(Numerics, LayerNormalization) {
  Input x{{6, 3}, Floats{1,     2,      inf,   1,    nan, 3, 1e6f + 1, 1e6f + 1, 1e6f + 1,
                         1e20f, -1e20f, 3e20f, -inf, inf, 0, 0.1f,     0.1f,     0.1f}};
  expect("LayerNormalization", {x, {{3}, Floats{1, 1, 1}}},
         {nan, nan, nan, nan, nan, nan, 0, 0, 0, 0, 0, 0, nan, nan, nan, 0, 0, 0});
}
TEST_F(Numerics, MeanOfEqualNumbersIsThatNumber) {
  Input x{{4, 3}, Floats{1e6f + 1, 1e6f + 1, 1e6f + 1, 0.1f, 0.1f, 0.1f, 1, nan, 2, inf, 1, 2}};
  expect("ReduceMean", {x}, {1e6f + 1, 0.1f, nan, inf}, {attribute("keepdims", int64_t(0))}, {axes(1)});
}

// An infinite maximum is the answer. (The reference gives NaN for the row of -inf alone.)
TEST_F(Numerics, ReduceLogSumExp) {
  expect("ReduceLogSumExp", {hardRows}, {inf, nan, -inf, 2.3132617, inf, 1000.6931472, -1e30f},
         {attribute("keepdims", int64_t(0))}, {axes(1)});
}
// As the formula: +inf or nothing but -inf makes NaN. (The reference rounds exp(-2000) to 0 before its logarithm.)
TEST_F(Numerics, LogSoftmax) {
  expect("LogSoftmax", {hardRows},
         {nan, nan, nan, nan, nan, nan, nan, nan, nan, -inf, -1.3132617, -0.3132617, nan, nan, nan, -0.6931472, -0.6931472,
          -2000.6931472, -0.6931472, -0.6931472, -inf});
}
TEST_F(Numerics, Softmax) {
  expect("Softmax", {hardRows},
         {nan, nan, nan, nan, nan, nan, nan, nan, nan, 0, 0.26894142, 0.73105858, nan, nan, nan, 0.5, 0.5, 0, 0.5, 0.5, 0});
}

// Integers beyond 2^53 keep all their digits; remainders of floats are exact.
TEST_F(Numerics, Mod) {
  std::vector<std::string> fmod = {attribute("fmod", int64_t(1))};
  Input a{{7}, Ints{(int64_t(1) << 62) + 1, -(int64_t(1) << 62) - 1, (int64_t(1) << 53) + 1, -7, 7, 5, INT64_MIN}};
  Input b{{7}, Ints{10, 10, 2, 3, -3, 0, -1}};
  expect("Mod", {a, b}, {5, -5, 1, -1, 1, 0, 0}, fmod, {}, 18, i64);
  expect("Mod", {a, b}, {5, 5, 1, 2, -2, 0, 0}, {}, {}, 18, i64);
  expect("Mod",
         {{{10}, Floats{1e30f, -1e30f, 5, -5, 5, inf, nan, -0.0f, 16777216, 5}},
          {{10}, Floats{3, 7, inf, inf, -inf, 2, 2, 2, 3, 0}}},
         {std::fmod(double(1e30f), 3), std::fmod(double(-1e30f), 7), 5, -5, 5, nan, nan, 0, 1, nan}, fmod);
}

// The standard defines nothing outside an integer's range: the nearest number that there is, 0 for NaN.
TEST_F(Numerics, CastOfFloatsOutOfRange) {
  Input x{{11}, Floats{3e9f, -3e9f, 1e20f, -1e20f, inf, -inf, nan, 300, -1, 2.9f, -2.9f}};
  auto to = [](int64_t type) { return std::vector<std::string>{attribute("to", type)}; };
  const double max64 = double(INT64_MAX), min64 = double(INT64_MIN), max32 = INT32_MAX, min32 = INT32_MIN;
  expect("Cast", {x}, {3e9, -3e9, max64, min64, max64, min64, 0, 300, -1, 2, -2}, to(7), {}, 18, 7);
  expect("Cast", {x}, {max32, min32, max32, min32, max32, min32, 0, 300, -1, 2, -2}, to(6), {}, 18, 6);
  expect("Cast", {x}, {127, -128, 127, -128, 127, -128, 0, 127, -1, 2, -2}, to(3), {}, 18, 3);
  expect("Cast", {x}, {255, 0, 255, 0, 255, 0, 0, 255, 0, 2, 0}, to(2), {}, 18, 2);
  expect("Cast", {x}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, to(9), {}, 18, 9);
}

// A query that sees no key gives 0, whatever hides them; one that sees the diagonal alone gives that value.
TEST_F(Numerics, AttentionThatSeesNothing) {
  Floats query, key, value;
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 4; ++column) {
      query.push_back(float(row * 4 + column) / 10);
      key.push_back(float((2 - row) * 4 + column) / 10);
    }
  for (int i = 0; i < 6; ++i)
    value.push_back(float(i));
  Input q{{1, 1, 3, 4}, query}, k{{1, 1, 3, 4}, key}, v{{1, 1, 3, 2}, value};
  Input mask{{3, 3}, std::vector<bool>{true, false, true, false, false, false, false, true, true}};
  Input bias{{3, 3}, Floats{0.5f, -inf, 0.5f, -inf, -inf, -inf, -inf, 0.5f, 0.5f}};
  std::vector<double> expected = {1.7611455, 2.7611456, 0, 0, 2.6372926, 3.6372926};
  expect("Attention", {q, k, v, mask}, expected, {}, {}, 23);
  expect("Attention", {q, k, v, bias}, expected, {}, {}, 23);
  expect("Attention", {q, k, v, mask}, {0, 1, 0, 0, 2.6372926, 3.6372926}, {attribute("is_causal", int64_t(1))}, {}, 23);
}

// NaN wins over everything. The sign of a zero shows in its reciprocal: -0 is less than +0.
TEST_F(Numerics, MaxAndMin) {
  expect("Max", {{{4}, Floats{nan, 1, 0.0f, -0.0f}}, {{4}, Floats{1, nan, -0.0f, 0.0f}}}, {nan, nan, 0, 0});
  expect("ReduceMax", {{{3, 2}, Floats{1, nan, inf, nan, -inf, -inf}}}, {nan, nan, -inf},
         {attribute("keepdims", int64_t(0))}, {axes(1)});
  for (const char *op : {"max", "min"}) {
    double limit = op[1] == 'a' ? inf : -inf;
    std::string type = "tensor<2xf32>";
    checkBody("%a: " + type + ", %b: " + type,
              std::string("%0 = nn.") + op + " %a, %b : " + type + ", " + type + " -> " + type +
                  "\n%r = nn.reciprocal %0 : " + type + " -> " + type,
              type, {Input{{2}, Floats{0.0f, -0.0f}}.tensor(), Input{{2}, Floats{-0.0f, 0.0f}}.tensor()});
    Expected<std::vector<Tensor>> results =
        runFunction(module->lookupSymbol<func::FuncOp>("main"),
                    {Input{{2}, Floats{0.0f, -0.0f}}.tensor(), Input{{2}, Floats{-0.0f, 0.0f}}.tensor()});
    ASSERT_TRUE(results.ok());
    EXPECT_EQ(results->front().floats, std::vector<double>({limit, limit})) << op;
  }
}

} // namespace
} // namespace hpc::test
