// The steps that hosts and devices share.
#include "passes/Kernels/Code/LLVMPipeline.h"

#include "passes/Kernels/Code/LoopAnnotation.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"

namespace hpc::kernels {

LLVMLowering::LLVMLowering(MLIRContext *context) : manager(context) {
  manager.enableVerifier(true);
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

std::unique_ptr<llvm::Module> translateKernels(ModuleOp kernels, llvm::LLVMContext &context,
                                               const llvm::TargetMachine &target) {
  mlir::registerBuiltinDialectTranslation(*kernels.getContext());
  mlir::registerLLVMDialectTranslation(*kernels.getContext());
  kernels.walk([](LLVM::BrOp branch) { // the lowering of loops keeps the annotation as it was
    if (auto annotation = branch->getAttrOfType<LLVM::LoopAnnotationAttr>(loopAnnotationName)) {
      branch->removeAttr(loopAnnotationName);
      branch.setLoopAnnotationAttr(annotation);
    }
  });
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return nullptr;
  module->setTargetTriple(target.getTargetTriple());
  module->setDataLayout(target.createDataLayout());
  for (llvm::Function &function : *module)
    function.addFnAttr(llvm::Attribute::NoUnwind); // no tables for a stack that is never unwound
  return module;
}

void optimizeKernels(llvm::Module &module, llvm::TargetMachine &target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

LogicalResult emitFile(llvm::Module &module, llvm::TargetMachine &target, llvm::CodeGenFileType type,
                       SmallVector<char, 0> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager codegen;
  if (target.addPassesToEmitFile(codegen, stream, nullptr, type))
    return failure();
  codegen.run(module);
  return success();
}

} // namespace hpc::kernels
