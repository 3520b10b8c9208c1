// Every program of test/exec, run serially and, after each phase, on all ranks of each of its meshes: the results must
// be equal. A program is a serial @main with seeds; `exec.meshes` lists the meshes, `exec.steps` says how often it runs, each
// step on what the one before wrote. Inputs and weights are drawn from their names.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interpreter/Steps.h"
#include "passes/Phases.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <cmath>
#include <filesystem>

using namespace hpc;

namespace {

/// Numbers in [-1, 1], integers in [-5, 5] (as ids: negative ones too), the same for the same name.
Tensor draw(StringRef name, DType dtype, ArrayRef<int64_t> shape) {
  Tensor tensor(dtype, shape);
  uint64_t state = 88172645463325252;
  for (char c : name)
    state = state * 1099511628211u + uint8_t(c);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double unit = double(state >> 11) * 0x1p-52 - 1;
    tensor.setNumber(i, dtype == DType::Bool ? double(unit > 0) : tensor.isFloat() ? unit : std::round(5 * unit));
  }
  round(tensor);
  return tensor;
}

RunOptions runOptions() {
  RunOptions options;
  options.doublePrecision = true; // what is left are different orders of summation
  options.parameters = [](nn::ParameterOp op, ArrayRef<int64_t> shape) -> Expected<Tensor> {
    if (op.getValue())
      return tensorFromAttr(*op.getValue());
    return draw(op.getName(), DType::F32, shape);
  };
  return options;
}

std::string difference(const Tensor &expected, const Tensor &actual) {
  if (expected.shape != actual.shape || expected.dtype != actual.dtype)
    return "another shape or type";
  double largest = 0;
  for (int64_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::fabs(expected.number(i)));
  for (int64_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(expected.number(i) - actual.number(i)) <= 1e-12 * (1 + largest)))
      return "element " + std::to_string(i) + " is " + std::to_string(actual.number(i)) + ", serially " +
             std::to_string(expected.number(i));
  return "";
}

/// What one step returns, and what lives on after it.
struct StepResult {
  std::vector<Tensor> outputs;
  KeptTensors kept;
};

struct ExecTest : testing::TestWithParam<std::string> {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::vector<std::vector<Tensor>> inputs; ///< by step

  ExecTest() {
    registerDialects(registry);
    context = std::make_unique<MLIRContext>(registry);
    context->allowUnregisteredDialects(); // for `exec.meshes`
  }

  OwningOpRef<ModuleOp> parse() { return parseSourceFile<ModuleOp>(GetParam(), context.get()); }

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
        EXPECT_EQ(difference(expected[step].outputs[i], (*results)[step].outputs[i]), "") << where << ", output " << i;
      ASSERT_EQ((*results)[step].kept.size(), expected[step].kept.size()) << where;
      for (const auto &[name, tensor] : expected[step].kept)
        EXPECT_EQ(difference(tensor, (*results)[step].kept[name]), "") << where << ", " << name;
    }
  }

  void drawInputs(ModuleOp module) {
    auto main = module.lookupSymbol<func::FuncOp>("main");
    auto steps = module->getAttrOfType<IntegerAttr>("exec.steps");
    for (int64_t step = 0; step < (steps ? steps.getInt() : 1); ++step) {
      inputs.emplace_back();
      for (BlockArgument argument : main.getArguments()) {
        if (nn::argumentPort(main, argument.getArgNumber()).isState())
          continue;
        auto type = cast<RankedTensorType>(argument.getType());
        DType dtype = type.getElementType().isF32()        ? DType::F32
                      : type.getElementType().isInteger(1) ? DType::Bool
                                                           : DType::I64;
        std::string name = "input" + std::to_string(argument.getArgNumber());
        inputs.back().push_back(draw(step ? name + " of step " + std::to_string(step) : name, dtype, type.getShape()));
      }
    }
  }
};

TEST_P(ExecTest, partitionedEqualsSerial) {
  OwningOpRef<ModuleOp> serial = parse();
  ASSERT_TRUE(serial) << GetParam();
  drawInputs(*serial);
  auto expected = run(*serial, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status().text();
  auto meshes = serial->getOperation()->getAttrOfType<ArrayAttr>("exec.meshes");
  ASSERT_TRUE(meshes && !meshes.empty()) << GetParam() << " lists no meshes";

  for (StringAttr meshText : meshes.getAsRange<StringAttr>()) {
    dist::Mesh mesh = *dist::parseMesh(meshText.str());
    OwningOpRef<ModuleOp> module = parse();
    (*module)->setAttr(dist::meshAttrName, dist::MeshAttr::get(context.get(), mesh));
    for (const Phase &phase : phases()) {
      if (phase.name == "raise" || phase.name == "annotate")
        continue; // the programs are seeded by hand
      PassManager passes(context.get());
      phase.build(passes, Options());
      std::string what = meshText.str() + " after " + phase.name.str();
      ASSERT_TRUE(succeeded(passes.run(*module))) << what;
      compare(*module, *expected, phase.name == "propagate" ? nullptr : &mesh, what);
      if (HasFailure()) {
        module->dump();
        return;
      }
    }
  }
}

std::vector<std::string> programs() {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(HPC_SOURCE_DIR "/test/exec"))
    if (entry.path().extension() == ".mlir")
      files.push_back(entry.path().string());
  llvm::sort(files);
  return files;
}
std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string stem = std::filesystem::path(info.param).stem().string();
  std::replace(stem.begin(), stem.end(), '-', '_');
  return stem;
}
INSTANTIATE_TEST_SUITE_P(Programs, ExecTest, testing::ValuesIn(programs()), testName);

} // namespace
