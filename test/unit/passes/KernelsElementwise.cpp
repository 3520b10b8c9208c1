// Every elementwise op on every element type, on all pairs of awkward values, against the interpreter; and the tables
// that an op may be missing from.
#include "test/unit/passes/KernelsHarness.h"

#include "passes/Kernels/Elements/ElementEmitter.h"

namespace hpc::test {
namespace {

std::vector<double> awkwardFloats() {
  return {0.0,  -0.0,  1.0,  -1.0, 0.5,   1.5,  -2.5,  3.75, -7.0,  2.0,      3.0,       0.1, -0.6,
          0.93, 12.25, -9.5, 60.0, -60.0, 1e-3, 1e-30, 1e30, -1e30, INFINITY, -INFINITY, NAN};
}
std::vector<int64_t> awkwardInts() {
  return {0, 1, -1, 2, -2, 3, 7, -7, 100, 127, -128, 63, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX};
}

Tensor awkward(DType dtype, bool asColumn) {
  size_t count = isFloat(dtype) ? awkwardFloats().size() : dtype == DType::Bool ? 2 : awkwardInts().size();
  Tensor tensor(dtype, asColumn ? ArrayRef<int64_t>({int64_t(count), 1}) : ArrayRef<int64_t>({1, int64_t(count)}));
  for (size_t i = 0; i < count; ++i)
    if (isFloat(dtype))
      tensor.floats[i] = awkwardFloats()[i];
    else
      tensor.ints[i] = dtype == DType::Bool ? int64_t(i) : awkwardInts()[i];
  round(tensor);
  return tensor;
}

std::string text(const Tensor &like, DType dtype, MLIRContext &context) {
  std::string result;
  llvm::raw_string_ostream(result) << RankedTensorType::get(like.shape, typeOf(dtype, &context));
  return result;
}

const DType dtypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64,
                        DType::I32, DType::I8,  DType::U8,  DType::U64,  DType::Bool};
const char *unary[] = {"neg",  "abs",    "exp",  "log",     "sqrt",   "reciprocal", "tanh",     "tan",
                       "asin", "acos",   "atan", "sinh",    "cosh",   "asinh",      "acosh",    "atanh",
                       "erf",  "sin",    "cos",  "sigmoid", "relu",   "floor",      "ceil",     "round",
                       "sign", "detach", "not",  "is_nan",  "is_inf", "gelu",       "gelu tanh"};
const char *binary[] = {"add",        "sub",        "mul",        "div",        "mod",        "fmod",
                        "pow",        "max",        "min",        "and",        "or",         "xor",
                        "shift_left", "shift_right", "compare eq", "compare ne", "compare lt", "compare le", "compare gt", "compare ge"};

/// One module with a function per op and type; ops that the interpreter says have no meaning on a type are left out.
struct ElementwiseTest : KernelTest {
  std::string program;
  std::vector<std::pair<std::string, std::vector<Tensor>>> cases;
  std::set<std::string> covered;

  void add(const std::string &op, const std::string &line, std::vector<Tensor> inputs, const std::string &resultType) {
    std::string name = "f" + std::to_string(cases.size()), arguments;
    const char *names[] = {"%a", "%b", "%c"};
    for (size_t i = 0; i < inputs.size(); ++i)
      arguments += (i ? ", " : "") + std::string(names[i]) + ": " + text(inputs[i], inputs[i].dtype, context);
    std::string function = "func.func @" + name + "(" + arguments + ") -> " + resultType + " {\n  %r = " + line +
                           " -> " + resultType + "\n  return %r : " + resultType + "\n}\n";
    OwningOpRef<ModuleOp> alone = parseSourceString<ModuleOp>(function, &context);
    ASSERT_TRUE(alone) << function;
    Expected<std::vector<Tensor>> results = runFunction(alone->lookupSymbol<func::FuncOp>(name), inputs);
    if (!results.ok() && results.status().text().find("no meaning") != std::string::npos)
      return;
    ASSERT_TRUE(results.ok()) << results.status().text();
    program += function;
    cases.push_back({name, inputs});
    covered.insert(op);
  }
  void checkAll() {
    parse(program);
    for (auto &[name, inputs] : cases) {
      SCOPED_TRACE(program.substr(program.find("@" + name + "("), 120));
      check(name, inputs);
    }
    EXPECT_EQ(numKernelRuns, int(cases.size()));
  }
};

TEST_F(ElementwiseTest, Unary) {
  for (std::string op : unary)
    for (DType dtype : dtypes) {
      Tensor a = awkward(dtype, false);
      std::string type = text(a, dtype, context),
                  result = op.rfind("is_", 0) == 0 ? text(a, DType::Bool, context) : type;
      std::string name = op.substr(0, op.find(' ')), attribute = op == name ? "" : " {tanh_approximation}";
      add("nn." + name, "nn." + name + " %a" + attribute + " : " + type, {a}, result);
    }
  checkAll();
  for (std::string op : unary)
    EXPECT_TRUE(covered.count("nn." + op.substr(0, op.find(' ')))) << op;
}

TEST_F(ElementwiseTest, Binary) {
  for (std::string op : binary)
    for (DType dtype : dtypes) {
      bool isArithmetic = op != "and" && op != "or" && op != "xor" && op.find("compare") != 0;
      if (dtype == DType::Bool && isArithmetic)
        continue; // ONNX has no arithmetic on booleans
      Tensor a = awkward(dtype, true), b = awkward(dtype, false), c(dtype, {a.shape[0], b.shape[1]});
      std::string result = text(c, op.find("compare") == 0 ? DType::Bool : dtype, context);
      std::string name = op.substr(0, op.find(' '));
      add("nn." + name, "nn." + op + " %a, %b : " + text(a, dtype, context) + ", " + text(b, dtype, context), {a, b},
          result);
    }
  checkAll();
  for (std::string op : binary)
    EXPECT_TRUE(covered.count("nn." + op.substr(0, op.find(' ')))) << op;
}

TEST_F(ElementwiseTest, PowersOfMixedTypes) {
  for (auto [base, exponent] :
       {std::pair(DType::F32, DType::I64), std::pair(DType::F32, DType::F64), std::pair(DType::I64, DType::F32)}) {
    Tensor a = awkward(base, true), b = awkward(exponent, false), c(base, {a.shape[0], b.shape[1]});
    add("nn.pow", "nn.pow %a, %b : " + text(a, base, context) + ", " + text(b, exponent, context), {a, b},
        text(c, base, context));
  }
  checkAll();
}

TEST_F(ElementwiseTest, CastBetweenAllTypes) {
  for (DType from : dtypes)
    for (DType to : dtypes) {
      Tensor a = awkward(from, false);
      add("nn.cast", "nn.cast %a : " + text(a, from, context), {a}, text(a, to, context));
    }
  checkAll();
}

// Bits of f16 and bf16 are those of memory, not of the f32 that registers hold.
TEST_F(ElementwiseTest, BitcastBetweenAllTypesOfOneWidth) {
  for (DType from : dtypes)
    for (DType to : dtypes) {
      if (from == DType::Bool || to == DType::Bool || byteSize(from) != byteSize(to))
        continue;
      Tensor a = awkward(from, false);
      add("nn.bitcast", "nn.bitcast %a : " + text(a, from, context), {a}, text(a, to, context));
    }
  checkAll();
}

TEST_F(ElementwiseTest, Select) {
  for (DType dtype : dtypes) {
    Tensor condition(DType::Bool, {2, 1}), a = awkward(dtype, false), b(dtype, {});
    condition.ints = {0, 1};
    Tensor c(dtype, {2, a.shape[1]});
    add("nn.select",
        "nn.select %a, %b, %c : " + text(condition, DType::Bool, context) + ", " + text(a, dtype, context) + ", " +
            text(b, dtype, context),
        {condition, a, b}, text(c, dtype, context));
  }
  checkAll();
}

// A new op must be in the emitter's tables or be a library call.
TEST(KernelTables, EveryOpHasCode) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  std::set<std::string> others = {"nn.matmul", "nn.parameter", "nn.fused", "nn.yield"};
  std::set<std::string> tested = {"nn.compare", "nn.select", "nn.cast", "nn.bitcast"};
  for (std::string op : unary)
    tested.insert("nn." + op.substr(0, op.find(' ')));
  for (std::string op : binary)
    tested.insert("nn." + op.substr(0, op.find(' ')));
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.getDialectNamespace() != "nn" || others.count(name.getStringRef().str()) ||
        name.hasInterface<CompositeOpInterface>())
      continue;
    EXPECT_TRUE(kernels::hasElementEmitter(name))
        << name.getStringRef().str() << ": add it to passes/Kernels/Elements/ScalarEmitter.cpp or ElementEmitter.cpp";
    if (kernels::hasScalarEmitter(name))
      EXPECT_TRUE(tested.count(name.getStringRef().str()))
          << name.getStringRef().str() << ": add it to the lists of this file";
  }
}
} // namespace
} // namespace hpc::test
