// Every rule of a gradient against central differences, through hpc-build-gradients, in the interpreter's doubles. The
// loss is a sum of the result's elements with random weights, so a wrong sign, a lost term or a transposed one shows.
#include "compiler/ElementType.h"
#include "compiler/Interpreter/Interpreter.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Train/Passes.h"
#include "test/unit/passes/ExecPrograms.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>

using namespace hpc;
using namespace hpc::test;

namespace {

/// A parameter, drawn between two numbers: "a: 2x3 in 0.5 2".
struct Parameter {
  std::string name, shape;
  double low = -1, high = 1;
};
struct GradientCase {
  std::string name;
  std::vector<Parameter> parameters;
  std::string body;   ///< makes %r
  std::string result; ///< its shape
};

void PrintTo(const GradientCase &test, std::ostream *out) { *out << test.name; }

std::string tensorType(const std::string &shape) { return "tensor<" + shape + (shape.empty() ? "" : "x") + "f32>"; }

/// `nn.op %a : tensor<2x3xf32> -> tensor<2x3xf32>`.
GradientCase unary(const std::string &op, double low = -1, double high = 1) {
  return {op, {{"a", "2x3", low, high}}, "%r = nn." + op + " %a : tensor<2x3xf32> -> tensor<2x3xf32>", "2x3"};
}
struct Range {
  double low = -1, high = 1;
};
/// Operands that broadcast each other.
GradientCase binary(const std::string &op, Range a = {}, Range b = {}) {
  return {op,
          {{"a", "2x1x3", a.low, a.high}, {"b", "4x1", b.low, b.high}},
          "%r = nn." + op + " %a, %b : tensor<2x1x3xf32>, tensor<4x1xf32> -> tensor<2x4x3xf32>",
          "2x4x3"};
}
/// An operand of one size and one of a rank less, read twice.
GradientCase squared(const std::string &op) {
  return {op + "_with_itself",
          {{"a", "2x3", 0.5, 2}, {"b", "3", 0.5, 2}},
          "%s = nn." + op + " %a, %a : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>\n" + "%r = nn." + op +
              " %s, %b : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>",
          "2x3"};
}
GradientCase matmul(const std::string &name, const std::string &a, const std::string &b, const std::string &r,
            const std::string &flags = "") {
  return {"matmul_" + name,
          {{"a", a}, {"b", b}},
          "%r = nn.matmul %a, %b " + (flags.empty() ? "" : "{" + flags + "} ") + ": " + tensorType(a) + ", " +
              tensorType(b) + " -> " + tensorType(r),
          r};
}
GradientCase attention(const std::string &name, const std::string &q, const std::string &k, const std::string &v,
               const std::string &r, const std::string &attributes, const std::string &bias = "", bool drops = false,
               const std::string &visible = "") {
  std::string biasText = bias.empty() ? "" : " bias %d : " + tensorType(bias);
  std::string scalars = drops ? "%s = nn.constant dense<3.0> : tensor<f64> : tensor<f64>\n" : "";
  if (!visible.empty()) {
    const std::string type = "tensor<" + visible + "xi1>";
    scalars += "%m = nn.constant dense<[[[[true, false, true], [false, false, false], [true, true, false]]]]> : " + type + " : " + type + "\n";
    biasText += " visible %m : " + type;
  }
  if (drops)
    biasText += " dropout %s, %s : tensor<f64>, tensor<f64>";
  std::vector<Parameter> parameters = {{"a", q}, {"b", k}, {"c", v}};
  if (!bias.empty())
    parameters.push_back({"d", bias});
  return {"attention_" + name, parameters,
          scalars + "%r = nn.attention %a, %b, %c" + biasText + " {" + attributes + "} : " + tensorType(q) + ", " +
              tensorType(k) + ", " + tensorType(v) + " -> " + tensorType(r),
          r};
}

std::vector<GradientCase> cases() {
  std::vector<GradientCase> all = {
      {"dropout",
       {{"a", "5x7"}},
       "%s = nn.constant dense<3.0> : tensor<f64> : tensor<f64>\n"
       "%r = nn.dropout %a, %s, %s {site = 2 : i64, rate = 4.0e-1 : f64} : tensor<5x7xf32>, tensor<f64>, tensor<f64> -> tensor<5x7xf32>",
       "5x7"},
      unary("neg"), unary("abs"), unary("exp"), unary("log", 0.5, 2), unary("sqrt", 0.5, 2),
      unary("reciprocal", 0.5, 2), unary("tanh"), unary("erf"), unary("sin"), unary("cos"), unary("tan"),
      unary("asin", -0.9, 0.9), unary("acos", -0.9, 0.9), unary("atan"), unary("sinh"), unary("cosh"),
      unary("asinh"), unary("acosh", 1.5, 3), unary("atanh", -0.9, 0.9), unary("sigmoid"), unary("relu"),
      unary("gelu"), binary("add"), binary("sub"), binary("mul"), binary("div", {0.5, 2}, {0.5, 2}),
      binary("mod", {3.3, 3.5}, {1, 1.05}), binary("fmod", {-3.5, -3.3}, {1, 1.05}), binary("pow", {0.5, 2}, {-2, 2}),
      binary("max"), binary("min"), squared("mul"), squared("add"),
      squared("sub"), squared("div"),
      {"gelu_tanh", {{"a", "7", -3, 3}}, "%r = nn.gelu %a {tanh_approximation} : tensor<7xf32> -> tensor<7xf32>", "7"},
      {"select",
       {{"a", "2x3"}, {"b", "3"}},
       "%c = nn.constant dense<[[true], [false]]> : tensor<2x1xi1> : tensor<2x1xi1>\n"
       "%r = nn.select %c, %a, %b : tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>",
       "2x3"},
      {"cast",
       {{"a", "2x3"}},
       "%c = nn.cast %a : tensor<2x3xf32> -> tensor<2x3xf64>\n%r = nn.cast %c : tensor<2x3xf64> -> tensor<2x3xf32>",
       "2x3"},
      {"reshape", {{"a", "2x6"}}, "%r = nn.reshape %a : tensor<2x6xf32> -> tensor<3x4xf32>", "3x4"},
      {"transpose",
       {{"a", "2x3x4"}},
       "%r = nn.transpose %a {permutation = array<i64: 2, 0, 1>} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>",
       "4x2x3"},
      {"broadcast", {{"a", "3x1"}}, "%r = nn.broadcast %a : tensor<3x1xf32> -> tensor<2x3x4xf32>", "2x3x4"},
      {"slice",
       {{"a", "5x7"}},
       "%r = nn.slice %a {starts = array<i64: 1, 2>, steps = array<i64: 1, 1>} : tensor<5x7xf32> -> tensor<3x4xf32>",
       "3x4"},
      // Equal parts, all of them but one: gradients meet as one concat.
      {"slice_parts",
       {{"a", "2x9"}},
       "%x = nn.slice %a {starts = array<i64: 0, 3>, steps = array<i64: 1, 1>} : tensor<2x9xf32> -> tensor<2x3xf32>\n"
       "%y = nn.slice %a {starts = array<i64: 0, 6>, steps = array<i64: 1, 1>} : tensor<2x9xf32> -> tensor<2x3xf32>\n"
       "%r = nn.mul %x, %y : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>",
       "2x3"},
      {"slice_parts_overlapping",
       {{"a", "2x6"}},
       "%x = nn.slice %a {starts = array<i64: 0, 3>, steps = array<i64: 1, 1>} : tensor<2x6xf32> -> tensor<2x3xf32>\n"
       "%y = nn.slice %a {starts = array<i64: 0, 2>, steps = array<i64: 1, 1>} : tensor<2x6xf32> -> tensor<2x3xf32>\n"
       "%z = nn.mul %x, %y : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>\n"
       "%r = nn.mul %z, %x : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>",
       "2x3"},
      {"slice_steps",
       {{"a", "6x9"}},
       "%r = nn.slice %a {starts = array<i64: 5, 1>, steps = array<i64: -2, 3>} : tensor<6x9xf32> -> tensor<3x3xf32>",
       "3x3"},
      {"slice_backwards",
       {{"a", "4"}},
       "%r = nn.slice %a {starts = array<i64: 3>, steps = array<i64: -1>} : tensor<4xf32> -> tensor<4xf32>",
       "4"},
      {"concat",
       {{"a", "2x1x3"}, {"b", "2x4x3"}},
       "%r = nn.concat %a, %b, %a {axis = 1 : i64} : tensor<2x1x3xf32>, tensor<2x4x3xf32>, tensor<2x1x3xf32> -> tensor<2x6x3xf32>",
       "2x6x3"},
      {"pad",
       {{"a", "2x3"}},
       "%r = nn.pad %a {low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 7.0 : f32} : tensor<2x3xf32> -> tensor<3x5xf32>",
       "3x5"},
      {"window",
       {{"a", "2x7x8"}},
       "%r = nn.window %a {strides = array<i64: 2, 3>, dilations = array<i64: 1, 2>} : tensor<2x7x8xf32> -> tensor<2x3x2x3x2xf32>",
       "2x3x2x3x2"},
      {"window_of_one",
       {{"a", "2x5"}},
       "%r = nn.window %a {strides = array<i64: 3>, dilations = array<i64: 1>} : tensor<2x5xf32> -> tensor<2x1x2xf32>",
       "2x1x2"},
      {"embedding",
       {{"a", "5x3"}},
       "%i = nn.constant dense<[[0, 4, 4], [-1, 2, 9]]> : tensor<2x3xi64> : tensor<2x3xi64>\n"
       "%e = nn.embedding %a, %i {vocabulary = 5 : i64} : tensor<5x3xf32>, tensor<2x3xi64> -> tensor<2x3x3xf32>\n"
       "%z = nn.constant dense<0.0> : tensor<f32> : tensor<f32>\n"
       "%n = nn.is_nan %e : tensor<2x3x3xf32> -> tensor<2x3x3xi1>\n" // id 9 is none
       "%r = nn.select %n, %z, %e : tensor<2x3x3xi1>, tensor<f32>, tensor<2x3x3xf32> -> tensor<2x3x3xf32>",
       "2x3x3"},
      {"embedding_grad",
       {{"a", "2x3x4"}},
       "%i = nn.constant dense<[[0, 4, 4], [-1, 2, 9]]> : tensor<2x3xi64> : tensor<2x3xi64>\n"
       "%r = nn.embedding_grad %a, %i {vocabulary = 5 : i64} : tensor<2x3x4xf32>, tensor<2x3xi64> -> tensor<5x4xf32>",
       "5x4"},
      {"gather",
       {{"a", "2x4x3"}},
       "%i = nn.constant dense<[[0, 3], [-1, 1], [3, 3]]> : tensor<3x2xi64> : tensor<3x2xi64>\n"
       "%r = nn.gather %a, %i {axis = 1 : i64} : tensor<2x4x3xf32>, tensor<3x2xi64> -> tensor<2x3x2x3xf32>",
       "2x3x2x3"},
      {"gather_nd",
       {{"a", "2x4x3x5"}},
       "%i = nn.constant dense<[[[0, 2], [3, -1], [-4, 0]], [[1, 1], [1, 1], [2, 0]]]> : tensor<2x3x2xi64> : tensor<2x3x2xi64>\n"
       "%r = nn.gather_nd %a, %i {batch_dims = 1 : i64} : tensor<2x4x3x5xf32>, tensor<2x3x2xi64> -> tensor<2x3x5xf32>",
       "2x3x5"},
      {"gather_nd_of_few_elements",
       {{"a", "2x3x4x2"}},
       "%i = nn.constant dense<[[[[0], [3]], [[-1], [-1]], [[2], [-4]]], [[[1], [1]], [[3], [0]], [[2], [1]]]]> : tensor<2x3x2x1xi64> : tensor<2x3x2x1xi64>\n"
       "%r = nn.gather_nd %a, %i {batch_dims = 2 : i64} : tensor<2x3x4x2xf32>, tensor<2x3x2x1xi64> -> tensor<2x3x2x2xf32>",
       "2x3x2x2"},
      {"gather_nd_of_several_dims",
       {{"a", "3x2x4"}},
       "%i = nn.constant dense<[[[[0, 2], [1, -1]]], [[[1, 1], [1, 1]]], [[[-2, 0], [0, 3]]]]> : tensor<3x1x2x2xi64> : tensor<3x1x2x2xi64>\n"
       "%r = nn.gather_nd %a, %i {batch_dims = 1 : i64} : tensor<3x2x4xf32>, tensor<3x1x2x2xi64> -> tensor<3x1x2xf32>",
       "3x1x2"},
      {"cumsum", {{"a", "2x4"}}, "%r = nn.cumsum %a {axis = 1 : i64} : tensor<2x4xf32> -> tensor<2x4xf32>", "2x4"},
      {"cumsum_exclusive",
       {{"a", "4x2"}},
       "%r = nn.cumsum %a {axis = 0 : i64, exclusive, reverse} : tensor<4x2xf32> -> tensor<4x2xf32>",
       "4x2"},
      {"softmax", {{"a", "2x3x5", -2, 2}}, "%r = nn.softmax %a : tensor<2x3x5xf32> -> tensor<2x3x5xf32>", "2x3x5"},
      {"layer_norm",
       {{"a", "2x3x5"}, {"b", "5"}, {"c", "5"}},
       "%r = nn.layer_norm %a weight %b : tensor<5xf32> bias %c : tensor<5xf32> {epsilon = 1.0e-5 : f64} : tensor<2x3x5xf32> -> tensor<2x3x5xf32>",
       "2x3x5"},
      {"layer_norm_bias",
       {{"a", "3x5"}, {"c", "5"}},
       "%r = nn.layer_norm %a bias %c : tensor<5xf32> {epsilon = 1.0e-2 : f64} : tensor<3x5xf32> -> tensor<3x5xf32>",
       "3x5"},
      {"rms_norm",
       {{"a", "3x5"}, {"b", "5"}},
       "%r = nn.rms_norm %a weight %b : tensor<5xf32> {epsilon = 1.0e-5 : f64} : tensor<3x5xf32> -> tensor<3x5xf32>",
       "3x5"},
      {"cross_entropy",
       {{"a", "2x3x5", -2, 2}},
       "%i = nn.constant dense<[[0, 4, -100], [2, 2, 1]]> : tensor<2x3xi64> : tensor<2x3xi64>\n"
       "%l, %t, %s = nn.cross_entropy %a, %i : tensor<2x3x5xf32>, tensor<2x3xi64> -> tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>\n"
       "%r = nn.concat %l, %t, %s {axis = 0 : i64} : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<6x3xf32>",
       "6x3"},
      {"cross_entropy_loss",
       {{"a", "3x5", -2, 2}},
       "%i = nn.constant dense<[0, 7, 3]> : tensor<3xi64> : tensor<3xi64>\n"
       "%r, %t, %s = nn.cross_entropy %a, %i {ignore_index = 7 : i64} : tensor<3x5xf32>, tensor<3xi64> -> tensor<3xf32>, tensor<3xf32>, tensor<3xf32>",
       "3"},
      // What has no slope does not disturb what has one.
      {"steps",
       {{"a", "2x3", 0.2, 0.4}},
       "%f = nn.floor %a : tensor<2x3xf32> -> tensor<2x3xf32>\n%c = nn.ceil %a : tensor<2x3xf32> -> tensor<2x3xf32>\n"
       "%o = nn.round %a : tensor<2x3xf32> -> tensor<2x3xf32>\n%s = nn.sign %a : tensor<2x3xf32> -> tensor<2x3xf32>\n"
       "%x = nn.add %f, %c : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>\n"
       "%y = nn.add %x, %o : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>\n"
       "%z = nn.add %y, %s : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>\n"
       "%r = nn.mul %z, %a : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>",
       "2x3"},
      matmul("plain", "3x4", "4x5", "3x5"),
      matmul("batched", "2x3x4", "2x4x5", "2x3x5"),
      matmul("weight", "2x3x4", "4x5", "2x3x5"),
      matmul("weight_transposed", "2x3x4", "5x4", "2x3x5", "transpose_rhs"),
      matmul("lhs_transposed", "2x4x3", "4x5", "2x3x5", "transpose_lhs"),
      matmul("both_transposed", "2x4x3", "2x5x4", "2x3x5", "transpose_lhs, transpose_rhs"),
      matmul("lhs_broadcast", "3x4", "2x4x5", "2x3x5"),
      matmul("groups", "2x3x2x4", "2x1x4x5", "2x3x2x5"),
      matmul("mixed", "2x1x3x4", "7x4x5", "2x7x3x5"),
      attention("causal", "2x3x5x4", "2x3x5x4", "2x3x5x2", "2x3x5x2", "scale = 0.5 : f64, causal_offset = 0 : i64"),
      attention("groups", "2x4x3x2", "2x2x5x2", "2x2x5x3", "2x4x3x3", "scale = 0.7 : f64"),
      attention("bias", "1x2x3x2", "1x2x4x2", "1x2x4x2", "1x2x3x2", "scale = 1.0 : f64, guarded", "1x1x3x4"),
      attention("groups_bias", "1x4x3x2", "1x2x4x2", "1x2x4x2", "1x4x3x2", "scale = 1.0 : f64", "1x4x1x4"),
      attention("visible", "2x4x3x2", "2x2x3x2", "2x2x3x3", "2x4x3x3", "scale = 0.7 : f64, hidden = -1.0e+30 : f64", "", false, "1x1x3x3"),
      attention("visible_bias", "1x4x3x2", "1x2x3x2", "1x2x3x2", "1x4x3x2", "scale = 0.7 : f64", "1x4x1x3", false, "1x1x3x3"),
      attention("dropout", "2x4x5x2", "2x2x5x2", "2x2x5x3", "2x4x5x3",
                "scale = 0.7 : f64, causal_offset = 0 : i64, site = 2 : i64, rate = 4.0e-1 : f64", "", true),
      attention("dropout_bias", "1x4x3x2", "1x2x4x2", "1x2x4x2", "1x4x3x2", "scale = 1.0 : f64, site = 1 : i64, rate = 3.0e-1 : f64",
                "1x4x1x4", true),
  };
  for (const char *kind : {"sum", "max", "min", "prod"})
    all.push_back({std::string("reduce_") + kind,
                   {{"a", "2x3x4"}},
                   std::string("%r = nn.reduce ") + kind +
                       " %a {axes = array<i64: 0, 2>} : tensor<2x3x4xf32> -> tensor<1x3x1xf32>",
                   "1x3x1"});
  return all;
}

std::string moduleText(const GradientCase &c) {
  std::string text = "func.func @main(%weights: " + tensorType(c.result) +
                     " {nn.name = \"weights\"}) -> (tensor<f32> {nn.name = \"loss\"}) {\n", ones, axes;
  for (const Parameter &parameter : c.parameters) {
    int64_t bytes = 4;
    SmallVector<StringRef> sizes;
    StringRef(parameter.shape).split(sizes, 'x', -1, false);
    for (StringRef size : sizes)
      bytes *= std::stoll(size.str());
    text += "  %" + parameter.name + " = nn.parameter \"" + parameter.name + "\" stored <file = \"w\", bytes = " +
            std::to_string(bytes) + ", hashes = [0]> : " + tensorType(parameter.shape) + "\n";
  }
  size_t rank = size_t(llvm::count(c.result, 'x') + 1);
  for (size_t i = 0; i < rank; ++i) {
    ones += i ? "x1" : "1";
    axes += (i ? ", " : "") + std::to_string(i);
  }
  std::string r = tensorType(c.result);
  return text + c.body + "\n  %weighted = nn.mul %r, %weights : " + r + ", " + r + " -> " + r +
         "\n  %total = nn.reduce sum %weighted {axes = array<i64: " + axes + ">} : " + r + " -> " + tensorType(ones) +
         "\n  %loss = nn.reshape %total : " + tensorType(ones) +
         " -> tensor<f32>\n  return %loss : tensor<f32>\n}\n";
}

struct GradientTest : testing::TestWithParam<GradientCase> {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::map<std::string, Tensor> parameters;
  std::vector<Tensor> inputs;

  GradientTest() {
    registry.insert<nn::NNDialect, dist::DistDialect, func::FuncDialect>();
    context = std::make_unique<MLIRContext>(registry);
    context->loadAllAvailableDialects();
    context->disableMultithreading();
  }

  Expected<std::vector<Tensor>> run(ModuleOp module) {
    RunOptions options;
    options.doublePrecision = true;
    options.parameters = [&](nn::ParameterOp op, ArrayRef<int64_t>) -> Expected<Tensor> {
      return parameters.at(op.getName().str());
    };
    return runFunction(module.lookupSymbol<func::FuncOp>("main"), inputs, options);
  }
};

// A wrong derivative trains something else, or nothing.
TEST_P(GradientTest, EqualsCentralDifferences) {
  OwningOpRef<ModuleOp> serial = parseSourceString<ModuleOp>(moduleText(GetParam()), context.get());
  ASSERT_TRUE(serial) << moduleText(GetParam());
  // 1. Numbers.
  auto main = serial->lookupSymbol<func::FuncOp>("main");
  for (BlockArgument argument : main.getArguments())
    inputs.push_back(draw("weights of " + GetParam().name, DType::F32, nn::shapeOf(argument)));
  main.walk([&](nn::ParameterOp op) {
    auto which = llvm::find_if(GetParam().parameters,
                               [&](const Parameter &each) { return each.name == op.getName().str(); });
    Tensor tensor = draw(GetParam().name + op.getName().str(), DType::F32, nn::shapeOf(op));
    for (double &number : tensor.floats)
      number = which->low + (number + 1) / 2 * (which->high - which->low);
    parameters[op.getName().str()] = tensor;
  });
  // 2. The gradients that are built.
  OwningOpRef<ModuleOp> step = serial->clone();
  PassManager passes(context.get());
  passes.addPass(createBuildGradients());
  passes.addPass(createVerifyTrain());
  ASSERT_TRUE(succeeded(passes.run(*step)));
  auto results = run(*step);
  ASSERT_TRUE(results.ok()) << results.status().text();
  auto stepMain = step->lookupSymbol<func::FuncOp>("main");
  ASSERT_EQ(results->size(), GetParam().parameters.size() + 1);
  // 3. A step to either side of every element.
  const double h = 1e-4;
  for (unsigned index = 1; index < results->size(); ++index) {
    std::string name = nn::resultPort(stepMain, index).gradient;
    Tensor &parameter = parameters.at(name);
    const Tensor &gradient = (*results)[index];
    ASSERT_EQ(gradient.shape, parameter.shape) << name;
    for (int64_t i = 0; i < parameter.size(); ++i) {
      double there = parameter.floats[i], losses[2];
      for (int side : {0, 1}) {
        parameter.floats[i] = there + (side ? h : -h);
        auto loss = run(*serial);
        ASSERT_TRUE(loss.ok()) << loss.status().text();
        losses[side] = loss->front().floats[0];
      }
      parameter.floats[i] = there;
      double slope = (losses[1] - losses[0]) / (2 * h);
      EXPECT_NEAR(gradient.floats[i], slope, 2e-7 * (1 + std::fabs(slope))) << name << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, GradientTest, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<GradientCase> &info) { return info.param.name; });

/// Ops that no gradient can flow through: sources, ops on integers and booleans, and what gradients are themselves.
const std::set<std::string> withoutDerivative = {
    "nn.parameter", "nn.constant", "nn.iota", "nn.not", "nn.is_nan", "nn.is_inf", "nn.and", "nn.or", "nn.xor",
    "nn.shift_left", "nn.shift_right", "nn.compare", "nn.bitcast", "nn.sort_position", "nn.update_slice", "nn.attention_grad"};

/// What no central difference shows: test/passes/Train/build-gradients.mlir.
const std::set<std::string> notItsDerivative = {"nn.detach"};

// A new op without a rule stops training of every model that has it.
TEST(GradientRules, EveryOpHasOneOrNeedsNone) {
  DialectRegistry registry;
  registry.insert<nn::NNDialect, func::FuncDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  std::vector<GradientCase> tested = cases();
  int rules = 0;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn")) {
    if (name.hasTrait<OpTrait::IsTerminator>() || !name.hasTrait<OpTrait::ZeroRegions>())
      continue;
    std::string text = name.getStringRef().str();
    bool hasRule = name.hasInterface<DifferentiableOpInterface>();
    EXPECT_NE(hasRule, withoutDerivative.count(text) > 0)
        << text << " needs buildGradients in compiler/Dialect/NN, or an entry in the table of this test";
    bool isTested = llvm::any_of(tested, [&](const GradientCase &c) { return StringRef(c.body).contains(text + " "); });
    EXPECT_TRUE(!hasRule || isTested || notItsDerivative.count(text))
        << text << " has a rule that no case of this test tries";
    rules += hasRule;
  }
  EXPECT_GT(rules, 50);
}

} // namespace
