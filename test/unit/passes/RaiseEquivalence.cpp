// Every program of test/passes/Raise, and every model at hand, means the same after its pass, and after the whole
// phase: interpreted in double precision on made-up inputs, some of which mask whole rows. So does every program in which
// one operand, number, attribute or op of those is another one: an idiom that only seems to be one is left alone.
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Interpreter/Interpreter.h"
#include "passes/Raise/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "gtest/gtest.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace hpc {
namespace {

std::string readText(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Normally distributed floats; integers 0, 1, 2; booleans of any mixture.
Tensor madeUp(RankedTensorType type, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  DType dtype = dtypeOf(type);
  Tensor tensor(dtype, type.getShape());
  for (double &number : tensor.floats)
    number = normal(random);
  for (int64_t &number : tensor.ints)
    number = int64_t(random() % (dtype == DType::Bool ? 2 : 3));
  return tensor;
}

/// Parameters by reference get made-up values instead of a file's.
Expected<Tensor> loadParameter(nn::ParameterOp op, ArrayRef<int64_t> shape) {
  if (std::optional<ElementsAttr> value = op.getValue())
    return tensorFromAttr(*value);
  return madeUp(RankedTensorType::get(shape, getElementTypeOrSelf(op.getType())), unsigned(op.getName().size()));
}

/// `masksRows`: masks [b, 1, 1, k], additive or boolean, hide all keys but the last of the first sequence (left
/// padding: its first queries see nothing) and all keys of the others.
std::vector<Tensor> inputsOf(func::FuncOp function, unsigned seed, bool masksRows) {
  std::vector<Tensor> inputs;
  for (Type type : function.getArgumentTypes()) {
    auto tensorType = cast<RankedTensorType>(type);
    inputs.push_back(madeUp(tensorType, seed++));
    if (nn::argumentPort(function, unsigned(inputs.size()) - 1).name == "attention_mask")
      for (int64_t &number : inputs.back().ints)
        number = number != 0;
    ArrayRef<int64_t> shape = tensorType.getShape();
    if (!masksRows || shape.size() != 4 || shape[1] != 1 || shape[2] != 1)
      continue;
    for (int64_t b = 0; b < shape[0]; ++b)
      for (int64_t j = 0; j < shape[3]; ++j)
        if (b > 0 || j + 1 < shape[3])
          inputs.back().setNumber(b * shape[3] + j, inputs.back().isFloat() ? -std::numeric_limits<float>::max() : 0);
  }
  return inputs;
}

/// "" or where two results differ.
std::string difference(const std::vector<Tensor> &expected, const std::vector<Tensor> &actual) {
  if (expected.size() != actual.size())
    return "another number of results";
  for (size_t r = 0; r < expected.size(); ++r) {
    if (expected[r].shape != actual[r].shape)
      return "another shape of result " + std::to_string(r);
    for (int64_t i = 0; i < expected[r].size(); ++i) {
      double a = expected[r].number(i), b = actual[r].number(i);
      // 1e-6: exporters' constants are those of float32.
      if (std::isnan(a) != std::isnan(b) || std::abs(a - b) > 1e-6 * std::max(1.0, std::abs(a)))
        return "result " + std::to_string(r) + " [" + std::to_string(i) + "]: " + std::to_string(a) + " became " +
               std::to_string(b);
    }
  }
  return "";
}

constexpr const char *phase = "hpc-simplify,hpc-raise-layer-norm,hpc-raise-gelu,hpc-raise-softmax,hpc-raise-cross-entropy,hpc-raise-linear,hpc-"
                              "split-products,hpc-raise-attention,hpc-simplify";

struct RaiseEquivalence : testing::TestWithParam<std::string> {
  MLIRContext context;
  RunOptions options;

  RaiseEquivalence() {
    context.loadDialect<nn::NNDialect, func::FuncDialect>();
    options.doublePrecision = true;
    options.parameters = loadParameter;
    static bool isRegistered = (registerRaisePasses(), true);
    (void)isRegistered;
  }

  void check(ModuleOp module, StringRef pipeline, const std::string &text, bool isChanged = false) {
    OwningOpRef<ModuleOp> raised(module.clone());
    PassManager passes(&context, "builtin.module");
    ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, passes)));
    ASSERT_TRUE(succeeded(passes.run(*raised))) << text;
    auto before = module.lookupSymbol<func::FuncOp>("main"), after = raised->lookupSymbol<func::FuncOp>("main");
    for (bool masksRows : {false, true}) {
      std::vector<Tensor> inputs = inputsOf(before, 1, masksRows);
      Expected<std::vector<Tensor>> expected = runFunction(before, inputs, options),
                                    actual = runFunction(after, inputs, options);
      if (isChanged && !expected.ok())
        return; // an index that names nothing
      ASSERT_TRUE(expected.ok()) << expected.status().text() << text;
      ASSERT_TRUE(actual.ok()) << actual.status().text() << text;
      EXPECT_EQ(difference(*expected, *actual), "") << pipeline.str() << (masksRows ? ", rows masked" : "") << text;
    }
  }
};

// ---- what only seems to be an idiom --------------------------------------------------------------

/// Another value of the same kind; null where there is none.
Attribute altered(Attribute attribute) {
  Builder b(attribute.getContext());
  if (auto kind = dyn_cast<nn::ReduceKindAttr>(attribute))
    return nn::ReduceKindAttr::get(b.getContext(), kind.getValue() == ReduceKind::Sum ? ReduceKind::Max : ReduceKind::Sum);
  if (auto predicate = dyn_cast<nn::ComparePredicateAttr>(attribute))
    return nn::ComparePredicateAttr::get(b.getContext(), *nn::symbolizeComparePredicate((uint32_t(predicate.getValue()) + 1) % 6));
  if (auto number = dyn_cast<FloatAttr>(attribute)) {
    double value = number.getValueAsDouble();
    return b.getFloatAttr(number.getType(), value < -1e3 ? -3 : value * 1.25 + 0.125);
  }
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return b.getIntegerAttr(number.getType(), number.getValue() + 1);
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute); numbers && !numbers.empty()) {
    SmallVector<int64_t> others(numbers.asArrayRef());
    if (others.size() == 1 || llvm::all_equal(others))
      others.back() += others.back() > 0 ? -1 : 1;
    else
      std::rotate(others.begin(), others.begin() + 1, others.end());
    return b.getDenseI64ArrayAttr(others);
  }
  if (auto elements = dyn_cast<DenseElementsAttr>(attribute); elements && elements.getNumElements() > 0) {
    auto first = *elements.value_begin<Attribute>();
    if (elements.isSplat())
      return DenseElementsAttr::get(elements.getType(), altered(first));
    SmallVector<Attribute> all(elements.getValues<Attribute>());
    all.front() = altered(first);
    return DenseElementsAttr::get(elements.getType(), all);
  }
  return {};
}

/// Names of ops that take the operands of `op`.
StringRef relativeOf(Operation *op) {
  static const std::map<StringRef, StringRef> relatives = {
      {"nn.add", "nn.sub"}, {"nn.sub", "nn.add"},   {"nn.mul", "nn.div"},  {"nn.div", "nn.mul"},  {"nn.and", "nn.or"},
      {"nn.or", "nn.and"},  {"nn.sqrt", "nn.exp"},  {"nn.exp", "nn.sqrt"}, {"nn.log", "nn.neg"},  {"nn.tanh", "nn.erf"},
      {"nn.erf", "nn.tanh"}, {"nn.max", "nn.min"},  {"nn.min", "nn.max"},  {"nn.pow", "nn.mul"},  {"nn.reciprocal", "nn.neg"},
      {"nn.neg", "nn.exp"}, {"nn.softmax", "nn.exp"}};
  auto found = relatives.find(op->getName().getStringRef());
  return found == relatives.end() ? StringRef() : found->second;
}

/// One thing in an op of @main that can be another; the op is given by its number.
struct Change {
  enum Kind { NewArgument, OtherValue, OtherAttribute, OtherOp, Transposed } kind;
  size_t op;
  unsigned operand = 0;
  size_t value = 0; ///< of those of @main, arguments first
  StringRef attribute = {};
};

Block &bodyOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main").getBody().front(); }

SmallVector<Value> valuesOf(Block &body) {
  SmallVector<Value> values(body.getArguments());
  for (Operation &op : body)
    llvm::append_range(values, op.getResults());
  return values;
}

std::vector<Change> changesOf(ModuleOp module) {
  std::vector<Change> changes;
  Block &body = bodyOf(module);
  SmallVector<Value> values = valuesOf(body);
  for (auto [number, op] : llvm::enumerate(body)) {
    for (OpOperand &operand : op.getOpOperands()) {
      if (operand.get().getDefiningOp() || !operand.get().hasOneUse()) // else the program is the same
        changes.push_back({Change::NewArgument, number, operand.getOperandNumber()});
      for (auto [other, value] : llvm::enumerate(values))
        if (value != operand.get() && value.getType() == operand.get().getType() &&
            (!value.getDefiningOp() || value.getDefiningOp()->isBeforeInBlock(&op)))
          changes.push_back({Change::OtherValue, number, operand.getOperandNumber(), other});
    }
    if (isa<func::ReturnOp>(op))
      continue;
    for (NamedAttribute attribute : op.getAttrs())
      if (altered(attribute.getValue()))
        changes.push_back({Change::OtherAttribute, number, 0, 0, attribute.getName().strref()});
    if (!relativeOf(&op).empty())
      changes.push_back({Change::OtherOp, number});
    if (isa<nn::MatmulOp>(op))
      for (unsigned side : {0u, 1u})
        changes.push_back({Change::Transposed, number, side});
  }
  return changes;
}

/// Whether the program with the change is one.
bool apply(const Change &change, ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  Block &body = bodyOf(module);
  SmallVector<Value> values = valuesOf(body);
  Operation *op = &*std::next(body.begin(), ptrdiff_t(change.op));
  OpBuilder builder(op);
  switch (change.kind) {
  case Change::NewArgument:
    (void)main.insertArgument(main.getNumArguments(), op->getOperand(change.operand).getType(), {}, op->getLoc());
    op->setOperand(change.operand, main.getArguments().back());
    break;
  case Change::OtherValue:
    op->setOperand(change.operand, values[change.value]);
    break;
  case Change::OtherAttribute:
    op->setAttr(change.attribute, altered(op->getAttr(change.attribute)));
    break;
  case Change::OtherOp: {
    OperationState state(op->getLoc(), relativeOf(op), op->getOperands(), op->getResultTypes());
    op->replaceAllUsesWith(builder.create(state));
    op->erase();
    break;
  }
  case Change::Transposed: {
    auto matmul = cast<nn::MatmulOp>(op);
    if (change.operand == 0)
      matmul.setTransposeLhs(!matmul.getTransposeLhs());
    else
      matmul.setTransposeRhs(!matmul.getTransposeRhs());
    break;
  }
  }
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  return succeeded(mlir::verify(module));
}

const char *const folder = HPC_SOURCE_DIR "/test/passes/Raise/";

TEST_P(RaiseEquivalence, KeepsTheMeaning) {
  std::string text = readText(folder + GetParam() + ".mlir");
  SmallVector<StringRef> programs;
  StringRef(text).split(programs, "// -----");
  ASSERT_FALSE(text.empty());
  for (StringRef program : programs) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(program, &context);
    ASSERT_TRUE(module) << program.str();
    StringRef pass = GetParam();
    pass.consume_back("-remarks");
    check(*module, ("hpc-" + pass).str(), "\n" + program.str());
    // Without ties: they read files.
    check(*module, phase, "\n" + program.str());
  }
}

TEST_P(RaiseEquivalence, LeavesAloneWhatOnlySeemsAnIdiom) {
  std::string text = readText(folder + GetParam() + ".mlir");
  SmallVector<StringRef> programs;
  StringRef(text).split(programs, "// -----");
  StringRef pass = GetParam();
  pass.consume_back("-remarks");
  size_t count = 0;
  for (StringRef program : programs) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(program, &context);
    ASSERT_TRUE(module) << program.str();
    for (const Change &change : changesOf(*module)) {
      OwningOpRef<ModuleOp> changed(module->clone());
      if (!apply(change, *changed))
        continue;
      ++count;
      std::string shown;
      llvm::raw_string_ostream(shown) << "\n" << *changed;
      check(*changed, ("hpc-" + pass).str(), shown, /*isChanged=*/true);
    }
  }
  EXPECT_GE(count, 10 * programs.size()) << "of what a program has, hardly anything was changed";
}

std::vector<std::string> testFiles() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (std::string name = entry.path().stem().string(); entry.path().extension() == ".mlir" &&
                                                         !StringRef(name).ends_with("-errors") &&
                                                         !StringRef(name).starts_with("verify"))
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Passes, RaiseEquivalence, testing::ValuesIn(testFiles()), [](const auto &info) {
  std::string name = info.param;
  name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
  return name;
});

/// Models of the repository, and every small GPT-2 export beside it.
struct RaiseModels : RaiseEquivalence {};

std::vector<std::string> modelFiles() {
  std::vector<std::string> files;
  for (const char *name :
       {"models/decoder", "models/gpt2-odd", "models/gpt2-tiny", "models/mlp", "../shared/models/gpt2-odd"})
    if (std::filesystem::path path = std::filesystem::path(HPC_SOURCE_DIR) / name; std::filesystem::is_directory(path))
      for (const auto &entry : std::filesystem::directory_iterator(path))
        if (entry.path().extension() == ".onnx")
          files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

TEST_P(RaiseModels, KeepTheirMeaning) {
  context.loadDialect<dist::DistDialect>();
  // Sizes that a model does not have are errors, so they are offered by what exporters call them.
  bool hasPast = StringRef(GetParam()).contains("past");
  Expected<OwningOpRef<ModuleOp>> module = Status::error(ErrorKind::Usage, "not imported");
  for (const std::map<std::string, int64_t> &dims :
       {std::map<std::string, int64_t>{{"batch_size", 2}, {"sequence_length", hasPast ? 1 : 5}},
        {{"batch", 2}, {"time", 5}},
        {{"batch", 2}}}) {
    ImportOptions importOptions;
    importOptions.dims = dims;
    importOptions.inference = true; // one export stands in training mode
    if (hasPast)
      importOptions.dims["past_sequence_length"] = 4;
    if (!module.ok())
      module = importOnnx(GetParam(), importOptions, &context);
  }
  if (!module.ok())
    GTEST_SKIP() << module.status().text(); // what the importer does not take yet is not this test's matter
  options.parameters = parametersFromFiles(".");
  check(**module, phase, "");
  check(**module, "hpc-tie-weights," + std::string(phase) + ",hpc-verify-raised", "");
}

INSTANTIATE_TEST_SUITE_P(Models, RaiseModels, testing::ValuesIn(modelFiles()), [](const auto &info) {
  std::string name = std::filesystem::path(info.param).parent_path().filename().string() +
                     std::filesystem::path(info.param).stem().string() + std::to_string(info.index);
  name.erase(
      std::remove_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }),
      name.end());
  return name;
});

} // namespace
} // namespace hpc
