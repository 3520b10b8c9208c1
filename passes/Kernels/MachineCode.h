// From scf and arith to the bytes of an ELF shared object, in process: MLIR to LLVM IR, O3, x86-64 code, lld.
#pragma once

#include "compiler/MLIR.h"

namespace llvm {
class TargetMachine;
}

namespace hpc::kernels {

/// What code may use of a CPU.
struct CpuFeature {
  const char *llvmName;
  const char *cpuinfoName;
  bool inV3; ///< part of x86-64-v3
};
/// The features that are worth generating for, in a fixed order.
ArrayRef<CpuFeature> knownCpuFeatures();

/// The vectors that a CPU has: how many bytes, how many registers of them.
struct VectorUnit {
  int64_t bytes, registers;
};
/// Of "host" or "x86-64-v3"; what features say, as everything else about code.
VectorUnit vectorUnitOf(StringRef cpu);

struct MachineCode {
  std::string bytes;                    ///< an ELF shared object
  std::vector<std::string> cpuFeatures; ///< names as in /proc/cpuinfo
};

/// LLVM's x86-64 with the features of "host" or "x86-64-v3", which it appends to `cpuFeatures`. Null after a diagnostic.
std::unique_ptr<llvm::TargetMachine> makeHostTarget(StringRef cpu, std::vector<std::string> &cpuFeatures, Location loc);

/// Compiles all functions of `kernels` (consumed) for "host" or "x86-64-v3". The same functions give the same bytes.
/// Fails with a diagnostic at `loc`.
FailureOr<MachineCode> compileKernels(ModuleOp kernels, StringRef cpu, Location loc);

} // namespace hpc::kernels
