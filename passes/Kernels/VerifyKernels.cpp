// Guarantees of phase kernels to lower: every op has a provider (compiler/Providers.h), every region code.
#include "compiler/Accumulations.h"
#include "compiler/Diagnostics.h"
#include "compiler/ImplicitWindows.h"
#include "compiler/Location.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/Providers.h"
#include "passes/Kernels/Fusion/InPlace.h"
#include "passes/Kernels/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "passes/Kernels/Passes.h.inc"

namespace {
LogicalResult verifyOp(Operation *op, bool hasCode) {
  if (isa<dist::FillTailOp>(op)) {
    for (Operation *user : op->getUsers())
      if (!isa<nn::MatmulOp>(user))
        return userError(op, ErrorKind::Internal)
               << "dist.fill_tail of '" << nodeName(op->getLoc()) << "' is read by " << user->getName()
               << ", only a matmul can leave out a tail; run hpc-fuse-regions";
    return success();
  }
  if (isa<dist::RawBlockOp>(op)) {
    for (Operation *user : op->getUsers())
      if (!isa<nn::MatmulOp, dist::FillTailOp>(user))
        return userError(op, ErrorKind::Internal)
               << "dist.raw_block of '" << nodeName(op->getLoc()) << "' is read by " << user->getName()
               << ", only a matmul reads from an offset on; run hpc-panel-products";
    return success();
  }
  if (addsInProduct(op)) {
    auto product = op->getOperand(1).getDefiningOp<nn::MatmulOp>();
    if (!product || summandOf(product) != op->getOperand(0) || !op->getOperand(0).hasOneUse())
      return userError(op, ErrorKind::Internal)
             << op->getName() << " of '" << nodeName(op->getLoc()) << "' has '" << addsInProductAttrName
             << "', but does not add a product to a sum, or something else reads one of them; run hpc-panel-products";
    return success();
  }
  if (isSeenAsWindows(op->getNumResults() == 1 ? op->getResult(0) : Value())) {
    for (Operation *user : op->getUsers())
      if (!isBufferAlias(user) && !isa<nn::MatmulOp>(user))
        return userError(op, ErrorKind::Internal)
               << op->getName() << " of '" << nodeName(op->getLoc()) << "' is not in memory, but " << user->getName()
               << " reads it; run hpc-multiply-windows";
    return success();
  }
  if (auto region = dyn_cast<nn::FusedOp>(op)) {
    for (Operation &inner : region.getBody().front())
      if (isa<CompositeOpInterface>(inner) && providerOf(&inner) != Provider::Region)
        return userError(&inner, ErrorKind::Internal)
               << inner.getName() << " in region '" << region.getSymbol() << "' has no provider on target '"
               << targetOf(op->getParentOfType<ModuleOp>()) << "'; run hpc-decompose-composites";
    if (!region.getRows() || !region.getScalars() || !hasCode)
      return userError(op, ErrorKind::Internal)
             << "region '" << region.getSymbol() << "' has no code; run hpc-emit-kernels";
    for (unsigned result = 0; result < region.getNumResults(); ++result)
      if (int64_t operand = region.inPlaceOperand(result);
          operand >= 0 && !kernels::canWriteOver(region, result, unsigned(operand)))
        return userError(op, ErrorKind::Internal)
               << "region '" << region.getSymbol() << "' writes result " << result << " over operand " << operand
               << ", but reads that at other elements too; take it out of in_place";
    return success();
  }
  if (Provider provider = providerOf(op); provider == Provider::None || provider == Provider::Region)
    return userError(op, ErrorKind::Internal)
           << op->getName() << " of '" << nodeName(op->getLoc())
           << "' is neither a library call nor in a fused region; run hpc-fuse-regions";
  return success();
}

struct VerifyKernelsPass : impl::VerifyKernelsBase<VerifyKernelsPass> {
  void runOnOperation() override {
    bool hasCode = (!hasTarget(getOperation(), hostTarget) || generatedCode(getOperation()).has_value()) &&
                   (!hasTarget(getOperation(), deviceTarget) || !deviceCode(getOperation()).empty());
    WalkResult verified = getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (failed(verifyOp(op, hasCode)))
        return WalkResult::interrupt();
      return isa<nn::FusedOp>(op) ? WalkResult::skip() : WalkResult::advance();
    });
    if (verified.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
} // namespace hpc
