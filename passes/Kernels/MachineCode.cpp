// The back end of the kernels. Features, not a CPU's name, decide what code is made, so that a plan says what it needs.
#include "passes/Kernels/MachineCode.h"

#include "passes/Kernels/LLVMPipeline.h"
#include "passes/Kernels/SharedObject.h"

#include "compiler/Diagnostics.h"

#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

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
                                        {"avx512dq", "avx512dq", false}, {"avx512vl", "avx512vl", false}};
  return features;
}

VectorUnit vectorUnitOf(StringRef cpu) {
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  auto has = [&](StringRef name) {
    return llvm::any_of(knownCpuFeatures(), [&](const CpuFeature &feature) {
      return feature.llvmName == name && (cpu == "host" ? host.lookup(name) : feature.inV3);
    });
  };
  return has("avx512f") && has("avx512vl") ? VectorUnit{64, 32} : VectorUnit{has("avx") ? 32 : 16, 16};
}

static InFlightDiagnostic fail(Location loc, const Twine &what) {
  return userError(loc, ErrorKind::Internal) << "kernels: " << what;
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
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    fail(loc, "LLVM has no x86-64 back end: " + error);
    return nullptr;
  }
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, "x86-64", list, llvm::TargetOptions(),
                                                                          llvm::Reloc::PIC_, std::nullopt,
                                                                          llvm::CodeGenOptLevel::Aggressive));
}

namespace {
using Bytes = SmallVector<char, 0>;

FailureOr<Bytes> emitObject(ModuleOp kernels, llvm::TargetMachine &target, Location loc) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateKernels(kernels, context, target);
  if (!module)
    return fail(loc, "no LLVM IR was made");
  optimizeKernels(*module, target);
  Bytes object;
  if (failed(emitFile(*module, target, llvm::CodeGenFileType::ObjectFile, object)))
    return fail(loc, "LLVM cannot write x86-64 objects");
  return object;
}
} // namespace

FailureOr<MachineCode> compileKernels(ModuleOp kernels, StringRef cpu, Location loc) {
  MachineCode code;
  std::unique_ptr<llvm::TargetMachine> target = makeHostTarget(cpu, code.cpuFeatures, loc);
  if (!target)
    return failure();
  if (failed(lowerToLLVMDialect(kernels)))
    return fail(loc, "the kernels do not lower to LLVM");
  FailureOr<Bytes> object = emitObject(kernels, *target, loc);
  if (failed(object))
    return failure();
  FailureOr<std::string> bytes = linkSharedObject(*object, loc);
  if (failed(bytes))
    return failure();
  code.bytes = std::move(*bytes);
  return code;
}

} // namespace hpc::kernels
