// Runs machine code of regions beside the interpreter. The interpreter runs a module of fused regions and shows every
// value; each region's kernel then gets the very operands and must give the same results: the host's, and the device's, run
// by the block runner with its threads in three orders. Buffers end at an unmapped page and start as NaN, so that reading
// or writing outside, or leaving an element out, is seen.
#pragma once

#include "compiler/ElementType.h"
#include "compiler/Interpreter/Interpreter.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Kernels/Passes.h"
#include "test/gpu/BlockRunner.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

namespace hpc::test {

class GuardedBuffer {
public:
  explicit GuardedBuffer(size_t bytes) {
    size_t page = size_t(sysconf(_SC_PAGESIZE));
    mapped = (bytes + page - 1) / page * page + page;
    memory = static_cast<char *>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory + mapped - page, page, PROT_NONE);
    std::memset(memory, 0xFF, mapped - page);
    data = memory + mapped - page - bytes;
  }
  GuardedBuffer(const GuardedBuffer &) = delete;
  ~GuardedBuffer() { munmap(memory, mapped); }
  char *data;

private:
  char *memory;
  size_t mapped;
};

/// The shared object of a module.
class LoadedCode {
public:
  explicit LoadedCode(ModuleOp module) {
    auto code = module->getAttrOfType<DenseElementsAttr>("hpc.code");
    int file = memfd_create("kernels", 0);
    ArrayRef<char> bytes = code.getRawData();
    EXPECT_EQ(write(file, bytes.data(), bytes.size()), ssize_t(bytes.size()));
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    close(file);
  }
  ~LoadedCode() {
    if (handle)
      dlclose(handle);
  }
  using Function = void (*)(void *const *, const int64_t *, int64_t, int64_t);
  Function find(StringRef symbol) const { return reinterpret_cast<Function>(dlsym(handle, symbol.str().c_str())); }

private:
  void *handle;
};

/// The same regions compiled for the device, as code of this CPU.
class DeviceCodeOnCpu {
public:
  /// `verified`: regions hold what the target's column claims, and nothing else.
  explicit DeviceCodeOnCpu(ModuleOp module, bool verified = true) {
    OwningOpRef<ModuleOp> copy(module.clone());
    (*copy)->setAttr(targetAttrName, StringAttr::get(module.getContext(), deviceTarget));
    std::string path = testing::TempDir() + "/device-kernels-" + std::to_string(getpid()) + ".so";
    PassManager manager(module.getContext());
    EmitKernelsOptions options;
    options.deviceCodeOnHost = path;
    manager.addPass(createEmitKernels(options));
    if (verified)
      manager.addPass(createVerifyKernels());
    EXPECT_TRUE(succeeded(manager.run(*copy)));
    std::stringstream bytes;
    bytes << std::ifstream(path).rdbuf();
    std::remove(path.c_str());
    char error[256] = "";
    loaded = hpcBlocksLoad(bytes.str().data(), bytes.str().size(), error, sizeof(error));
    EXPECT_NE(loaded, nullptr) << error;
    copy->walk([&](nn::FusedOp region) {
      DenseI64ArrayAttr launch = region.getLaunchAttr();
      ASSERT_TRUE(launch) << region.getSymbol().str();
      launches[region.getSymbol()] = llvm::to_vector(launch.asArrayRef());
    });
  }
  DeviceCodeOnCpu(const DeviceCodeOnCpu &) = delete;
  ~DeviceCodeOnCpu() {
    if (loaded)
      hpcBlocksUnload(loaded);
  }

  /// One start as the plan asks for it, which is none where there are no rows.
  void run(nn::FusedOp region, const std::vector<void *> &arguments, const std::vector<int64_t> &scalars,
           HpcBlockOrder order) {
    ArrayRef<int64_t> launch = launches[region.getSymbol()];
    if (!loaded || launch.size() != 3 || launch[0] == 0 || *region.getRows() == 0)
      return;
    HpcBlockKernel kernel = hpcBlocksFind(loaded, region.getSymbol().str().c_str());
    ASSERT_NE(kernel, nullptr) << region.getSymbol().str();
    std::vector<void *> params;
    for (void *const &argument : arguments)
      params.push_back(const_cast<void **>(&argument));
    for (const int64_t &scalar : scalars)
      params.push_back(const_cast<int64_t *>(&scalar));
    HpcBlockLaunch shape = {launch[0], launch[1], launch[2], order, 20261122};
    char error[256] = "";
    EXPECT_EQ(hpcBlocksRun(kernel, &shape, params.data(), error, sizeof(error)), 0)
        << region.getSymbol().str() << ": " << error;
  }

private:
  HpcBlockModule *loaded = nullptr;
  llvm::StringMap<SmallVector<int64_t>> launches;
};

/// Relative to max(1, |expected|), by dtype: a few roundings of the type.
inline double toleranceOf(DType dtype) {
  return dtype == DType::F64 ? 4e-15 : dtype == DType::F16 ? 2e-3 : dtype == DType::BF16 ? 1.6e-2 : 1e-6;
}

struct KernelTest : testing::Test {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  double toleranceScale = 1;
  int numKernelRuns = 0;
  bool compiled = false; ///< the module has been through the passes
  std::unique_ptr<DeviceCodeOnCpu> onDevice;

  KernelTest() { context.loadDialect<nn::NNDialect, dist::DistDialect, pipe::PipeDialect, func::FuncDialect>(); }

  /// "tensor<2x3xf32>"
  static std::string typeText(ArrayRef<int64_t> shape, const std::string &element) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + element + ">";
  }

  /// The numbers as the type holds them.
  static Tensor typed(Tensor tensor, const std::string &element) {
    tensor.dtype = *parseDType(element);
    round(tensor);
    return tensor;
  }

  void parse(const std::string &text) {
    compiled = false;
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
  }

  void runPasses() {
    PassManager manager(&context);
    manager.addPass(createPackCollectives());
    manager.addPass(createDecomposeComposites());
    manager.addPass(createFoldTransposes());
    manager.addPass(createMultiplyWindows());
    manager.addPass(createSplitReductions());
    manager.addPass(createFuseRegions());
    manager.addPass(createEmitKernels());
    manager.addPass(createVerifyKernels());
    ASSERT_TRUE(succeeded(manager.run(*module)));
    onDevice = (*module)->hasAttr(codeAttrName) ? std::make_unique<DeviceCodeOnCpu>(*module) : nullptr;
  }

  static bool isHeld(Type type, const dist::Mesh &mesh, int64_t coordinate, int64_t element) {
    dist::ShardingAttr sharding = dist::shardingAttrOf(type);
    if (!sharding)
      return true;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    std::vector<int64_t> at = mesh.coordinate(coordinate);
    for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; element /= shape[dim], --dim)
      if (dist::globalIndex(sharding.getValue().dims[dim], mesh, at, element % shape[dim]) < 0)
        return false;
    return true;
  }

  /// Half a unit in the last place of an attention's 16-bit operands: the interpreter rounds its weights so, and a kernel
  /// that computes it whole need not (docs/numerics.md). 0 for other regions.
  static double roundingInside(nn::FusedOp region) {
    double rounding = 0;
    region.walk([&](Operation *op) {
      if (isa<nn::AttentionOp, nn::AttentionGradOp>(op)) {
        DType narrow = dtypeOf(nn::tensorType(op->getOperand(0)));
        rounding = std::max(rounding, narrow == DType::BF16 ? 0x1p-9 : narrow == DType::F16 ? 0x1p-12 : 0);
      }
    });
    return rounding;
  }

  /// `rounding`: of a weighted mean of values, by what each weight may be off besides.
  void expectClose(const Tensor &actual, const Tensor &expected, Type type, const dist::Mesh &mesh, int64_t coordinate,
                   const std::string &what, double rounding = 0) {
    ASSERT_EQ(actual.shape, expected.shape) << what;
    const double tolerance = toleranceScale * std::max(toleranceOf(expected.dtype), rounding);
    int failures = 0;
    for (int64_t i = 0; i < expected.size() && failures < 5; ++i) {
      if (!isHeld(type, mesh, coordinate, i))
        continue;
      double a = actual.number(i), b = expected.number(i);
      bool isClose = expected.isFloat() ? a == b || (std::isnan(a) && std::isnan(b)) ||
                                              std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))
                                        : actual.ints[i] == expected.ints[i];
      failures += !isClose;
      EXPECT_TRUE(isClose) << what << " element " << i << ": " << a << ", expected " << b << ", coordinate "
                           << coordinate;
    }
  }

  /// A kernel's arguments: operands filled, results poison or in place. A device's pointers are aligned, so its buffers
  /// end up to 15 bytes before the unmapped page.
  struct Arguments {
    std::vector<std::unique_ptr<GuardedBuffer>> buffers;
    std::vector<void *> pointers;
    size_t numOperands;

    Arguments(nn::FusedOp region, ArrayRef<const Tensor *> operands, size_t alignment) : numOperands(operands.size()) {
      auto add = [&](size_t bytes) {
        buffers.push_back(std::make_unique<GuardedBuffer>((bytes + alignment - 1) / alignment * alignment));
        pointers.push_back(buffers.back()->data);
      };
      for (const Tensor *operand : operands) {
        std::vector<std::byte> bytes = tensorToBytes(*operand);
        add(bytes.size());
        std::memcpy(pointers.back(), bytes.data(), bytes.size());
      }
      for (auto [i, type] : llvm::enumerate(region.getResultTypes()))
        if (int64_t operand = region.inPlaceOperand(unsigned(i)); operand >= 0)
          pointers.push_back(pointers[size_t(operand)]);
        else
          add(size_t(elementCount(cast<RankedTensorType>(type).getShape()) * byteSize(dtypeOf(type))));
    }
    std::vector<Tensor> results(nn::FusedOp region) const {
      std::vector<Tensor> results;
      for (auto [i, type] : llvm::enumerate(region.getResultTypes()))
        results.push_back(tensorFromBytes(dtypeOf(type), cast<RankedTensorType>(type).getShape(),
                                          static_cast<std::byte *>(pointers[numOperands + i])));
      return results;
    }
  };

  static std::vector<int64_t> scalarsOf(nn::FusedOp region, const dist::Mesh &mesh, int64_t coordinate) {
    std::vector<int64_t> scalars;
    for (auto scalar : region.getScalarsAttr().getAsRange<nn::KernelScalarAttr>()) {
      dist::SubDim sub = cast<dist::ShardingAttr>(scalar.getDim()).getValue().dims[0][0];
      dist::Range held = dist::heldDigits(sub, mesh, mesh.coordinate(coordinate));
      scalars.push_back(scalar.getKind() == nn::KernelScalarKind::extent ? held.extent : held.start);
    }
    return scalars;
  }

  /// The device's kernel of `region`: the same bits, whatever order its threads run in.
  std::vector<Tensor> callOnDevice(nn::FusedOp region, ArrayRef<const Tensor *> operands, const dist::Mesh &mesh,
                                   int64_t coordinate) {
    std::vector<int64_t> scalars = scalarsOf(region, mesh, coordinate);
    Arguments first(region, operands, 16);
    onDevice->run(region, first.pointers, scalars, HPC_BLOCKS_FORWARD);
    for (HpcBlockOrder order : {HPC_BLOCKS_REVERSE, HPC_BLOCKS_RANDOM}) {
      Arguments again(region, operands, 16);
      onDevice->run(region, again.pointers, scalars, order);
      for (auto [i, type] : llvm::enumerate(region.getResultTypes())) {
        size_t bytes = size_t(elementCount(cast<RankedTensorType>(type).getShape()) * byteSize(dtypeOf(type)));
        EXPECT_EQ(std::memcmp(first.pointers[operands.size() + i], again.pointers[operands.size() + i], bytes), 0)
            << region.getSymbol().str() << ": result " << i << " depends on the order of threads, " << order;
      }
    }
    return first.results(region);
  }

  /// Calls the kernel of `region` in two parts, the later rows first.
  std::vector<Tensor> call(const LoadedCode &code, nn::FusedOp region, ArrayRef<const Tensor *> operands,
                           const dist::Mesh &mesh, int64_t coordinate) {
    Arguments given(region, operands, 1);
    std::vector<void *> &arguments = given.pointers;
    std::vector<int64_t> scalars = scalarsOf(region, mesh, coordinate);
    LoadedCode::Function function = code.find(region.getSymbol());
    EXPECT_NE(function, nullptr) << region.getSymbol().str();
    int64_t rows = int64_t(*region.getRows());
    function(arguments.data(), scalars.data(), rows / 2, rows);
    function(arguments.data(), scalars.data(), 0, rows / 2);
    ++numKernelRuns;
    expectSameInOneCall(function, region, arguments, operands, scalars);
    return given.results(region);
  }

  /// The same bits, whoever computes which rows: all in one call here.
  void expectSameInOneCall(LoadedCode::Function function, nn::FusedOp region, std::vector<void *> arguments,
                           ArrayRef<const Tensor *> operands, const std::vector<int64_t> &scalars) {
    if (region.getInPlace())
      return; // the operands are gone
    std::vector<std::unique_ptr<GuardedBuffer>> buffers;
    std::vector<void *> again = arguments;
    for (auto [i, type] : llvm::enumerate(region.getResultTypes())) {
      size_t bytes = size_t(elementCount(cast<RankedTensorType>(type).getShape()) * byteSize(dtypeOf(type)));
      buffers.push_back(std::make_unique<GuardedBuffer>(bytes));
      again[operands.size() + i] = buffers.back()->data;
    }
    function(again.data(), scalars.data(), 0, int64_t(*region.getRows()));
    for (auto [i, type] : llvm::enumerate(region.getResultTypes())) {
      size_t bytes = size_t(elementCount(cast<RankedTensorType>(type).getShape()) * byteSize(dtypeOf(type)));
      EXPECT_EQ(std::memcmp(again[operands.size() + i], arguments[operands.size() + i], bytes), 0)
          << region.getSymbol().str() << ": result " << i << " depends on how its rows are shared out";
    }
  }

  /// 1. The interpreter's answer does not change by the passes. 2. Every region's machine code gives what the
  /// interpreter gives. The passes run on the first call alone.
  void check(StringRef function, const std::vector<Tensor> &inputs, bool partitioned = false) {
    ASSERT_TRUE(module);
    dist::Mesh mesh = partitioned ? dist::meshOf(*module) : dist::Mesh{};
    RunOptions options;
    auto run = [&](const RunOptions &options) {
      auto op = module->lookupSymbol<func::FuncOp>(function);
      return partitioned ? runPartitioned(op, inputs, mesh, options) : runFunction(op, inputs, options);
    };
    if (!compiled) {
      compiled = true;
      OwningOpRef<ModuleOp> before(module->clone());
      runPasses();
      if (HasFatalFailure())
        return;
      auto op = before->lookupSymbol<func::FuncOp>(function);
      Expected<std::vector<Tensor>> serial =
          partitioned ? runPartitioned(op, inputs, mesh, options) : runFunction(op, inputs, options);
      ASSERT_TRUE(serial.ok()) << serial.status().text();
      Expected<std::vector<Tensor>> fused = run(options);
      ASSERT_TRUE(fused.ok()) << fused.status().text();
      for (size_t i = 0; i < serial->size(); ++i)
        expectClose((*fused)[i], (*serial)[i], RankedTensorType::get((*serial)[i].shape, Float32Type::get(&context)),
                    mesh, 0, "interpreted after the passes, result " + std::to_string(i));
    }
    DenseMap<Value, LocalTensors> values;
    options.observe = [&](Value value, const LocalTensors &tensors) {
      values[value] = tensors;
      return Status();
    };
    Expected<std::vector<Tensor>> results = run(options);
    ASSERT_TRUE(results.ok()) << results.status().text();
    if (!(*module)->hasAttr("hpc.code"))
      return; // aliases alone
    LoadedCode code(*module);
    module->lookupSymbol<func::FuncOp>(function).walk([&](nn::FusedOp region) -> void {
      for (int64_t coordinate = 0; coordinate < mesh.numCoordinates(); ++coordinate) {
        SmallVector<const Tensor *> operands;
        for (Value operand : region.getOperands()) {
          ASSERT_TRUE(values.contains(operand))
              << region.getSymbol().str() << ": the interpreter did not show an operand";
          operands.push_back(values.lookup(operand)[coordinate].get());
        }
        std::vector<Tensor> actual = call(code, region, operands, mesh, coordinate);
        std::vector<Tensor> device = callOnDevice(region, operands, mesh, coordinate);
        for (auto [i, result] : llvm::enumerate(region.getResults())) {
          std::string what = region.getSymbol().str() + " result " + std::to_string(i);
          expectClose(actual[i], *values.lookup(result)[coordinate], result.getType(), mesh, coordinate, what,
                      roundingInside(region));
          expectClose(device[i], *values.lookup(result)[coordinate], result.getType(), mesh, coordinate,
                      what + " on the device", roundingInside(region));
        }
      }
    });
  }

  /// A body of @main from its arguments to %r.
  void checkBody(const std::string &arguments, const std::string &body, const std::string &type,
                 const std::vector<Tensor> &inputs) {
    parse("func.func @main(" + arguments + ") -> " + type + " {\n" + body + "\n  return %r : " + type + "\n}");
    if (!HasFatalFailure())
      check("main", inputs);
  }
};

/// Numbers without a pattern, in [-3, 3).
inline Tensor someFloats(ArrayRef<int64_t> shape, unsigned seed = 1) {
  Tensor tensor(DType::F32, shape);
  uint32_t state = seed * 2654435761u + 12345u;
  for (double &value : tensor.floats) {
    state = state * 1664525u + 1013904223u;
    value = double(float((state >> 8) / double(1 << 24) * 6 - 3));
  }
  return tensor;
}
inline Tensor someInts(ArrayRef<int64_t> shape, std::vector<int64_t> values) {
  Tensor tensor(DType::I64, shape);
  tensor.ints = std::move(values);
  return tensor;
}

} // namespace hpc::test
