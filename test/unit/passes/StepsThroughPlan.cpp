// The programs of test/exec that run several steps, compiled to a plan and run by threads: each step returns what the serial
// one does. Session buffers keep what a step wrote, accumulators add up micro-batches; memory starts poisoned.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Interpreter/Steps.h"
#include "passes/Lower/Lower.h"
#include "passes/Phases.h"
#include "passes/Place/Place.h"
#include "runtime/backend/host/HostBackend.h"
#include "runtime/core/Session.h"
#include "runtime/plan/PlanCheck.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

using namespace hpc;

namespace {

Tensor draw(unsigned seed, ArrayRef<int64_t> shape) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> real(-1, 1);
  Tensor tensor(DType::F32, shape);
  for (double &value : tensor.floats)
    value = real(generator);
  return tensor;
}

struct StepsThroughPlan : testing::TestWithParam<std::string> {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;

  StepsThroughPlan() {
    registerDialects(registry);
    context = std::make_unique<MLIRContext>(registry);
    context->allowUnregisteredDialects(); // for `exec.meshes`
    context->disableMultithreading();
  }

  /// The program with the numbers of its weights in it.
  OwningOpRef<ModuleOp> parse() {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(GetParam(), context.get());
    if (module)
      module->walk([&](nn::ParameterOp op) {
        Tensor numbers = draw(unsigned(op.getName().size()), nn::shapeOf(op.getResult()));
        op.setFile("");
        op.setBytes(0);
        op.setHashes({});
        op.setValueAttr(tensorToAttr(numbers, context.get()));
      });
    return module;
  }

  Expected<plan::Plan> compile(ModuleOp module, const dist::Mesh &mesh) {
    module->setAttr(dist::meshAttrName, dist::MeshAttr::get(context.get(), mesh));
    for (const Phase &phase : phases()) {
      if (phase.name == "raise" || phase.name == "annotate")
        continue; // seeded by hand
      PassManager passes(context.get());
      phase.build(passes, Options());
      if (failed(passes.run(module)))
        return Status::error(ErrorKind::Internal, "phase " + phase.name.str());
    }
    Expected<Lowered> lowered = lowerToPlan(module, {});
    if (!lowered.ok())
      return lowered.status();
    HPC_RETURN_IF_ERROR(placeBuffers(lowered->plan));
    HPC_RETURN_IF_ERROR(plan::checkPlan(lowered->plan));
    return std::move(lowered->plan);
  }
};

std::string difference(const Tensor &expected, const Tensor &actual) {
  if (expected.shape != actual.shape || expected.dtype != actual.dtype)
    return "another shape or type";
  for (int64_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(expected.number(i) - actual.number(i)) <= 2e-5 * (1 + std::fabs(expected.number(i)))))
      return "element " + std::to_string(i) + " is " + std::to_string(actual.number(i)) + ", serially " +
             std::to_string(expected.number(i));
  return "";
}

TEST_P(StepsThroughPlan, equalSerial) {
  OwningOpRef<ModuleOp> serial = parse();
  ASSERT_TRUE(serial);
  auto main = serial->lookupSymbol<func::FuncOp>("main");
  auto steps = serial->getOperation()->getAttrOfType<IntegerAttr>("exec.steps");
  std::vector<std::vector<Tensor>> inputs, expected;
  KeptTensors kept;
  for (int64_t step = 0; step < steps.getInt(); ++step) {
    inputs.emplace_back();
    for (BlockArgument argument : main.getArguments()) {
      nn::ArgumentPort port = nn::argumentPort(main, argument.getArgNumber());
      if (port.isState())
        continue;
      inputs.back().push_back(draw(unsigned(100 * step + argument.getArgNumber()), nn::shapeOf(argument)));
      if (!port.stepScalar.empty()) // steps so small that they do not blow up what f32 rounds
        inputs.back().back().floats[0] = 0.05 + 0.01 * double(step);
    }
    Expected<std::vector<Tensor>> outputs = runStep(main, inputs.back(), kept, nullptr);
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    expected.push_back(std::move(*outputs));
  }
  for (auto meshText : serial->getOperation()->getAttrOfType<ArrayAttr>("exec.meshes").getAsRange<StringAttr>()) {
    OwningOpRef<ModuleOp> module = parse();
    Expected<plan::Plan> plan = compile(*module, *dist::parseMesh(meshText.str()));
    ASSERT_TRUE(plan.ok()) << meshText.str() << ": " << plan.status().text();
    SessionOptions options;
    options.poison = true;
    Expected<std::unique_ptr<Session>> session = Session::create(*plan, host::createHostBackend(), options);
    ASSERT_TRUE(session.ok()) << meshText.str() << ": " << session.status().text();
    for (size_t step = 0; step < inputs.size(); ++step) {
      std::vector<Array> arrays;
      for (const Tensor &input : inputs[step])
        arrays.push_back(tensorToArray(input));
      Expected<std::vector<Array>> outputs = (*session)->run(arrays);
      ASSERT_TRUE(outputs.ok()) << meshText.str() << ": " << outputs.status().text();
      ASSERT_EQ(outputs->size(), expected[step].size());
      for (size_t i = 0; i < outputs->size(); ++i)
        EXPECT_EQ(difference(expected[step][i], tensorFromArray((*outputs)[i])), "")
            << meshText.str() << ", step " << step << ", output " << i;
    }
  }
}

std::vector<std::string> programs() {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(HPC_SOURCE_DIR "/test/exec")) {
    if (entry.path().extension() != ".mlir")
      continue;
    std::ifstream file(entry.path());
    std::string text((std::istreambuf_iterator<char>(file)), {});
    if (text.find("exec.steps") != std::string::npos)
      files.push_back(entry.path().string());
  }
  llvm::sort(files);
  return files;
}
std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string stem = std::filesystem::path(info.param).stem().string();
  std::replace(stem.begin(), stem.end(), '-', '_');
  return stem;
}
INSTANTIATE_TEST_SUITE_P(Programs, StepsThroughPlan, testing::ValuesIn(programs()), testName);

} // namespace
