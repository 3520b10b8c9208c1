// Files, numbers and phases.
#include "test/unit/passes/ExecPrograms.h"

#include "compiler/ElementType.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hpc::test {

std::vector<std::string> execPrograms(StringRef word) {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(HPC_SOURCE_DIR "/test/exec")) {
    if (entry.path().extension() != ".mlir")
      continue;
    std::ifstream file(entry.path());
    std::string text((std::istreambuf_iterator<char>(file)), {});
    if (StringRef(text).contains(word))
      files.push_back(entry.path().string());
  }
  llvm::sort(files);
  return files;
}

std::string execProgramName(const testing::TestParamInfo<std::string> &file) {
  std::string stem = std::filesystem::path(file.param).stem().string();
  std::replace(stem.begin(), stem.end(), '-', '_');
  return stem;
}

Tensor draw(StringRef name, DType dtype, ArrayRef<int64_t> shape) {
  Tensor tensor(dtype, shape);
  uint64_t state = 88172645463325252; // xorshift64, Marsaglia 2003
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

std::string difference(const Tensor &expected, const Tensor &actual, double tolerance) {
  if (expected.shape != actual.shape || expected.dtype != actual.dtype)
    return "another shape or type";
  for (int64_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(expected.number(i) - actual.number(i)) <= tolerance * (1 + std::fabs(expected.number(i)))))
      return "element " + std::to_string(i) + " is " + std::to_string(actual.number(i)) + ", serially " +
             std::to_string(expected.number(i));
  return "";
}

ExecProgramTest::ExecProgramTest() {
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry);
  context->allowUnregisteredDialects(); // for `exec.meshes`
  context->disableMultithreading();
}

OwningOpRef<ModuleOp> ExecProgramTest::parse() {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(GetParam(), context.get());
  auto text = module ? (*module)->getAttrOfType<StringAttr>("exec.passes") : StringAttr();
  if (!text)
    return module;
  [[maybe_unused]] static const bool areRegistered = (registerPasses(), true);
  PassManager passes(context.get(), ModuleOp::getOperationName());
  if (failed(parsePassPipeline(text.getValue(), passes)) || failed(passes.run(*module)))
    return {};
  return module;
}

/// "pp=2 chunks=2 split=1,3 schedule=gpipe"
static Options parsePipeline(StringRef text) {
  Options options;
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, false);
  for (StringRef word : words) {
    auto [key, value] = word.split('=');
    int64_t number = 0;
    bool isNumber = !value.getAsInteger(10, number);
    if (key == "pp" && isNumber)
      options.degrees = dist::degreesOf({{"pp", number}});
    else if (key == "chunks" && isNumber)
      options.ppChunks = number;
    else if (key == "split")
      options.ppSplit = value.str();
    else if (key == "schedule")
      options.ppSchedule = value.str();
    else if (key == "recompute")
      options.recompute = value.str();
    else if (key == "panels")
      options.panels = true;
    else
      ADD_FAILURE() << "exec.pipelines: '" << word.str() << "' is none of pp, chunks, split, schedule, recompute, panels";
  }
  return options;
}

static std::vector<std::string> textsOf(ModuleOp module, StringRef name) {
  std::vector<std::string> result;
  if (auto texts = module->getAttrOfType<ArrayAttr>(name))
    for (StringRef text : texts.getAsValueRange<StringAttr>())
      result.push_back(text.str());
  return result;
}

std::vector<Layout> ExecProgramTest::layoutsOf(ModuleOp module, size_t part) {
  std::vector<std::string> pipelines = textsOf(module, "exec.pipelines");
  if (pipelines.empty())
    pipelines.push_back("pp=1");
  std::vector<std::string> meshes = textsOf(module, "exec.meshes");
  std::vector<Layout> layouts;
  const bool isSample = meshes.size() * pipelines.size() > 20 && !std::getenv("HPC_TEST_ALL");
  for (size_t i = 0; i < meshes.size(); ++i)
    for (size_t j = 0; j < pipelines.size(); ++j)
      if (!isSample || (i + j) % 8 == part)
        layouts.push_back({meshes[i] + ", " + pipelines[j], *dist::parseMesh(meshes[i]), parsePipeline(pipelines[j])});
  return layouts;
}

std::vector<std::vector<Tensor>> ExecProgramTest::drawInputs(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  auto steps = module->getAttrOfType<IntegerAttr>("exec.steps");
  std::vector<std::vector<Tensor>> inputs(steps ? size_t(steps.getInt()) : 1);
  for (size_t step = 0; step < inputs.size(); ++step)
    for (BlockArgument argument : main.getArguments()) {
      nn::ArgumentPort port = nn::argumentPort(main, argument.getArgNumber());
      if (port.isState())
        continue;
      std::string name = "input" + std::to_string(argument.getArgNumber());
      if (step)
        name += " of step " + std::to_string(step);
      inputs[step].push_back(draw(name, dtypeOf(argument.getType()), nn::shapeOf(argument)));
      if (port.stepScalar == "step" || port.stepScalar == "update")
        inputs[step].back().floats[0] = double(step + 1);
      else if (port.largest) // three places further, round and round
        inputs[step].back().ints[0] = int64_t(step) * 3 % (*port.largest + 1);
      else if (!port.stepScalar.empty()) // steps so small that they do not blow up what f32 rounds
        inputs[step].back().floats[0] = 0.05 + 0.01 * double(step);
    }
  return inputs;
}

void ExecProgramTest::runPhases(ModuleOp module, const Layout &layout,
                                llvm::function_ref<bool(StringRef phase)> after) {
  module->setAttr(dist::meshAttrName, dist::MeshAttr::get(context.get(), layout.mesh));
  for (const Phase &phase : phases()) {
    if (phase.name == "raise" || phase.name == "train" || phase.name == "generate" || phase.name == "annotate")
      continue;
    PassManager passes(context.get());
    phase.build(passes, layout.options);
    ASSERT_TRUE(succeeded(passes.run(module))) << layout.text << ": phase " << phase.name.str();
    if (!after(phase.name))
      return;
  }
}

} // namespace hpc::test
