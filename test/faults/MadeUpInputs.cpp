// The inputs that --verify makes up where the user gives none.
// Integers must be legal indices of whatever they reach, found in a time that grows with the program and not its paths.
#include "compiler/Dialect/NN/NN.h"
#include "passes/Driver/VerifyInputs.h"

#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"

namespace hpc {
namespace {

/// Forty levels that each read the one before twice: 2^40 ways lead from the ids to the table.
TEST(MadeUpInputs, FanOutIsWalkedOnce) {
  std::string text = "func.func @main(%v0: tensor<2xi64>, %t: tensor<3x4xf32>) -> tensor<2x4xf32> {\n";
  for (int level = 0; level < 40; ++level) {
    std::string from = "%v" + std::to_string(level), to = "%v" + std::to_string(level + 1);
    text += to + "c = nn.concat " + from + ", " + from +
            " {axis = 0 : i64} : tensor<2xi64>, tensor<2xi64> -> tensor<4xi64>\n" + to + " = nn.slice " + to +
            "c {starts = array<i64: 1>, steps = array<i64: 1>} : tensor<4xi64> -> tensor<2xi64>\n";
  }
  text += "%e = nn.embedding %t, %v40 {vocabulary = 3 : i64} : tensor<3x4xf32>, tensor<2xi64> -> tensor<2x4xf32>\n"
          "return %e : tensor<2x4xf32>\n}";
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  Expected<std::vector<Tensor>> inputs = inputsFor(module->lookupSymbol<func::FuncOp>("main"), "");
  ASSERT_TRUE(inputs.ok());
  for (int64_t id : inputs->front().ints)
    EXPECT_TRUE(id >= 0 && id < 3);
}

} // namespace
} // namespace hpc
