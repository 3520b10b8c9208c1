// From scf and arith to LLVM's output, for any target of LLVM.
#pragma once

#include "compiler/MLIR.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace hpc::kernels {

/// scf, arith, math and func become the llvm dialect, in one module after the other.
class LLVMLowering {
public:
  explicit LLVMLowering(MLIRContext *context);
  LogicalResult run(ModuleOp kernels) { return manager.run(kernels); }

private:
  PassManager manager;
};
/// LLVM IR for a target, of a module in the llvm dialect. Null where there is none.
std::unique_ptr<llvm::Module> translateKernels(ModuleOp kernels, llvm::LLVMContext &context,
                                               const llvm::TargetMachine &target);
/// Runs LLVM's O3 pipeline.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &target);
/// An object or assembly.
LogicalResult emitFile(llvm::Module &module, llvm::TargetMachine &target, llvm::CodeGenFileType type,
                       SmallVector<char, 0> &bytes);

} // namespace hpc::kernels
