// Random programs on two axes of two ranks: elimination against all strategies of all ops.
#include "BruteForce.h"
#include "passes/Phases.h"
#include "passes/Propagate/Passes.h"
#include "passes/Search/Elimination.h"
#include "passes/Search/LayoutGraph.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <random>

using namespace hpc;
using namespace hpc::search;

/// Up to `most` products with weights, and relus, sums and biases between them.
static std::string randomProgram(std::mt19937 &random, int most) {
  auto upTo = [&](int limit) { return std::uniform_int_distribution<int>(0, limit)(random); };
  const int rows = 4, width = 4;
  std::string activations = "tensor<" + std::to_string(rows) + "x" + std::to_string(width) + "xf32>";
  std::string weight = "tensor<" + std::to_string(width) + "x" + std::to_string(width) + "xf32>";
  std::string text = "module attributes {dist.mesh = #dist.mesh<\"y=2:tensor, z=2:tensor\">} {\nfunc.func @main(%v0: " + activations + ") -> " + activations + " {\n";
  int values = 1, products = 1 + upTo(most - 1);
  auto value = [&] { return "%v" + std::to_string(upTo(values - 1)); };
  for (int product = 0; product < products; ++product) {
    std::string number = std::to_string(product);
    text += "%w" + number + " = nn.parameter \"w" + number + "\" stored <file = \"w\", bytes = 64, hashes = [1]> : " + weight + "\n";
    text += "%v" + std::to_string(values) + " = nn.matmul " + value() + ", %w" + number + " : " + activations + ", " + weight + " -> " + activations + "\n";
    ++values;
    if (upTo(1)) {
      text += "%v" + std::to_string(values) + " = nn.relu %v" + std::to_string(values - 1) + " : " + activations + " -> " + activations + "\n";
      ++values;
    }
    if (upTo(1)) {
      std::string left = value(), right = value();
      text += "%v" + std::to_string(values++) + " = nn.add " + left + ", " + right + " : " + activations + ", " + activations + " -> " + activations + "\n";
    }
  }
  return text + "return %v" + std::to_string(values - 1) + " : " + activations + "\n}\n}\n";
}

TEST(LayoutGraph, EqualsAllStrategiesOfRandomPrograms) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  int cut = 0;
  for (int seed = 0; seed < 100; ++seed) {
    std::mt19937 random{unsigned(seed)};
    std::string text = randomProgram(random, 4);
    OwningOpRef<ModuleOp> module = mlir::parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    PassManager passes(&context);
    passes.addPass(createPropagateShardings());
    ASSERT_TRUE(succeeded(passes.run(*module))) << text;
    cost::Machine machine;
    machine.products = {{DType::F32, 1e9 * double(1 + seed % 3), {}}};
    machine.bytesPerSecond = 1e9;
    machine.links = {{0, 1e-9 * double(seed % 5), 1e9}};
    LayoutCosts costs(dist::meshOf(*module), machine);
    LayoutGraph graph(module->lookupSymbol<func::FuncOp>("main"), costs, {"y", "z"});
    Expected<LayoutProblem::Solution> found = solveByElimination(graph.problem());
    ASSERT_TRUE(found.ok()) << found.status().message() << text;
    ASSERT_TRUE(graph.problem().verify(*found).ok());
    EXPECT_FALSE(solveByBruteForce(graph.problem(), found->seconds * (1 - 1e-9)).has_value()) << text; // none is better
    cut += found->seconds > 0;
  }
  EXPECT_GT(cut, 90);
}
