// From scf and arith to the bytes of an ELF shared object, in process: MLIR to LLVM IR, O3, x86-64 code, lld.
// Every kernel is an object of its own, so that all cores make them and a cache can keep them; the result depends on
// the kernels alone.
#pragma once

#include "passes/Kernels/Code/KernelCache.h"

#include "compiler/MLIR.h"

namespace llvm {
class TargetMachine;
}

namespace hpc::kernels {

/// A CPU feature that code may use.
struct CpuFeature {
  const char *llvmName;
  const char *cpuinfoName;
  bool inV3; ///< part of x86-64-v3
  const char *intrinsics = nullptr; ///< prefix of the intrinsics that require it; null where all code may use it
};
/// The features that are worth generating for, in a fixed order.
ArrayRef<CpuFeature> knownCpuFeatures();

/// The vectors of a CPU: bytes of one, number of registers.
struct VectorUnit {
  int64_t bytes, registers;
  bool multipliesPairs = false; ///< of bf16 (AVX512-BF16), on CPUs without tiles: those with tiles multiply f32 as fast
};
/// For "host" or "x86-64-v3"; determined by features, like all code.
VectorUnit vectorUnitOf(StringRef cpu);

/// LLVM's x86-64 with the features of "host" or "x86-64-v3", which it appends to `cpuFeatures`. Null after a diagnostic.
std::unique_ptr<llvm::TargetMachine> makeHostTarget(StringRef cpu, std::vector<std::string> &cpuFeatures, Location loc);

struct MachineCode {
  std::string bytes;                    ///< an ELF shared object
  std::vector<std::string> cpuFeatures; ///< that a machine needs for it; names as in /proc/cpuinfo
};

/// Kernels on their way to machine code. MLIR's part is done on the caller's thread, LLVM's meanwhile on all others.
class HostKernels {
public:
  /// For "host" or "x86-64-v3". `cache` may be null.
  HostKernels(MLIRContext *context, StringRef cpu, const KernelCache *cache, Location loc);
  ~HostKernels();

  /// Takes a module with the function `symbol` and the functions that it calls. Fails with a diagnostic.
  LogicalResult add(StringRef symbol, OwningOpRef<ModuleOp> kernel);
  /// All that were added, in that order, linked. The same functions give the same bytes, whether they come from the
  /// cache or not, on however many cores. A cache that cannot be written to is a warning. Fails with a diagnostic.
  FailureOr<MachineCode> finish();

private:
  struct Work;
  std::unique_ptr<Work> work;
};

} // namespace hpc::kernels
