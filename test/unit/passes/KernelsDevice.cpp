// What only devices have: rows longer than a warp and than a block, sums joined through shared memory, blocks that are not
// full, the maths without a libm; random regions; and the runner itself. All other tests of kernels run on the device too
// (KernelsHarness.h).
#include "test/unit/passes/KernelsHarness.h"

#include "compiler/Import/OnnxImporter.h"
#include "compiler/Providers.h"
#include "passes/Phases.h"

#include <cstdlib>
#include <filesystem>
#include <random>

namespace hpc::test {
namespace {

std::string tensorType(ArrayRef<int64_t> shape, const std::string &element = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

// A row of 1 to 3000 elements: part of a warp, one warp, several with a last one that is not full, more than a block holds.
TEST_F(KernelTest, RowsOfEveryLength) {
  for (int64_t columns : {1, 2, 31, 32, 33, 64, 255, 256, 257, 300, 1024, 1031, 3000}) {
    SCOPED_TRACE(columns);
    std::string type = tensorType({5, columns});
    toleranceScale = 2; // terms of one sign, and the results are less than 1 or normalized
    checkBody("%x: " + type, "%0 = nn.softmax %x : " + type + " -> " + type + "\n%r = nn.layer_norm %0 {epsilon = 1.0e-5 : f64} : " + type + " -> " + type,
              type, {someFloats({5, columns})});
  }
}

// Every kind of state that lanes and warps exchange.
TEST_F(KernelTest, RowReductionsOfEveryType) {
  for (const char *element : {"f32", "f64", "f16", "bf16", "i64", "i32", "i8", "ui8", "ui64"})
    for (const char *kind : {"sum", "max", "min", "prod"}) {
      std::string name = element;
      if (name[0] == 'u')
        name.erase(1, 1);
      std::string from = tensorType({3, 600}, element), to = tensorType({3, 1}, element);
      Tensor x(*parseDType(name), {3, 600});
      for (int64_t i = 0; i < x.size(); ++i)
        x.setNumber(i, x.isFloat() ? (kind[0] == 'p' ? 1 + (i % 7 - 3) / 256.0 : (i * 37 % 101 - 50) / 64.0) : double(i * 7 % 11));
      round(x);
      SCOPED_TRACE(from + " " + kind);
      toleranceScale = byteSize(x.dtype) == 2 ? 1 : 8; // 600 terms; narrow types round the sum alone, which is made in f32
      checkBody("%x: " + from, std::string("%r = nn.reduce ") + kind + " %x {axes = array<i64: 1>} : " + from + " -> " + to,
                to, {x});
    }
}

// Down columns: lanes with and without a last row, a last block of columns that is not full.
TEST_F(KernelTest, ColumnsOfEveryHeight) {
  for (int64_t rows : {1, 2, 7, 8, 9, 64, 257, 1030})
    for (int64_t columns : {2, 31, 32, 65}) {
      SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(columns));
      std::string type = tensorType({rows, columns}), to = tensorType({1, columns});
      toleranceScale = 24; // up to 1030 terms of either sign that cancel: sums of 100 on the way to 1
      Tensor x = someFloats({rows, columns}), y = someFloats({rows, columns}, 2);
      checkBody("%x: " + type + ", %y: " + type,
                "%0 = nn.mul %x, %y : " + type + ", " + type + " -> " + type + "\n%1 = nn.reduce sum %0 {axes = array<i64: 0>} : " +
                    type + " -> " + to + "\n%2 = nn.reduce max %y {axes = array<i64: 0>} : " + type + " -> " + to +
                    "\n%r = nn.sub %1, %2 : " + to + ", " + to + " -> " + to,
                to, {x, y});
      // Nineteen in twenty terms, left out, would be seen.
      int64_t seen = 0;
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0, most = -INFINITY;
        for (int64_t at = column; at < rows * columns; at += columns)
          sum += x.number(at) * y.number(at), most = std::max(most, y.number(at));
        for (int64_t at = column; at < rows * columns; at += columns)
          seen += std::abs(x.number(at) * y.number(at)) > toleranceScale * toleranceOf(DType::F32) * std::max(1.0, std::abs(sum - most));
      }
      EXPECT_GE(seen * 20, rows * columns * 19);
    }
}

// Neighbours that one access holds, and rows that cannot be cut into them.
TEST_F(KernelTest, ElementsOfEveryWidth) {
  for (const char *element : {"f32", "bf16", "f64", "i8"})
    for (int64_t columns : {1, 3, 4, 6, 8, 12, 1000}) {
      std::string type = tensorType({7, columns}, element);
      SCOPED_TRACE(type);
      Tensor x(*parseDType(element), {7, columns});
      for (int64_t i = 0; i < x.size(); ++i)
        x.setNumber(i, double(i % 50));
      checkBody("%x: " + type, "%r = nn.mul %x, %x : " + type + ", " + type + " -> " + type, type, {x});
    }
}

// The device's own maths, over all exponents: against libm in extended precision. The bounds stand in DeviceMath.cpp.
struct Maths : KernelTest {
  /// The largest error in units of the last place of a double.
  double worst(const std::string &op, const std::vector<double> &values, long double (*truth)(long double)) {
    std::string type = tensorType({int64_t(values.size())}, "f64");
    Tensor x(DType::F64, {int64_t(values.size())});
    x.floats.assign(values.begin(), values.end());
    parse("func.func @main(%x: " + type + ") -> " + type + " {\n%r = nn." + op + " %x : " + type + " -> " + type +
          "\nreturn %r : " + type + "\n}");
    runPasses();
    Tensor actual(DType::F64, {});
    module->walk([&](nn::FusedOp region) { actual = callOnDevice(region, {&x}, {}, 0)[0]; });
    double most = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      long double expected = truth((long double)(values[i]));
      double nearest = double(expected);
      if (std::isnan(nearest) || std::isinf(nearest)) {
        EXPECT_TRUE(std::isnan(nearest) ? std::isnan(actual.floats[i]) : actual.floats[i] == nearest)
            << op << "(" << values[i] << ") = " << actual.floats[i] << ", expected " << nearest;
        continue;
      }
      double unit = std::max(std::nextafter(std::abs(nearest), INFINITY) - std::abs(nearest), 0x1p-1074);
      double error = double(std::abs((long double)(actual.floats[i]) - expected) / unit);
      EXPECT_LT(error, 1e6) << op << "(" << values[i] << ") = " << actual.floats[i] << ", expected " << nearest;
      most = std::max(most, error);
    }
    return most;
  }
};
TEST_F(Maths, KeepsItsBounds) {
  std::vector<double> all = {0.0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, 0x1p-1022, 1.0, -1.0};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(1, 2);
  for (int exponent = -60; exponent < 1023; exponent += exponent < 12 ? 1 : 11)
    for (int i = 0; i < 12; ++i)
      all.push_back(std::ldexp(i % 2 ? mantissa(random) : -mantissa(random), exponent));
  std::vector<double> unit, positive;
  for (double value : all) {
    if (std::abs(value) <= 1)
      unit.push_back(value);
    if (value >= 0)
      positive.push_back(value);
  }
  using F = long double;
  EXPECT_LE(worst("exp", all, [](F x) { return std::exp(x); }), 2);
  EXPECT_LE(worst("log", all, [](F x) { return std::log(x); }), 2);
  EXPECT_LE(worst("sin", all, [](F x) { return std::sin(x); }), 2);
  EXPECT_LE(worst("cos", all, [](F x) { return std::cos(x); }), 2);
  EXPECT_LE(worst("tan", all, [](F x) { return std::tan(x); }), 4);
  EXPECT_LE(worst("asin", unit, [](F x) { return std::asin(x); }), 4);
  EXPECT_LE(worst("acos", unit, [](F x) { return std::acos(x); }), 4);
  EXPECT_LE(worst("atan", all, [](F x) { return std::atan(x); }), 4);
  EXPECT_LE(worst("sinh", all, [](F x) { return std::sinh(x); }), 4);
  EXPECT_LE(worst("cosh", all, [](F x) { return std::cosh(x); }), 4);
  EXPECT_LE(worst("tanh", all, [](F x) { return std::tanh(x); }), 4);
  EXPECT_LE(worst("asinh", all, [](F x) { return std::asinh(x); }), 4);
  EXPECT_LE(worst("acosh", positive, [](F x) { return std::acosh(x); }), 4);
  EXPECT_LE(worst("atanh", unit, [](F x) { return std::atanh(x); }), 4);
  EXPECT_LE(worst("erf", all, [](F x) { return std::erf(x); }), 64);
}

// ---- random regions -----------------------------------------------------------------------------

/// A straight program of a few ops on shapes that rows, columns and elements are made of.
struct RandomProgram {
  std::mt19937 random;
  std::string body;
  std::vector<std::pair<std::string, std::vector<int64_t>>> values;

  explicit RandomProgram(unsigned seed) : random(seed) {}
  int64_t below(int64_t bound) { return int64_t(random() % uint32_t(bound)); }
  std::string add(const std::string &op, const std::string &operands, const std::string &types, std::vector<int64_t> shape) {
    std::string name = "%v" + std::to_string(values.size());
    body += "  " + name + " = nn." + op + operands + " : " + types + " -> " + tensorType(shape) + "\n";
    values.push_back({name, shape});
    return name;
  }
  void step() {
    auto [x, shape] = values[size_t(below(int64_t(values.size())))];
    std::string type = tensorType(shape);
    switch (below(8)) {
    case 0: { // what bounds its result, so that chains stay in range
      const char *names[] = {"tanh", "sigmoid", "relu", "gelu", "abs", "neg", "erf", "sin"};
      add(names[below(8)], " " + x, type, shape);
      break;
    }
    case 1:
    case 2: {
      const char *names[] = {"add", "sub", "mul", "max", "min"};
      std::string bounded = add("tanh", " " + x, type, shape);
      for (auto &[y, other] : std::vector(values))
        if (other.size() == shape.size() && below(2)) {
          std::vector<int64_t> result;
          bool fits = true;
          for (size_t i = 0; i < shape.size(); ++i) {
            fits &= shape[i] == other[i] || shape[i] == 1 || other[i] == 1;
            result.push_back(std::max(shape[i], other[i]));
          }
          if (!fits)
            continue;
          add(names[below(5)], " " + bounded + ", " + y, type + ", " + tensorType(other), result);
          break;
        }
      break;
    }
    case 3:
    case 4: { // a mean, so that it stays small
      std::vector<int64_t> reduced = shape;
      std::string axes;
      int64_t wanted = below(int64_t(1 << shape.size()) - 1) + 1, count = 1;
      for (size_t i = 0; i < shape.size(); ++i)
        if (wanted >> i & 1) {
          axes += (axes.empty() ? "" : ", ") + std::to_string(i);
          count *= shape[i];
          reduced[i] = 1;
        }
      const char *kinds[] = {"sum", "sum", "max", "min"};
      std::string kind = kinds[below(4)];
      std::string sum = add("reduce " + kind, " " + x + " {axes = array<i64: " + axes + ">}", type, reduced);
      if (kind == "sum") {
        std::string scale = "%s" + std::to_string(values.size());
        body += "  " + scale + " = nn.constant dense<" + std::to_string(1.0 / double(count)) + "> : tensor<f32> : tensor<f32>\n";
        add("mul", " " + sum + ", " + scale, tensorType(reduced) + ", tensor<f32>", reduced);
      }
      break;
    }
    case 5:
      add("softmax", " " + x, type, shape);
      break;
    case 6:
      add("rms_norm", " " + x + " {epsilon = 1.0e-1 : f64}", type, shape);
      break;
    case 7: {
      if (shape.size() != 2)
        break;
      add("transpose", " " + x + " {permutation = array<i64: 1, 0>}", type, {shape[1], shape[0]});
      break;
    }
    }
  }
};

struct RandomRegions : KernelTest, testing::WithParamInterface<unsigned> {};
TEST_P(RandomRegions, EqualTheInterpreter) {
  const std::vector<std::vector<int64_t>> shapes = {{6, 33}, {3, 300}, {40, 64}, {2, 9, 65}, {130, 3}, {1, 1030}, {300, 32}};
  std::string text;
  std::vector<std::vector<Tensor>> inputs;
  for (unsigned i = 0; i < 25; ++i) {
    RandomProgram program(GetParam() * 100 + i);
    std::vector<int64_t> shape = shapes[size_t(program.below(int64_t(shapes.size())))];
    std::vector<int64_t> bias = shape;
    for (size_t dim = 0; dim + 1 < bias.size(); ++dim)
      bias[dim] = 1;
    program.values = {{"%a", shape}, {"%b", shape}, {"%c", bias}};
    for (int64_t steps = 3 + program.below(6); steps > 0; --steps)
      program.step();
    auto [last, result] = program.values.back();
    text += "func.func @f" + std::to_string(i) + "(%a: " + tensorType(shape) + ", %b: " + tensorType(shape) + ", %c: " +
            tensorType(bias) + ") -> " + tensorType(result) + " {\n" + program.body + "  %r = nn.neg " + last + " : " +
            tensorType(result) + " -> " + tensorType(result) + "\n  return %r : " + tensorType(result) + "\n}\n";
    inputs.push_back({someFloats(shape, i), someFloats(shape, i + 100), someFloats(bias, i + 200)});
  }
  // Means of up to 3000 terms and rows of 1030, up to nine ops deep; the largest of all five hundred is 2.6. A term left out
  // of the longest mean is 1/3000 of a number near 1: 300 times the tolerance's unit.
  toleranceScale = 10;
  parse(text);
  for (unsigned i = 0; i < 25; ++i) {
    SCOPED_TRACE(text.substr(text.find("@f" + std::to_string(i) + "("), 1500));
    check("f" + std::to_string(i), inputs[i]);
  }
  EXPECT_GE(numKernelRuns, 25);
}
// Five hundred with tools/test.sh --all, two hundred without.
INSTANTIATE_TEST_SUITE_P(Hundreds, RandomRegions, testing::Range(0u, std::getenv("HPC_TEST_ALL") ? 20u : 4u));

// ---- written over what is read, and models ------------------------------------------------------

// A result in place: by elements, by rows that a whole block reads first, and by columns.
TEST_F(KernelTest, InPlace) {
  struct Case {
    const char *type, *over, *body;
  };
  for (const Case &one :
       {Case{"tensor<7x300xf32>", "tensor<7x300xf32>", "%1 = nn.mul %a, %b : TYPE, TYPE -> TYPE\nnn.yield %1 : TYPE"},
        Case{"tensor<7x300xf32>", "tensor<7x1xf32>",
             "%1 = nn.reduce sum %b {axes = array<i64: 1>} : TYPE -> OVER\n%2 = nn.sub %a, %1 : OVER, OVER -> OVER\nnn.yield %2 : OVER"},
        Case{"tensor<300x40xf32>", "tensor<1x40xf32>",
             "%1 = nn.reduce sum %b {axes = array<i64: 0>} : TYPE -> OVER\n%2 = nn.sub %a, %1 : OVER, OVER -> OVER\nnn.yield %2 : OVER"}}) {
    std::string text = std::string("func.func @main(%x: OVER, %y: TYPE) -> OVER {\n%0 = nn.fused \"f_0\" (%x, %y) {in_place = array<i64: 0>} : "
                                   "(OVER, TYPE) -> OVER {\n^bb0(%a: OVER, %b: TYPE):\n") + one.body + "\n}\nreturn %0 : OVER\n}";
    for (auto [from, to] : {std::pair("TYPE", one.type), std::pair("OVER", one.over)})
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, 4, to);
    SCOPED_TRACE(text);
    toleranceScale = 20; // sums of 300 terms of either sign, less what is as large
    parse(text);
    auto shapeOfArgument = [&](unsigned i) {
      return nn::shapeOf(module->lookupSymbol<func::FuncOp>("main").getArgument(i));
    };
    check("main", {someFloats(shapeOfArgument(0)), someFloats(shapeOfArgument(1), 2)});
  }
  EXPECT_EQ(numKernelRuns, 3);
}

struct ModelCase {
  std::string file; ///< below models/, or absolute
  std::map<std::string, int64_t> dims;
  int64_t tp;
  std::string dtype = "model";
};

void PrintTo(const ModelCase &one, std::ostream *out) { *out << one.file << " tp=" << one.tp << " dtype=" << one.dtype; }

/// Every model below the folder that HPC_KERNEL_MODELS names, serial, over two and over three ranks, in its own types and in bf16: for a run by
/// hand over ../shared/models, which takes minutes. Symbolic dims have the names of Hugging Face's exports.
std::vector<ModelCase> modelsByHand() {
  std::vector<ModelCase> cases;
  const char *folder = ::getenv("HPC_KERNEL_MODELS");
  if (!folder)
    return cases;
  std::error_code error;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(std::filesystem::absolute(folder), error)) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".onnx")
      continue;
    std::map<std::string, int64_t> dims = {{"batch_size", 2}, {"sequence_length", 11}};
    if (path.parent_path().filename() == "mlp")
      dims = {{"batch", 4}};
    else if (path.stem().string().find("past") != std::string::npos)
      dims = {{"batch_size", 2}, {"sequence_length", 1}, {"past_sequence_length", 10}};
    for (int64_t tp : {1, 2, 3})
      for (const char *dtype : {"model", "bf16"})
        cases.push_back({path.string(), dims, tp, dtype});
  }
  return cases;
}

std::string nameOf(const testing::TestParamInfo<ModelCase> &info) {
  std::filesystem::path path = info.param.file;
  std::string name = path.parent_path().filename().string() + path.stem().string();
  llvm::erase_if(name, [](char c) { return !llvm::isAlnum(c); });
  return name + info.param.dtype + std::to_string(info.index);
}

/// Every kernel of a model, on all ranks, with what the model's own layers give it.
struct KernelsOfModel : KernelTest, testing::WithParamInterface<ModelCase> {};
TEST_P(KernelsOfModel, EqualTheInterpreter) {
  DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  ImportOptions import;
  import.dims = GetParam().dims;
  import.inference = true;
  std::string file = (std::filesystem::path(HPC_SOURCE_DIR) / "models" / GetParam().file).string();
  Expected<OwningOpRef<ModuleOp>> imported = importOnnx(file, import, &context);
  ASSERT_TRUE(imported.ok()) << imported.status().text();
  module = std::move(*imported);
  bool isAbsent = false; // as of the large models in ../shared, whose weights a script makes
  module->walk([&](nn::ParameterOp parameter) { isAbsent |= parameter.isAbsent(); });
  if (isAbsent)
    GTEST_SKIP() << file << " has no weights beside it";
  Options options;
  options.degrees = dist::degreesOf({{"tp", GetParam().tp}});
  options.dtype = GetParam().dtype;
  ASSERT_TRUE(succeeded(runPhases(*module, options, "partition", [](StringRef) { return success(); }, [](PassManager &) {})));
  auto main = module->lookupSymbol<func::FuncOp>("main");
  std::vector<Tensor> inputs;
  for (BlockArgument argument : main.getArguments()) {
    RankedTensorType type = dist::globalType(nn::tensorType(argument));
    Tensor input = someFloats(type.getShape(), argument.getArgNumber());
    if (!isa<FloatType>(type.getElementType())) {
      input = Tensor(dtypeOf(type), type.getShape());
      for (int64_t i = 0; i < input.size(); ++i)
        input.setNumber(i, double(i * 7 % 13)); // ids that every vocabulary has
    }
    inputs.push_back(input);
  }
  toleranceScale = 4; // every kernel by itself, from what the interpreter gives it
  check("main", inputs, true);
  EXPECT_GE(numKernelRuns, 3); // of a multilayer perceptron: its activations
}
INSTANTIATE_TEST_SUITE_P(
    All, KernelsOfModel,
    testing::Values(ModelCase{"gpt2-tiny/dynamo-eager-op18.onnx", {{"batch_size", 2}, {"sequence_length", 16}}, 2},
                    ModelCase{"gpt2-odd/dynamo-eager-op18.onnx", {{"batch_size", 2}, {"sequence_length", 11}}, 2},
                    ModelCase{"gpt2-odd/dynamo-eager-op18.onnx", {{"batch_size", 1}, {"sequence_length", 40}}, 1},
                    ModelCase{"decoder/model.onnx", {{"batch", 2}, {"time", 9}}, 3},
                    ModelCase{"resnet/model.onnx", {{"batch", 2}}, 2}, ModelCase{"vit/model.onnx", {{"batch", 2}}, 2},
                    ModelCase{"mlp/dynamo-op18.onnx", {{"batch", 4}}, 2},
                    ModelCase{"gpt2-tiny/dynamo-eager-op18.onnx", {{"batch_size", 2}, {"sequence_length", 16}}, 2, "bf16"},
                    ModelCase{"gpt2-odd/dynamo-eager-op18.onnx", {{"batch_size", 2}, {"sequence_length", 11}}, 2, "fp16"}),
    nameOf);
INSTANTIATE_TEST_SUITE_P(ByHand, KernelsOfModel, testing::ValuesIn(modelsByHand()), nameOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelsOfModel);

// ---- what plans for several targets need --------------------------------------------------------

// A device that claims less than the host would change the host's part of a plan for both.
TEST_F(KernelTest, ADeviceClaimsWhatTheHostClaims) {
  int claimed = 0;
  for (const char *body : {"nn.softmax %x : tensor<2x4xf32> -> tensor<2x4xf32>",
                           "nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<2x4xf32> -> tensor<2x4xf32>",
                           "nn.rms_norm %x {epsilon = 1.0e-5 : f64} : tensor<2x4xf32> -> tensor<2x4xf32>"}) {
    parse(std::string("func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {\n%r = ") + body +
          "\nreturn %r : tensor<2x4xf32>\n}");
    module->walk([&](Operation *op) {
      if (providerOf(op, hostTarget) == Provider::None)
        return;
      claimed += isa<CompositeOpInterface>(op);
      EXPECT_EQ(providerOf(op, "x86-64,ptx"), providerOf(op, hostTarget)) << op->getName().getStringRef().str();
    });
  }
  EXPECT_EQ(claimed, 3);
}

// ---- the runner ---------------------------------------------------------------------------------

/// Thread i writes i, and reads what its neighbour wrote: with a barrier between, or without.
template <bool withBarrier> void readNeighbour(void *const *params) {
  const HpcBlockTable *table = hpcBlocksTable();
  auto *result = *static_cast<uint32_t *const *>(params[0]);
  auto *shared = static_cast<uint32_t *>(table->shared());
  uint32_t i = table->thread();
  shared[i] = i;
  if (withBarrier)
    table->barrier();
  result[i] = shared[(i + 1) % 64];
}

template <typename Kernel> std::vector<uint32_t> runBlock(Kernel kernel, HpcBlockOrder order, std::string *error = nullptr) {
  std::vector<uint32_t> result(64);
  uint32_t *pointer = result.data();
  void *params[] = {&pointer};
  HpcBlockLaunch launch = {1, 64, 64 * 4, order, 3};
  char text[256] = "";
  hpcBlocksRun(kernel, &launch, params, text, sizeof(text));
  if (error)
    *error = text;
  return result;
}

TEST(BlockRunner, AMissingBarrierShows) {
  std::vector<uint32_t> expected;
  for (uint32_t i = 0; i < 64; ++i)
    expected.push_back((i + 1) % 64);
  for (HpcBlockOrder order : {HPC_BLOCKS_FORWARD, HPC_BLOCKS_REVERSE, HPC_BLOCKS_RANDOM}) {
    EXPECT_EQ(runBlock(readNeighbour<true>, order), expected) << order;
    EXPECT_NE(runBlock(readNeighbour<false>, order), expected) << order;
  }
}

TEST(BlockRunner, ThreadsThatWaitInVainAreNamed) {
  std::string error;
  runBlock(
      [](void *const *) {
        if (hpcBlocksTable()->thread() != 7)
          hpcBlocksTable()->barrier();
      },
      HPC_BLOCKS_FORWARD, &error);
  EXPECT_EQ(error, "block 0 of 1 is stuck: of 64 threads 63 stand at a barrier, 0 at a shuffle, 1 have ended");
  runBlock(
      [](void *const *) {
        if (hpcBlocksTable()->thread() < 40)
          hpcBlocksTable()->shuffleXor(1, 1);
      },
      HPC_BLOCKS_REVERSE, &error);
  EXPECT_EQ(error, "block 0 of 1 is stuck: of 64 threads 0 stand at a barrier, 8 at a shuffle, 56 have ended");
}

TEST(BlockRunner, AShuffleExchangesWithinItsWarp) {
  std::vector<uint32_t> result = runBlock(
      [](void *const *params) {
        uint32_t i = hpcBlocksTable()->thread();
        (*static_cast<uint32_t *const *>(params[0]))[i] = hpcBlocksTable()->shuffleXor(i * 3, 5);
      },
      HPC_BLOCKS_RANDOM);
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(result[i], (i ^ 5) * 3);
}

TEST(BlockRunner, LaunchesThatNoCardTakesAreErrors) {
  char error[256] = "";
  for (HpcBlockLaunch launch : {HpcBlockLaunch{1, 0, 0, HPC_BLOCKS_FORWARD, 0}, HpcBlockLaunch{1, 1025, 0, HPC_BLOCKS_FORWARD, 0},
                                HpcBlockLaunch{-1, 32, 0, HPC_BLOCKS_FORWARD, 0},
                                HpcBlockLaunch{1, 32, 1 << 20, HPC_BLOCKS_FORWARD, 0}})
    EXPECT_EQ(hpcBlocksRun([](void *const *) {}, &launch, nullptr, error, sizeof(error)), 1);
  EXPECT_EQ(hpcBlocksLoad("no ELF", 6, error, sizeof(error)), nullptr);
  EXPECT_NE(std::string(error).find("no device code for the CPU"), std::string::npos) << error;
}

} // namespace
} // namespace hpc::test
