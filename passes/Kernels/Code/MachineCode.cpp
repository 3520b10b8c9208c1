// The back end of the kernels. Features, not a CPU's name, determine the code, so that a plan can list what it needs.
#include "passes/Kernels/Code/MachineCode.h"

#include "passes/Kernels/Code/LLVMPipeline.h"
#include "passes/Kernels/Code/SharedObject.h"

#include "compiler/Diagnostics.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <deque>

namespace hpc::kernels {

ArrayRef<CpuFeature> knownCpuFeatures() {
  static const CpuFeature features[] = {{"sse3", "pni", true},           {"ssse3", "ssse3", true},
                                        {"sse4.1", "sse4_1", true},      {"sse4.2", "sse4_2", true},
                                        {"popcnt", "popcnt", true},      {"avx", "avx", true},
                                        {"avx2", "avx2", true},          {"fma", "fma", true},
                                        {"f16c", "f16c", true},          {"bmi", "bmi1", true},
                                        {"bmi2", "bmi2", true},          {"lzcnt", "abm", true},
                                        {"movbe", "movbe", true},        {"avx512f", "avx512f", false},
                                        {"avx512cd", "avx512cd", false}, {"avx512bw", "avx512bw", false},
                                        {"avx512dq", "avx512dq", false}, {"avx512vl", "avx512vl", false},
                                        {"avx512bf16", "avx512_bf16", false, "llvm.x86.avx512bf16."}};
  return features;
}

VectorUnit vectorUnitOf(StringRef cpu) {
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  auto has = [&](StringRef name) {
    return llvm::any_of(knownCpuFeatures(), [&](const CpuFeature &feature) {
      return feature.llvmName == name && (cpu == "host" ? host.lookup(name) : feature.inV3);
    });
  };
  if (has("avx512f") && has("avx512vl"))
    return {64, 32, has("avx512bf16") && !host.lookup("amx-bf16")};
  return {has("avx") ? 32 : 16, 16};
}

static InFlightDiagnostic codeError(Location loc, const Twine &what) {
  return userError(loc, ErrorKind::Internal) << "kernels: " << what;
}

/// By LLVM's list of features. Null without a back end.
static std::unique_ptr<llvm::TargetMachine> targetOf(StringRef features) {
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  return std::unique_ptr<llvm::TargetMachine>(
      target ? target->createTargetMachine(triple, "x86-64", features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                           std::nullopt, llvm::CodeGenOptLevel::Aggressive)
             : nullptr);
}

std::unique_ptr<llvm::TargetMachine> makeHostTarget(StringRef cpu, std::vector<std::string> &cpuFeatures, Location loc) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  if (cpu != "host" && cpu != "x86-64-v3") {
    userError(loc, ErrorKind::Usage) << "cpu=" << cpu << " is unknown; use host or x86-64-v3";
    return nullptr;
  }
  std::string list;
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  for (const CpuFeature &feature : knownCpuFeatures()) {
    bool has = cpu == "host" ? host.lookup(feature.llvmName) : feature.inV3;
    list += std::string(list.empty() ? "" : ",") + (has ? "+" : "-") + feature.llvmName;
    if (has)
      cpuFeatures.push_back(feature.cpuinfoName);
  }
  std::unique_ptr<llvm::TargetMachine> target = targetOf(list);
  if (!target)
    codeError(loc, "LLVM has no x86-64 back end");
  return target;
}

namespace {
using Bytes = SmallVector<char, 0>;

struct HostKernel {
  std::string symbol;
  KernelCache::Key key;
  Bytes object;
  bool isMade = false; ///< there is an object
  bool isKept = false; ///< it comes from the cache
};

/// Removes the kernel's name, which only the linked object has: equal code may have other names elsewhere.
void removeName(ModuleOp kernel, StringRef symbol) {
  SymbolTable table(kernel);
  std::string inner = (symbol + ".rows").str();
  if (failed(table.rename(table.lookup(symbol), objectFunctionName)) ||
      failed(table.rename(table.lookup(inner), std::string(objectFunctionName) + ".rows")))
    llvm_unreachable("a module of one kernel has no other of the name");
}

/// Adds the features, by their names in /proc/cpuinfo, that the kernel's intrinsics require.
void addFeaturesAskedFor(ModuleOp kernel, llvm::StringSet<> &names) {
  kernel.walk([&](LLVM::CallIntrinsicOp call) {
    for (const CpuFeature &feature : knownCpuFeatures())
      if (feature.intrinsics && call.getIntrin().starts_with(feature.intrinsics))
        names.insert(feature.cpuinfoName);
  });
}

/// The key has everything that determines an object: no printing flag omits anything from bytecode.
KernelCache::Key keyOf(const KernelCache &cache, ModuleOp kernel, StringRef cpuFeatures) {
  std::string code;
  llvm::raw_string_ostream stream(code);
  if (failed(writeBytecodeToFile(kernel, stream)))
    llvm_unreachable("the current version of bytecode can always be written");
  return cache.keyOf({"x86-64 object", cpuFeatures, code});
}

bool makeObject(llvm::Module &module, llvm::TargetMachine &target, Bytes &object) {
  optimizeKernels(module, target);
  return succeeded(emitFile(module, target, llvm::CodeGenFileType::ObjectFile, object));
}
} // namespace

struct HostKernels::Work {
  const KernelCache *cache;
  Location loc;
  LLVMLowering lowering;
  std::vector<std::string> cpuFeatures; ///< that code may use
  llvm::StringSet<> askedFor;           ///< features with intrinsics that some kernel calls
  std::unique_ptr<llvm::TargetMachine> target; ///< of the caller's thread; null where there is none
  std::deque<HostKernel> kernels;              ///< their addresses stay
  llvm::DefaultThreadPool pool;                ///< last, so that it ends before the members that its threads write

  Work(MLIRContext *context, StringRef cpu, const KernelCache *cache, Location loc)
      : cache(cache), loc(loc), lowering(context), target(makeHostTarget(cpu, cpuFeatures, loc)) {}

  LogicalResult start(ModuleOp module, HostKernel &kernel) {
    if (failed(lowering.run(module)))
      return codeError(loc, "'" + kernel.symbol + "' does not lower to LLVM");
    auto context = std::make_unique<llvm::LLVMContext>();
    std::unique_ptr<llvm::Module> code = translateKernels(module, *context, *target);
    if (!code)
      return codeError(loc, "no LLVM IR was made of '" + kernel.symbol + "'");
    pool.async([context = std::move(context), code = std::move(code), &kernel, features = target->getTargetFeatureString()] {
      kernel.isMade = makeObject(*code, *targetOf(features), kernel.object);
    });
    return success();
  }

  /// Code that cannot be stored is made again the next time; that is no reason to fail now.
  void keepNew() const {
    for (const HostKernel &kernel : kernels)
      if (!kernel.isKept)
        if (Status status = cache->keep(kernel.key, kernel.object); !status.ok()) {
          mlir::emitWarning(loc) << status.message() << ", or leave it out: this compilation has all its kernels, the next will "
                                                        "make some of them again";
          return;
        }
  }
};

HostKernels::HostKernels(MLIRContext *context, StringRef cpu, const KernelCache *cache, Location loc)
    : work(std::make_unique<Work>(context, cpu, cache, loc)) {}
HostKernels::~HostKernels() = default;

LogicalResult HostKernels::add(StringRef symbol, OwningOpRef<ModuleOp> module) {
  if (!work->target)
    return failure(); // with the diagnostic that it has emitted
  HostKernel &kernel = work->kernels.emplace_back();
  kernel.symbol = symbol;
  removeName(*module, symbol);
  addFeaturesAskedFor(*module, work->askedFor);
  if (work->cache) {
    kernel.key = keyOf(*work->cache, *module, work->target->getTargetFeatureString());
    if (std::optional<Bytes> object = work->cache->find(kernel.key)) {
      kernel.object = std::move(*object);
      kernel.isKept = kernel.isMade = true;
      return success();
    }
  }
  return work->start(*module, kernel);
}

FailureOr<MachineCode> HostKernels::finish() {
  work->pool.wait();
  std::vector<LinkedObject> objects;
  for (HostKernel &kernel : work->kernels) {
    if (!kernel.isMade)
      return codeError(work->loc, "LLVM cannot write x86-64 objects");
    objects.push_back({kernel.symbol, kernel.object});
  }
  if (work->cache)
    work->keepNew();
  FailureOr<std::string> bytes = linkSharedObject(objects, work->loc);
  if (failed(bytes))
    return failure();
  // A machine may lack the features whose intrinsics no kernel calls.
  std::vector<std::string> needed = work->cpuFeatures;
  for (const CpuFeature &feature : knownCpuFeatures())
    if (feature.intrinsics && !work->askedFor.contains(feature.cpuinfoName))
      llvm::erase(needed, feature.cpuinfoName);
  return MachineCode{std::move(*bytes), std::move(needed)};
}

} // namespace hpc::kernels
