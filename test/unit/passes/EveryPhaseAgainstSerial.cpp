// Every program of test/exec, run serially and, after each phase, on all ranks of each of its meshes: the results must
// be equal. Inputs and weights are drawn from their names.
#include "test/unit/passes/ExecPrograms.h"

using namespace hpc;
using namespace hpc::test;

namespace {

/// In double: what is left are different orders of summation.
constexpr double tolerance = 1e-12;

RunOptions runOptions() {
  RunOptions options;
  options.doublePrecision = true;
  options.parameters = [](nn::ParameterOp op, ArrayRef<int64_t> shape) -> Expected<Tensor> {
    if (op.getValue())
      return tensorFromAttr(*op.getValue());
    return draw(op.getName(), DType::F32, shape);
  };
  return options;
}

/// What one step returns, and what lives on after it.
struct StepResult {
  std::vector<Tensor> outputs;
  KeptTensors kept;
};

struct ExecTest : ExecProgramTest {
  std::vector<std::vector<Tensor>> inputs; ///< by step

  /// All steps, serially or on all ranks.
  Expected<std::vector<StepResult>> run(ModuleOp module, const dist::Mesh *mesh) {
    auto main = module.lookupSymbol<func::FuncOp>("main");
    std::vector<StepResult> results;
    KeptTensors kept;
    for (const std::vector<Tensor> &step : inputs) {
      Expected<std::vector<Tensor>> outputs = runStep(main, step, kept, mesh, runOptions());
      if (!outputs.ok())
        return outputs.status();
      results.push_back({std::move(*outputs), kept});
    }
    return results;
  }

  void compare(ModuleOp module, const std::vector<StepResult> &expected, const dist::Mesh *mesh,
               const std::string &what) {
    Expected<std::vector<StepResult>> results = run(module, mesh);
    ASSERT_TRUE(results.ok()) << what << ": " << results.status().text();
    for (size_t step = 0; step < expected.size(); ++step) {
      std::string where = what + ", step " + std::to_string(step);
      ASSERT_EQ((*results)[step].outputs.size(), expected[step].outputs.size());
      for (size_t i = 0; i < expected[step].outputs.size(); ++i)
        EXPECT_EQ(difference(expected[step].outputs[i], (*results)[step].outputs[i], tolerance), "")
            << where << ", output " << i;
      ASSERT_EQ((*results)[step].kept.size(), expected[step].kept.size()) << where;
      for (const auto &[name, tensor] : expected[step].kept)
        EXPECT_EQ(difference(tensor, (*results)[step].kept[name], tolerance), "") << where << ", " << name;
    }
  }
};

TEST_P(ExecTest, partitionedEqualsSerial) {
  OwningOpRef<ModuleOp> serial = parse();
  ASSERT_TRUE(serial) << GetParam();
  inputs = drawInputs(*serial);
  auto expected = run(*serial, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status().text();
  ASSERT_FALSE(layoutsOf(*serial, 0).empty()) << GetParam() << " lists no meshes";

  for (const Layout &layout : layoutsOf(*serial, 0)) {
    OwningOpRef<ModuleOp> module = parse();
    runPhases(*module, layout, [&](StringRef phase) {
      compare(*module, *expected, phase == "propagate" ? nullptr : &layout.mesh, layout.text + " after " + phase.str());
      if (HasFailure())
        module->dump();
      return !HasFailure();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ExecTest, testing::ValuesIn(execPrograms()), execProgramName);

} // namespace
