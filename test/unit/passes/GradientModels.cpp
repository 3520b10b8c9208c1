// Whole models: the slope of the loss along random directions through all parameters at once, against the gradients that
// hpc-build-gradients makes, in the interpreter's doubles. Real spellings of convolutions, pools, norms and attention pass.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Interpreter/Interpreter.h"
#include "passes/Phases.h"
#include "passes/Train/Passes.h"
#include "test/unit/passes/ExecPrograms.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>

using namespace hpc;
using namespace hpc::test;

namespace {

struct Model {
  std::string name, file;
  std::map<std::string, int64_t> dims;
  size_t parameters; ///< that have a gradient
};

void PrintTo(const Model &model, std::ostream *out) { *out << model.name; }

struct GradientModels : testing::TestWithParam<Model> {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::map<std::string, Tensor> parameters;
  std::vector<Tensor> inputs;

  GradientModels() {
    registerDialects(registry);
    context = std::make_unique<MLIRContext>(registry);
    context->loadAllAvailableDialects();
    context->disableMultithreading();
  }

  Expected<std::vector<Tensor>> run(ModuleOp module) {
    RunOptions options;
    options.doublePrecision = true;
    options.parameters = [&](nn::ParameterOp op, ArrayRef<int64_t> shape) -> Expected<Tensor> {
      auto found = parameters.find(op.getName().str());
      if (found == parameters.end()) {
        Expected<Tensor> read = fromFiles(op, shape);
        if (!read.ok())
          return read;
        found = parameters.emplace(op.getName().str(), std::move(*read)).first;
      }
      return found->second;
    };
    return runFunction(module.lookupSymbol<func::FuncOp>("main"), inputs, options);
  }

  void runPasses(ModuleOp module, bool withGradients) {
    PassManager passes(context.get());
    passes.addPass(createAppendLoss());
    if (withGradients)
      passes.addPass(createBuildGradients());
    passes.addPass(createVerifyTrain());
    ASSERT_TRUE(succeeded(passes.run(module)));
  }

  /// Ids and labels are small; labels also say that some are ignored.
  void drawInputs(func::FuncOp main) {
    for (BlockArgument argument : main.getArguments()) {
      std::string name = nn::argumentPort(main, argument.getArgNumber()).name;
      Tensor tensor = draw(name, dtypeOf(argument.getType()), nn::shapeOf(argument));
      for (int64_t &number : tensor.ints)
        number = number == 5 && name == "labels" ? -100 : std::abs(number);
      inputs.push_back(std::move(tensor));
    }
  }

  ParameterLoader fromFiles = parametersFromFiles(".");
};

// A derivative that is right op by op may be put together wrongly: a use forgotten, a factor lost, a wrong input.
TEST_P(GradientModels, EqualSlopes) {
  ImportOptions options;
  options.dims = GetParam().dims;
  Expected<OwningOpRef<ModuleOp>> imported =
      importOnnx(HPC_SOURCE_DIR "/models/" + GetParam().file, options, context.get());
  ASSERT_TRUE(imported.ok()) << imported.status().text();
  auto nothing = [](StringRef) { return success(); };
  ASSERT_TRUE(succeeded(runPhases(**imported, Options(), "raise", nothing, [](PassManager &) {})));
  OwningOpRef<ModuleOp> step = (*imported)->clone(), loss = (*imported)->clone();
  runPasses(*step, true);
  runPasses(*loss, false);
  auto main = step->lookupSymbol<func::FuncOp>("main");
  drawInputs(main);
  auto results = run(*step);
  ASSERT_TRUE(results.ok()) << results.status().text();
  const std::map<std::string, Tensor> there = parameters;
  size_t gradients = 0;
  for (unsigned index = 0; index < main.getNumResults(); ++index)
    gradients += !nn::resultPort(main, index).gradient.empty();
  EXPECT_EQ(gradients, GetParam().parameters);
  ASSERT_TRUE(std::isfinite(results->front().floats[0]));
  const double h = 1e-6;
  for (int direction = 0; direction < 3; ++direction) {
    double expected = 0, losses[2];
    std::map<std::string, Tensor> along;
    for (unsigned index = 0; index < main.getNumResults(); ++index)
      if (std::string name = nn::resultPort(main, index).gradient; !name.empty()) {
        Tensor &tensor = along[name] = draw(name + std::to_string(direction), DType::F32, there.at(name).shape);
        for (int64_t i = 0; i < tensor.size(); ++i)
          expected += tensor.floats[i] * (*results)[index].floats[i];
      }
    for (int side : {0, 1}) {
      parameters = there;
      for (auto &[name, tensor] : along)
        for (int64_t i = 0; i < tensor.size(); ++i)
          parameters.at(name).floats[i] += (side ? h : -h) * tensor.floats[i];
      auto moved = run(*loss);
      ASSERT_TRUE(moved.ok()) << moved.status().text();
      losses[side] = moved->front().floats[0];
    }
    double slope = (losses[1] - losses[0]) / (2 * h);
    EXPECT_NEAR(expected, slope, 1e-6 * (1 + std::fabs(slope))) << "direction " << direction;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, GradientModels,
    testing::Values(Model{"gpt2_tiny", "gpt2-tiny/dynamo-eager-op18.onnx", {{"batch_size", 2}, {"sequence_length", 5}}, 52},
                    Model{"gpt2_odd", "gpt2-odd/dynamo-eager-op18.onnx", {{"batch_size", 3}, {"sequence_length", 4}}, 40},
                    Model{"decoder", "decoder/model.onnx", {{"batch", 2}, {"time", 5}}, 32},
                    Model{"mlp", "mlp/dynamo-op18.onnx", {{"batch", 3}}, 6},
                    Model{"resnet", "resnet/model.onnx", {{"batch", 2}}, 37},
                    Model{"vit", "vit/model.onnx", {{"batch", 2}}, 44}),
    [](const testing::TestParamInfo<Model> &info) { return info.param.name; });

} // namespace
