// [B*S, C] becomes [B, S, C] round every op that says how, and means the same; what runs along the merged dim is left.
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Interpreter/Interpreter.h"
#include "passes/Raise/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <set>

namespace hpc {
namespace {

/// One op on %m, which is %x : tensor<2x3x4x5xT> as tensor<6x4x5xT>.
struct LeadingDimsCase {
  std::string type;  ///< T
  std::string op;    ///< the whole line after "%r = "; %c : tensor<6x4x5xT> and %d, made of %y as %m of %x, may be used
  bool moves = true; ///< the op gets the parted dims
};

void PrintTo(const LeadingDimsCase &test, std::ostream *out) { *out << test.op; }

std::vector<LeadingDimsCase> cases() {
  std::string m = "tensor<6x4x5xf32>", b = "tensor<6x4x5xi1>", i = "tensor<6x4x5xi64>";
  std::vector<LeadingDimsCase> all;
  for (std::string op : {"neg",     "abs",  "exp",   "log",  "sqrt",  "reciprocal", "tanh",   "erf",  "sin",     "cos",
                         "sigmoid", "relu", "floor", "ceil", "round", "sign",       "detach", "gelu", "softmax", "tan",
                         "asin",    "acos", "atan",  "sinh", "cosh",  "asinh",      "acosh",  "atanh"})
    all.push_back({"f32", "nn." + op + " %m : " + m + " -> " + m});
  for (std::string op : {"is_nan", "is_inf"})
    all.push_back({"f32", "nn." + op + " %m : " + m + " -> " + b});
  for (std::string op : {"add", "sub", "mul", "div", "mod", "fmod", "pow", "max", "min"}) {
    all.push_back({"f32", "nn." + op + " %m, %d : " + m + ", " + m + " -> " + m});
    all.push_back({"f32", "nn." + op + " %d, %m : " + m + ", " + m + " -> " + m});
    all.push_back({"f32", "nn." + op + " %m, %v : " + m + ", tensor<5xf32> -> " + m});
  }
  for (std::string op : {"and", "or", "xor"})
    all.push_back({"i1", "nn." + op + " %m, %d : " + b + ", " + b + " -> " + b});
  all.push_back({"i1", "nn.not %m : " + b + " -> " + b});
  all.push_back({"f32", "nn.compare lt %m, %d : " + m + ", " + m + " -> " + b});
  all.push_back({"i1", "nn.select %m, %v, %v : " + b + ", tensor<5xi1>, tensor<5xi1> -> " + b});
  all.push_back({"i64", "nn.cast %m : " + i + " -> " + m});
  all.push_back({"f32", "nn.bitcast %m : " + m + " -> tensor<6x4x5xi32>"});
  for (std::string op : {"shift_left", "shift_right"})
    all.push_back({"i64", "nn." + op + " %m, %d : " + i + ", " + i + " -> " + i});

  // Random numbers go by row-major position, which is the same in both.
  all.push_back({"f32", "nn.dropout %m, %step, %step {site = 1 : i64, rate = 4.0e-1 : f64} : " + m +
                            ", tensor<f64>, tensor<f64> -> " + m});
  for (std::string op : {"layer_norm", "rms_norm"}) {
    all.push_back({"f32", "nn." + op + " %m {epsilon = 1.0e-5 : f64} : " + m + " -> " + m});
    all.push_back({"f32", "nn." + op + " %m weight %v : tensor<5xf32> {epsilon = 1.0e-5 : f64} : " + m + " -> " + m});
  }
  all.push_back({"f32", "nn.matmul %m, %d {transpose_rhs} : " + m + ", " + m + " -> tensor<6x4x4xf32>"});
  all.push_back({"f32", "nn.matmul %m, %d {transpose_lhs} : " + m + ", " + m + " -> tensor<6x5x5xf32>"});
  for (std::string kind : {"sum", "max", "min", "prod"}) {
    all.push_back({"f32", "nn.reduce " + kind + " %m {axes = array<i64: 2>} : " + m + " -> tensor<6x4x1xf32>"});
    all.push_back({"f32", "nn.reduce " + kind + " %m {axes = array<i64: 1, 2>} : " + m + " -> tensor<6x1x1xf32>"});
    all.push_back({"f32", "nn.reduce " + kind + " %m {axes = array<i64: 0>} : " + m + " -> tensor<1x4x5xf32>", false});
    all.push_back(
        {"f32", "nn.reduce " + kind + " %m {axes = array<i64: 0, 2>} : " + m + " -> tensor<1x4x1xf32>", false});
  }
  all.push_back({"f32", "nn.transpose %m {permutation = array<i64: 0, 2, 1>} : " + m + " -> tensor<6x5x4xf32>"});
  all.push_back({"f32", "nn.transpose %m {permutation = array<i64: 1, 0, 2>} : " + m + " -> tensor<4x6x5xf32>", false});
  all.push_back({"f32", "nn.slice %m {starts = array<i64: 0, 1, 4>, steps = array<i64: 1, 2, -1>} : " + m +
                            " -> tensor<6x2x5xf32>"});
  all.push_back(
      {"f32",
       "nn.slice %m {starts = array<i64: 1, 0, 0>, steps = array<i64: 1, 1, 1>} : " + m + " -> tensor<2x4x5xf32>",
       false});
  all.push_back(
      {"f32",
       "nn.slice %m {starts = array<i64: 5, 0, 0>, steps = array<i64: -1, 1, 1>} : " + m + " -> tensor<6x4x5xf32>",
       false});
  all.push_back({"f32", "nn.concat %m, %d {axis = 1 : i64} : " + m + ", " + m + " -> tensor<6x8x5xf32>"});
  all.push_back({"f32", "nn.concat %m, %d {axis = 2 : i64} : " + m + ", " + m + " -> tensor<6x4x10xf32>"});
  all.push_back({"f32", "nn.concat %m, %d {axis = 0 : i64} : " + m + ", " + m + " -> tensor<12x4x5xf32>", false});
  all.push_back({"f32", "nn.pad %m {low = array<i64: 0, 1, 0>, high = array<i64: 0, 0, 2>, value = 7.0 : f32} : " + m +
                            " -> tensor<6x5x7xf32>"});
  all.push_back({"f32",
                 "nn.pad %m {low = array<i64: 1, 0, 0>, high = array<i64: 0, 0, 0>, value = 7.0 : f32} : " + m +
                     " -> tensor<7x4x5xf32>",
                 false});
  all.push_back({"f32", "nn.window %m {strides = array<i64: 1, 2>, dilations = array<i64: 2, 1>} : " + m +
                            " -> tensor<6x2x3x2x2xf32>"});
  all.push_back({"f32",
                 "nn.window %m {strides = array<i64: 1, 1, 2>, dilations = array<i64: 2, 2, 1>} : " + m +
                     " -> tensor<3x2x3x2x2x2xf32>",
                 false});
  for (std::string flags : {"", ", exclusive", ", reverse"}) {
    all.push_back({"f32", "nn.cumsum %m {axis = 1 : i64" + flags + "} : " + m + " -> " + m});
    all.push_back({"f32", "nn.cumsum %m {axis = 0 : i64" + flags + "} : " + m + " -> " + m, false});
  }
  for (std::string flags : {"", ", descending"}) {
    all.push_back({"f32", "nn.sort_position %m {axis = 1 : i64" + flags + "} : " + m + " -> " + i});
    all.push_back({"f32", "nn.sort_position %m {axis = 0 : i64" + flags + "} : " + m + " -> " + i, false});
  }
  all.push_back({"f32", "nn.broadcast %m : " + m + " -> " + m, false}); // folds: nothing is left to move
  all.push_back(
      {"i64", "nn.embedding %t, %m {vocabulary = 3 : i64} : tensor<3x2xf32>, " + i + " -> tensor<6x4x5x2xf32>"});
  all.push_back({"i64", "nn.gather %t, %m {axis = 0 : i64} : tensor<3x2xf32>, " + i + " -> tensor<6x4x5x2xf32>"});
  all.push_back(
      {"i64", "nn.gather %t, %m {axis = 1 : i64} : tensor<3x2xf32>, " + i + " -> tensor<3x6x4x5xf32>", false});
  all.push_back({"f32", "nn.gather %m, %k {axis = 1 : i64} : " + m + ", tensor<2x2xi64> -> tensor<6x2x2x5xf32>"});
  all.push_back(
      {"f32", "nn.gather %m, %k {axis = 0 : i64} : " + m + ", tensor<2x2xi64> -> tensor<2x2x4x5xf32>", false});
  all.push_back(
      {"f32", "nn.gather_nd %m, %n {batch_dims = 1 : i64} : " + m + ", tensor<6x2x1xi64> -> tensor<6x2x5xf32>"});
  all.push_back(
      {"f32", "nn.gather_nd %m, %k {batch_dims = 0 : i64} : " + m + ", tensor<2x2xi64> -> tensor<2x5xf32>", false});
  for (std::string dim : {"1", "0"})
    all.push_back({"f32", "nn.update_slice %m, %d, %zero {dim = " + dim + " : i64} : " + m + ", " + m + ", tensor<i64> -> " + m, dim == "1"});
  return all;
}

struct RaiseLeadingDims : testing::TestWithParam<LeadingDimsCase> {
  MLIRContext context;
  RaiseLeadingDims() { context.loadDialect<nn::NNDialect, func::FuncDialect>(); }
};

TEST_P(RaiseLeadingDims, MovesOrLeaves) {
  const LeadingDimsCase &test = GetParam();
  std::string whole = "tensor<2x3x4x5x" + test.type + ">", merged = "tensor<6x4x5x" + test.type + ">";
  std::string result = test.op.substr(test.op.rfind("-> ") + 3);
  std::string text = "func.func @main(%x: " + whole + ", %y: " + whole + ", %v: tensor<5x" + test.type +
                     ">, %t: tensor<3x2xf32>, %k: tensor<2x2xi64>, %n: tensor<6x2x1xi64>, %step: tensor<f64>, %zero: tensor<i64>) -> " + result + " {\n" +
                     "  %m = nn.reshape %x : " + whole + " -> " + merged + "\n  %d = nn.reshape %y : " + whole +
                     " -> " + merged + "\n  %r = " + test.op + "\n  return %r : " + result + "\n}\n";
  OwningOpRef<ModuleOp> before = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(before) << text;
  OwningOpRef<ModuleOp> after(before->clone());
  PassManager passes(&context, "builtin.module");
  passes.addPass(createRaiseLinear());
  ASSERT_TRUE(succeeded(passes.run(*after))) << text;

  // 1. Whether it moved.
  StringRef name = StringRef(test.op).take_until([](char c) { return c == ' '; });
  bool hasMoved = false;
  after->walk([&](Operation *op) {
    if (op->getName().getStringRef() == name)
      hasMoved |= nn::shapeOf(op->getResult(0)).take_front(2) == ArrayRef<int64_t>({2, 3});
  });
  EXPECT_EQ(hasMoved, test.moves) << text;

  // 2. That it means the same, to the bit.
  RunOptions options;
  auto main = before->lookupSymbol<func::FuncOp>("main");
  std::vector<Tensor> inputs;
  for (Type type : main.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    DType dtype = dtypeOf(tensor);
    Tensor input(dtype, tensor.getShape());
    for (int64_t i = 0; i < input.size(); ++i)
      input.setNumber(i, input.isFloat() ? 0.25 + double(i * 37 % 101) / 16 : double(i * 7 % 3 % 2));
    inputs.push_back(std::move(input));
  }
  Expected<std::vector<Tensor>> expected = runFunction(main, inputs, options),
                                actual = runFunction(after->lookupSymbol<func::FuncOp>("main"), inputs, options);
  ASSERT_TRUE(expected.ok()) << expected.status().text() << text;
  ASSERT_TRUE(actual.ok()) << actual.status().text() << text;
  EXPECT_EQ((*expected)[0].shape, (*actual)[0].shape);
  for (int64_t i = 0; i < (*expected)[0].size(); ++i) {
    double a = (*expected)[0].number(i), b = (*actual)[0].number(i);
    EXPECT_TRUE(a == b || (a != a && b != b)) << i << ": " << a << " became " << b << "\n" << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, RaiseLeadingDims, testing::ValuesIn(cases()), [](const auto &info) {
  std::string name = info.param.op.substr(3, info.param.op.find(' ') - 3) + std::to_string(info.index);
  name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
  return name;
});

// An op that does not say how is left alone, whatever its attributes look like: attention has just four dims.
TEST(RaiseLeadingDimsTable, LeavesWhatDoesNotSay) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  ASSERT_FALSE(OperationName("nn.attention", &context).hasInterface<LeadingDimsOpInterface>());
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    func.func @main(%x: tensor<2x3x2x4x5xf32>) -> tensor<6x2x4x5xf32> {
      %m = nn.reshape %x : tensor<2x3x2x4x5xf32> -> tensor<6x2x4x5xf32>
      %r = nn.attention %m, %m, %m {scale = 0.5 : f64} : tensor<6x2x4x5xf32>, tensor<6x2x4x5xf32>, tensor<6x2x4x5xf32> -> tensor<6x2x4x5xf32>
      return %r : tensor<6x2x4x5xf32>
    })",
                                                             &context);
  ASSERT_TRUE(module);
  PassManager passes(&context, "builtin.module");
  passes.addPass(createRaiseLinear());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  module->walk([](nn::AttentionOp op) { EXPECT_EQ(nn::shapeOf(op.getResult()).size(), 4u); });
}

// A new op that says how its attributes change, and has no case above, is rewritten without proof.
TEST(RaiseLeadingDimsTable, HasEveryOp) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  std::set<std::string> tested;
  for (const LeadingDimsCase &test : cases())
    tested.insert(test.op.substr(0, test.op.find(' ')));
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn"))
    if (name.hasInterface<LeadingDimsOpInterface>())
      EXPECT_TRUE(tested.count(name.getStringRef().str())) << name.getStringRef().str() << ": add a case";
}

} // namespace
} // namespace hpc
