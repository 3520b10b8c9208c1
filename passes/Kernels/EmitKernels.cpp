// Every distinct region becomes a function; all functions become one shared object on the module.
// Regions of one symbol are equal (hpc-fuse-regions sees to it; checked here), so the first speaks for all.
#include "passes/Kernels/KernelScalars.h"
#include "passes/Kernels/MachineCode.h"
#include "passes/Kernels/Passes.h"
#include "passes/Kernels/RegionBody.h"
#include "passes/Kernels/RegionEmitter.h"
#include "passes/Kernels/RegionShape.h"

#include "compiler/Diagnostics.h"
#include "compiler/ModuleAttributes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hpc {
#define GEN_PASS_DEF_EMITKERNELS
#include "passes/Kernels/Passes.h.inc"

namespace {
/// `rows` and `scalars`, which lower reads.
void describe(nn::FusedOp region) {
  Builder b(region.getContext());
  SmallVector<Attribute> scalars;
  for (const kernels::KernelScalar &scalar : kernels::collectScalars(region))
    scalars.push_back(scalar.toAttribute(region.getContext()));
  region.setRows(kernels::countItems(region));
  region.setScalarsAttr(b.getArrayAttr(scalars));
}

struct EmitKernelsPass : impl::EmitKernelsBase<EmitKernelsPass> {
  using EmitKernelsBase::EmitKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect,
                    func::FuncDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // 1. The first region of every symbol.
    llvm::MapVector<StringRef, nn::FusedOp> distinct;
    WalkResult consistent = module.walk([&](nn::FusedOp region) {
      auto [first, isNew] = distinct.insert({region.getSymbol(), region});
      if (!isNew && !kernels::areEqual(first->second, region)) {
        userError(region, ErrorKind::Internal) << "two different regions are called '" << region.getSymbol() << "'";
        return WalkResult::interrupt();
      }
      describe(region);
      return WalkResult::advance();
    });
    if (consistent.wasInterrupted())
      return signalPassFailure();
    removeGeneratedCode(module);
    if (distinct.empty())
      return;
    if (targetOf(module) != hostTarget) {
      userError(module.getLoc(), ErrorKind::Unsupported) << targetAttrName << " = '" << targetOf(module) << "' has no code generator; use '"
                                                         << hostTarget << "'";
      return signalPassFailure();
    }
    // 2. One function each, in a module of their own.
    OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(&getContext()));
    for (auto &[symbol, region] : distinct)
      if (failed(kernels::emitRegion(region, *kernels)))
        return signalPassFailure();
    if (printKernels)
      llvm::errs() << *kernels << "\n";
    // 3. Machine code.
    FailureOr<kernels::MachineCode> code = kernels::compileKernels(*kernels, cpu, module.getLoc());
    if (failed(code))
      return signalPassFailure();
    setGeneratedCode(module, {ArrayRef<char>(code->bytes.data(), code->bytes.size()),
                              {code->cpuFeatures.begin(), code->cpuFeatures.end()}});
  }
};
} // namespace
} // namespace hpc
