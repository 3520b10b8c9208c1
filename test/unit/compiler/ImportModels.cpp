// Real exports, imported and run in the interpreter in double precision, against their known results; and what folding
// leaves of them. Files of ../shared are other exporters' spellings of the same models; they are skipped where the
// folder is missing.
#include "test/unit/compiler/ImportFixture.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Location.h"

namespace hpc {
namespace {

struct ModelCase {
  std::string model;         ///< below models/ or ../shared/models/
  std::string data;          ///< folder of inputs and expected results, below models/
  int set;                   ///< number of the input set
  std::vector<int64_t> dims; ///< of the first input
  std::string key;           ///< array of expected_N.npz; "" = the result's name
};

std::string findModel(const std::string &model) {
  for (const char *folder : {"models/", "../shared/models/"})
    if (std::string path = sourcePath(folder + model); llvm::sys::fs::exists(path))
      return path;
  return {};
}

class ImportModel : public testing::TestWithParam<ModelCase> {};

TEST_P(ImportModel, EqualsExpected) {
  const ModelCase &model = GetParam();
  std::string path = findModel(model.model);
  if (path.empty())
    GTEST_SKIP() << "no ../shared/models";
  ImportOptions options;
  options.inference = model.model.find("dropout") != std::string::npos; // exported in training mode
  bool mlp = model.data == "mlp", decoder = model.data == "decoder";
  options.dims[mlp || decoder ? "batch" : "batch_size"] = model.dims[0];
  if (!mlp)
    options.dims[decoder ? "time" : "sequence_length"] = model.dims[1];
  MLIRContext context;
  Expected<OwningOpRef<ModuleOp>> module = importOnnx(path, options, &context);
  ASSERT_TRUE(module.ok()) << module.status().text();
  std::string base = sourcePath("models/" + model.data), number = std::to_string(model.set);
  Expected<NamedArrays> inputs = readNpz(base + "/inputs_" + number + ".npz");
  Expected<NamedArrays> golden = readNpz(base + "/expected_" + number + ".npz");
  ASSERT_TRUE(inputs.ok() && golden.ok());
  Expected<std::vector<Tensor>> results = runImported(**module, *inputs, /*doublePrecision=*/true);
  ASSERT_TRUE(results.ok()) << results.status().text();
  std::string name = nn::resultPort(mainOf(**module), 0).name;
  const Array *array = findArray(*golden, model.key.empty() ? name : model.key);
  ASSERT_TRUE(array);
  Tensor expected = tensorFromArray(*array);
  const Tensor &actual = results->front();
  ASSERT_EQ(actual.shape, expected.shape);
  // A padded query attends to nothing or to everything, by exporter: compare where the mask is 1.
  const Array *mask = model.key.empty() ? nullptr : findArray(*inputs, "attention_mask");
  int64_t width = expected.shape.back();
  double largest = 0, difference = 0;
  for (int64_t at = 0; at < expected.size(); ++at) {
    if (mask && mask->as<int64_t>()[at / width] == 0)
      continue;
    largest = std::max(largest, std::fabs(expected.number(at)));
    double here = std::fabs(actual.number(at) - expected.number(at));
    ASSERT_FALSE(std::isnan(here)) << at;
    difference = std::max(difference, here);
  }
  EXPECT_LT(difference / largest, 2e-7); // the golden numbers are rounded to float32 once
}

std::vector<ModelCase> modelCases() {
  std::vector<ModelCase> cases = {{"mlp/dynamo-op18.onnx", "mlp", 0, {6}, ""},
                                  {"decoder/model.onnx", "decoder", 0, {2, 9}, ""},
                                  {"decoder/model.onnx", "decoder", 1, {3, 17}, ""},
                                  {"decoder/model.onnx", "decoder", 2, {1, 24}, ""}};
  for (auto [folder, positions] : {std::pair("gpt2-tiny", 64), std::pair("gpt2-odd", 48)}) {
    std::string base = std::string(folder) + "/";
    cases.push_back({base + "dynamo-eager-op18.onnx", folder, 0, {2, 16}, ""});
    cases.push_back({base + "dynamo-eager-op18.onnx", folder, 1, {4, 33}, ""});
    cases.push_back({base + "dynamo-eager-op18.onnx", folder, 2, {1, positions}, ""});
    for (const char *file : {"dynamo-eager-op20", "dynamo-sdpa-op18", "dynamo-sdpa-op23", "torchscript-op13",
                             "torchscript-op17", "torchscript-op17-dropout"})
      cases.push_back({base + file + ".onnx", folder, 1, {4, 33}, ""});
    for (const char *file : {"dynamo-eager-op18-mask", "dynamo-sdpa-op23-mask", "torchscript-op14-mask"})
      cases.push_back({base + file + ".onnx", folder, 1, {4, 33}, "masked_logits"});
  }
  return cases;
}

std::string modelName(const testing::TestParamInfo<ModelCase> &info) {
  std::string name = info.param.model + "_" + std::to_string(info.param.set);
  for (char &c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}
void PrintTo(const ModelCase &model, std::ostream *stream) { *stream << model.model; }
INSTANTIATE_TEST_SUITE_P(Real, ImportModel, testing::ValuesIn(modelCases()), modelName);

class ImportOdd : public testing::Test {
protected:
  void SetUp() override {
    options.dims = {{"batch_size", 4}, {"sequence_length", 33}};
    auto imported = importOnnx(sourcePath("models/gpt2-odd/dynamo-eager-op18.onnx"), options, &context);
    ASSERT_TRUE(imported.ok()) << imported.status().text();
    module = std::move(*imported);
  }
  MLIRContext context;
  ImportOptions options;
  OwningOpRef<ModuleOp> module;
};

/// The exporter's chain of CumSum, GatherND and Equal is shapes only: nothing of it may stay.
TEST_F(ImportOdd, FoldsTheMaskChain) {
  for (const char *op :
       {"nn.cumsum", "nn.gather_nd", "nn.gather", "nn.and", "nn.or", "nn.cast", "nn.broadcast", "nn.concat"})
    EXPECT_EQ(countOps(*module, op), 0) << op;
  EXPECT_EQ(countOps(*module, "nn.embedding"), 1);
  module->walk([](nn::ConstantOp op) {
    EXPECT_EQ(nn::tensorType(op.getResult()).getNumElements(), 1) << nodeName(op.getLoc());
  });
}

/// Every mask is a comparison of row and column numbers: j <= i.
TEST_F(ImportOdd, MasksAreCausal) {
  int64_t masks = 0;
  module->walk([&](nn::CompareOp op) {
    ++masks;
    auto row = op.getLhs().getDefiningOp<nn::IotaOp>(), column = op.getRhs().getDefiningOp<nn::IotaOp>();
    ASSERT_TRUE(row && column && op.getPredicate() == nn::ComparePredicate::ge);
    EXPECT_EQ(row.getDim(), 2u);
    EXPECT_EQ(column.getDim(), 3u);
    EXPECT_EQ(row.getStart(), 0u);
    EXPECT_EQ(nn::shapeOf(row.getResult()), ArrayRef<int64_t>({1, 1, 33, 1}));
    EXPECT_EQ(nn::shapeOf(column.getResult()), ArrayRef<int64_t>({1, 1, 1, 33}));
  });
  EXPECT_EQ(masks, 4); // three boolean weights and the exporter's own chain
}

TEST_F(ImportOdd, NamesNodesModulesInputsAndResults) {
  func::FuncOp function = mainOf(*module);
  EXPECT_EQ(nn::argumentPort(function, 0).name, "input_ids");
  EXPECT_EQ(nn::argumentPort(function, 0).dims[1], "sequence_length");
  EXPECT_EQ(nn::resultPort(function, 0).name, "logits");
  bool found = false;
  module->walk([&](Operation *op) {
    if (op->getDialect() && op->getDialect()->getNamespace() == "nn")
      EXPECT_FALSE(nodeName(op->getLoc()).empty()) << op->getName().getStringRef().str();
    if (nodeName(op->getLoc()) == "node_matmul") {
      found = true;
      EXPECT_EQ(modulePath(op->getLoc()), "transformer.h.0.attn");
    }
  });
  EXPECT_TRUE(found);
}

/// One parameter per weight, where the file has it; the tied embedding has two users.
TEST_F(ImportOdd, WeightsAreReferences) {
  int64_t parameters = 0;
  module->walk([&](nn::ParameterOp op) {
    ++parameters;
    EXPECT_FALSE(op.getFile().empty());
    if (op.getName() == "lm_head.weight") {
      EXPECT_EQ(std::distance(op->user_begin(), op->user_end()), 2);
      EXPECT_EQ(op.getBytes(), 503 * 40 * 4);
    }
  });
  EXPECT_EQ(parameters, 40);
  std::string list = listParameters(*module);
  EXPECT_NE(
      list.find(
          "lm_head.weight\n  shape   [503, 40] f32, 80480 bytes\n  alias   lm_head\n  alias   transformer.wte\n"
          "  used by node_embedding (nn.embedding) in transformer.wte\n  used by node_linear (nn.matmul) in lm_head\n"),
      std::string::npos)
      << list;
}

TEST_F(ImportOdd, IsDeterministic) {
  auto print = [](ModuleOp op) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    op.print(stream, OpPrintingFlags().enableDebugInfo());
    return text;
  };
  MLIRContext other;
  auto again = importOnnx(sourcePath("models/gpt2-odd/dynamo-eager-op18.onnx"), options, &other);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(print(*module), print(**again));
}

} // namespace
} // namespace hpc
