// The harness: random numbers for parameters by name and for inputs by position, the same in both runs.
#include "test/unit/passes/SerialEqualsPartitioned.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Interpreter/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

// Each Passes.h generates its registration under one name for a phase.
#include "passes/Partition/Passes.h"
namespace hpc::test {
void registerPropagate();

static Tensor randomTensor(DType dtype, ArrayRef<int64_t> shape, unsigned seed, int64_t limit) {
  std::mt19937 generator(seed);
  Tensor tensor(dtype, shape);
  std::uniform_real_distribution<double> real(-1, 1);
  for (double &value : tensor.floats)
    value = real(generator);
  for (int64_t &value : tensor.ints)
    value = int64_t(generator() % limit) - (dtype == DType::Bool   ? 0
                                            : generator() % 8 == 0 ? limit
                                                                   : 0); // now and then from the end
  if (dtype == DType::Bool)
    for (int64_t &value : tensor.ints)
      value &= 1;
  return tensor;
}

static DType dtypeOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() == 1 ? DType::Bool : integer.getWidth() == 32 ? DType::I32 : DType::I64;
  return type.isF64() ? DType::F64 : DType::F32;
}

Compiler::Compiler() {
  static bool registered = [] {
    registerPropagate();
    registerPartitionPasses();
    return true;
  }();
  (void)registered;
  context.loadDialect<nn::NNDialect, dist::DistDialect, func::FuncDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      diagnostics += diagnostic.str() + "\n";
    return success();
  });
}

OwningOpRef<ModuleOp> Compiler::parse(const std::string &text) { return parseSourceString<ModuleOp>(text, &context); }

bool Compiler::run(ModuleOp module, const std::string &pipeline) {
  PassManager passes(&context);
  std::string parseErrors;
  llvm::raw_string_ostream stream(parseErrors);
  if (failed(parsePassPipeline(pipeline, passes, stream))) {
    diagnostics += parseErrors;
    return false;
  }
  return succeeded(passes.run(module));
}

static bool close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(a));
}

static std::string differs(const std::string &what, const Tensor &serial, const Tensor &partitioned) {
  if (serial.shape != partitioned.shape)
    return what + ": another shape";
  for (int64_t i = 0; i < serial.size(); ++i)
    if (double a = serial.number(i), b = partitioned.number(i); !close(a, b))
      return what + ": element " + std::to_string(i) + " is " + std::to_string(a) + " serially and " +
             std::to_string(b) + " partitioned";
  return "";
}

std::string compareRuns(ModuleOp serial, ModuleOp partitioned, const dist::Mesh &mesh) {
  RunOptions options;
  options.doublePrecision = true;
  options.parameters = [](nn::ParameterOp op, ArrayRef<int64_t> shape) -> Expected<Tensor> {
    return randomTensor(dtypeOf(nn::tensorType(op.getResult()).getElementType()), shape,
                        unsigned(llvm::hash_value(op.getName())) & 0xffff, 7);
  };
  auto main = serial.lookupSymbol<func::FuncOp>("main"), local = partitioned.lookupSymbol<func::FuncOp>("main");
  std::vector<Tensor> inputs;
  for (BlockArgument argument : main.getArguments()) {
    auto limit = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "test.limit");
    inputs.push_back(randomTensor(dtypeOf(nn::tensorType(argument).getElementType()), nn::shapeOf(argument),
                                  77 + argument.getArgNumber(), limit ? limit.getInt() : 5));
  }

  std::map<int64_t, Tensor> values; // by hpc.id
  options.observe = [&](Value value, const LocalTensors &tensors) -> Status {
    if (std::optional<int64_t> id = valueIdsOf(value.getDefiningOp()).made)
      values[*id] = *tensors[0];
    return Status::success();
  };
  Expected<std::vector<Tensor>> expected = runFunction(main, inputs, options);
  if (!expected.ok())
    return "serial: " + expected.status().message();

  options.observe = [&](Value value, const LocalTensors &tensors) -> Status {
    Operation *op = value.getDefiningOp();
    std::optional<int64_t> id = valueIdsOf(op).made;
    if (!id)
      return Status::success();
    GlobalTensor global = gatherGlobal(tensors, dist::shardingOf(value), mesh);
    std::string what = describeOp(op);
    if (global.disagreement)
      return Status::error(ErrorKind::Internal, what + ": replicas differ");
    std::string wrong = differs(what, values[*id], global.tensor);
    return wrong.empty() ? Status::success() : Status::error(ErrorKind::Internal, wrong);
  };
  Expected<std::vector<Tensor>> actual = runPartitioned(local, inputs, mesh, options);
  if (!actual.ok())
    return "partitioned: " + actual.status().message();
  for (size_t i = 0; i < expected->size(); ++i)
    if (std::string wrong = differs("output " + std::to_string(i), (*expected)[i], (*actual)[i]); !wrong.empty())
      return wrong;
  return "";
}

std::string compare(const std::string &text, const std::string &meshText) {
  Compiler compiler;
  OwningOpRef<ModuleOp> module = compiler.parse(text);
  if (!module)
    return "does not parse: " + compiler.diagnostics;
  Expected<dist::Mesh> mesh = dist::parseMesh(meshText);
  if (!mesh.ok())
    return mesh.status().message();
  (*module)->setAttr(dist::meshAttrName, dist::MeshAttr::get(&compiler.context, *mesh));
  if (!compiler.run(*module, propagatePipeline))
    return "propagate: " + compiler.diagnostics;
  OwningOpRef<ModuleOp> partitioned = module->clone();
  if (!compiler.run(*partitioned, partitionPipeline))
    return "partition: " + compiler.diagnostics;
  return compareRuns(*module, *partitioned, *mesh);
}

std::vector<std::string> readModules(const std::string &path) {
  std::ifstream file(path);
  std::vector<std::string> modules(1);
  for (std::string line; std::getline(file, line);)
    if (line.rfind("// -----", 0) == 0)
      modules.emplace_back();
    else
      modules.back() += line + "\n";
  return modules;
}

} // namespace hpc::test
