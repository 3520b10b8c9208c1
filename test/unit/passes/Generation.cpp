// A step that phase generate derives, run position by position with its states, gives the logits of the whole forward pass: in double
// precision, for chunks of several sizes, every row of a chunk, and a prompt whose last chunk is padded.
#include "compiler/ElementType.h"
#include "compiler/Import/OnnxImporter.h"
#include "runtime/plan/GenerationPorts.h"
#include "test/unit/passes/ExecPrograms.h"


#include <filesystem>

namespace hpc::test {
namespace {

struct Case {
  const char *name, *file; ///< below models/, or below the folder of shared models
  std::map<std::string, int64_t> dims;
  int64_t length;
};

struct Generation : testing::TestWithParam<Case> {
  Generation() {
    registerDialects(registry);
    context = std::make_unique<MLIRContext>(registry);
    context->disableMultithreading();
    context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return success();
    });
    run.doublePrecision = true;
  }

  /// The program of @main after the last phase named, of steps of `rows` positions.
  func::FuncOp compile(int64_t rows, StringRef last, const std::string &dtype = "model") {
    Options options;
    options.dtype = dtype;
    options.maxLength = GetParam().length;
    options.stepRows = rows;
    OwningOpRef<ModuleOp> &module = modules.emplace_back(imported->clone());
    auto nothing = [](StringRef) { return success(); };
    const bool isMade = succeeded(runPhases(*module, options, last, nothing, [](PassManager &) {}));
    EXPECT_TRUE(isMade) << said;
    return isMade ? module->lookupSymbol<func::FuncOp>("main") : func::FuncOp();
  }

  /// What a step takes: columns first, first + 1, ... of the ids, 0 past their end.
  std::vector<Tensor> inputsOf(func::FuncOp step, const Tensor &ids, int64_t first, int64_t row) const {
    std::vector<Tensor> inputs;
    for (unsigned index = 0; index < step.getNumArguments(); ++index) {
      nn::ArgumentPort port = nn::argumentPort(step, index);
      if (port.isState())
        continue;
      Tensor &input = inputs.emplace_back(dtypeOf(step.getArgumentTypes()[index]), nn::shapeOf(step.getArgument(index)));
      if (!port.stepScalar.empty()) {
        input.ints[0] = port.stepScalar == plan::positionName ? first : row;
        continue;
      }
      for (int64_t at = 0; at < input.size(); ++at)
        if (int64_t column = first + at % input.shape[1]; column < ids.shape[1])
          input.ints[at] = ids.ints[at / input.shape[1] * ids.shape[1] + column];
    }
    return inputs;
  }

  /// The largest difference of a step's logits from a column of those of whole sequences.
  static double distance(const Tensor &logits, const Tensor &whole, int64_t column) {
    const int64_t columns = whole.shape[1], vocabulary = whole.shape[2];
    double largest = logits.shape == std::vector<int64_t>{whole.shape[0], 1, vocabulary} ? 0 : INFINITY;
    for (int64_t at = 0; at < logits.size() && largest < INFINITY; ++at) {
      double expected = whole.floats[(at / vocabulary * columns + column) * vocabulary + at % vocabulary];
      double error = std::fabs(logits.floats[at] - expected) / (1 + std::fabs(expected));
      largest = error <= largest ? largest : error; // NaN is largest
    }
    return largest;
  }

  void SetUp() override {
    std::string path = HPC_SOURCE_DIR "/models/" + std::string(GetParam().file);
    if (!std::filesystem::exists(path))
      path = HPC_SOURCE_DIR "/../shared/models/" + std::string(GetParam().file);
    if (!std::filesystem::exists(path))
      GTEST_SKIP() << path << " is not there";
    ImportOptions import;
    import.dims = GetParam().dims;
    import.inference = true;
    import.sequenceLength = GetParam().length;
    Expected<OwningOpRef<ModuleOp>> made = importOnnx(path, import, context.get());
    ASSERT_TRUE(made.ok()) << made.status().text();
    imported = std::move(*made);
    // The forward pass, raised: what generate begins with.
    func::FuncOp whole = compile(1, "raise");
    ASSERT_TRUE(whole);
    ASSERT_EQ(nn::shapeOf(whole.getArgument(0))[1], GetParam().length);
    ids = draw("ids", DType::I64, nn::shapeOf(whole.getArgument(0)));
    for (int64_t &id : ids.ints)
      id = std::abs(id);
    Expected<std::vector<Tensor>> results = runFunction(whole, {ids}, run);
    ASSERT_TRUE(results.ok()) << results.status().text();
    logits = (*results)[0];
  }

  std::string said;
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> imported;
  std::vector<OwningOpRef<ModuleOp>> modules;
  RunOptions run;
  Tensor ids, logits;
};

constexpr double bound = 1e-12;

// Fails if a position, a table, a mask or a rotation does not move with the step, or a state is written elsewhere.
TEST_P(Generation, StepsGiveTheLogitsOfTheWhole) {
  const int64_t length = GetParam().length;
  for (int64_t rows : {int64_t(1), int64_t(4), length / 2, length}) {
    func::FuncOp step = compile(rows, "generate");
    ASSERT_TRUE(step) << rows;
    KeptTensors kept;
    for (int64_t first = 0; first < length; first += rows)
      for (int64_t row = 0; row < rows; ++row) {
        Expected<std::vector<Tensor>> results = runStep(step, inputsOf(step, ids, first, row), kept, nullptr, run);
        ASSERT_TRUE(results.ok()) << results.status().text();
        ASSERT_LE(distance((*results)[0], logits, first + row), bound) << "steps of " << rows << ", position " << first + row;
      }
  }
}

// A prompt of 6 in chunks of 4, of which the last has two rows of padding, then one position at a time.
TEST_P(Generation, DecodingFollowsPaddedChunks) {
  const int64_t length = GetParam().length, prompt = 6;
  func::FuncOp prefill = compile(4, "generate"), decode = compile(1, "generate");
  ASSERT_TRUE(prefill && decode);
  Tensor padded = ids;
  for (int64_t at = 0; at < padded.size(); ++at)
    if (at % length >= prompt)
      padded.ints[at] = 7;
  KeptTensors kept;
  for (int64_t first : {0, 4}) {
    Expected<std::vector<Tensor>> results = runStep(prefill, inputsOf(prefill, padded, first, first ? 1 : 3), kept, nullptr, run);
    ASSERT_TRUE(results.ok()) << results.status().text();
    ASSERT_LE(distance((*results)[0], logits, first ? 5 : 3), bound);
  }
  for (int64_t position = prompt; position < length; ++position) {
    Expected<std::vector<Tensor>> results = runStep(decode, inputsOf(decode, ids, position, 0), kept, nullptr, run);
    ASSERT_TRUE(results.ok()) << results.status().text();
    ASSERT_LE(distance((*results)[0], logits, position), bound) << position;
  }
}

// Keys and values are rounded before they are held: no cast of a whole state is in a step.
TEST_P(Generation, StatesHaveTheTypeOfProducts) {
  func::FuncOp step = compile(1, "generate", "bf16");
  ASSERT_TRUE(step);
  unsigned states = 0;
  for (BlockArgument argument : step.getArguments())
    if (nn::argumentPort(step, argument.getArgNumber()).isState()) {
      ++states;
      EXPECT_TRUE(nn::tensorType(argument).getElementType().isBF16());
      for (Operation *user : argument.getUsers())
        EXPECT_EQ(user->getName().getStringRef(), "nn.update_slice");
    }
  EXPECT_GT(states, 0u);
  for (nn::CastOp cast : step.front().getOps<nn::CastOp>())
    EXPECT_FALSE(cast.getOperand().getDefiningOp<nn::UpdateSliceOp>());
}

INSTANTIATE_TEST_SUITE_P(
    Models, Generation,
    testing::Values(Case{"gpt2_tiny", "gpt2-tiny/dynamo-eager-op18.onnx", {{"batch_size", 2}}, 16},
                    Case{"gpt2_odd", "gpt2-odd/dynamo-eager-op18.onnx", {{"batch_size", 3}}, 24},
                    Case{"decoder", "decoder/model.onnx", {{"batch", 2}}, 12},
                    Case{"mask", "gpt2-odd/dynamo-eager-op18-mask.onnx", {{"batch_size", 2}}, 16},
                    Case{"sdpa", "gpt2-odd/dynamo-sdpa-op23-mask.onnx", {{"batch_size", 2}}, 16},
                    Case{"torchscript", "gpt2-odd/torchscript-op14-mask.onnx", {{"batch_size", 2}}, 16},
                    Case{"past", "gpt2-odd/torchscript-op14-past.onnx", {{"batch_size", 2}}, 16}),
    [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

} // namespace
} // namespace hpc::test
