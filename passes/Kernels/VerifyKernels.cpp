// Guarantees of phase kernels to lower: every op has a provider (compiler/Providers.h), every region code.
#include "compiler/Accumulations.h"
#include "compiler/Dialect/NN/Ports.h"
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
struct Range {
  int64_t least, most;
};
/// The whole numbers that a number of a kernel may be in any step, as far as step scalars and arithmetic tell.
std::optional<Range> rangeOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *holder = argument.getOwner()->getParentOp();
    if (auto function = dyn_cast<func::FuncOp>(holder)) {
      std::optional<int64_t> largest = nn::argumentPort(function, argument.getArgNumber()).largest;
      return largest ? std::optional<Range>({0, *largest}) : std::nullopt;
    }
    return rangeOf(holder->getOperand(argument.getArgNumber()));
  }
  Operation *op = value.getDefiningOp();
  if (auto region = dyn_cast<nn::FusedOp>(op))
    return rangeOf(region.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
  if (isa<nn::ReshapeOp>(op))
    return rangeOf(op->getOperand(0));
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    auto number = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    if (!number || !number.isSplat())
      return std::nullopt;
    const int64_t only = number.getSplatValue<APInt>().getSExtValue();
    return Range{only, only};
  }
  if (!isa<nn::AddOp, nn::MulOp>(op))
    return std::nullopt;
  std::optional<Range> lhs = rangeOf(op->getOperand(0)), rhs = rangeOf(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  SmallVector<int64_t> ends;
  for (int64_t x : {lhs->least, lhs->most})
    for (int64_t y : {rhs->least, rhs->most}) {
      int64_t end = 0;
      if (isa<nn::AddOp>(op) ? __builtin_add_overflow(x, y, &end) : __builtin_mul_overflow(x, y, &end))
        return std::nullopt;
      ends.push_back(end);
    }
  return Range{*llvm::min_element(ends), *llvm::max_element(ends)};
}

/// A state that is written in part is written where it is, and in no step beside it.
LogicalResult verifyUpdate(nn::UpdateSliceOp update, nn::FusedOp region) {
  Value yielded = update.getResult();
  auto results = region.getBody().front().getTerminator()->getOperands();
  const unsigned number = unsigned(llvm::find(results, yielded) - results.begin());
  auto state = dyn_cast<BlockArgument>(update.getState());
  if (number == results.size() || !state || region.inPlaceOperand(number) != int64_t(state.getArgNumber()))
    return userError(update, ErrorKind::Internal)
           << "nn.update_slice of '" << nodeName(update.getLoc())
           << "' does not write its state where it is: the function has to return the result with nn.writes, and nothing may read the state after it";
  const size_t dim = size_t(update.getDim());
  const int64_t last = nn::shapeOf(update.getState())[dim] - nn::shapeOf(update.getRows())[dim];
  std::optional<Range> range = rangeOf(update.getPosition());
  if (!range || range->least < 0 || (range->most > last && !update.getWraps()))
    return userError(update, ErrorKind::Model)
           << "nn.update_slice of '" << nodeName(update.getLoc()) << "' writes from a position on that has to be " << (update.getWraps() ? "0 or more" : "in 0 to " + std::to_string(last)) << " in each step, and "
           << (range ? "is in " + std::to_string(range->least) + " to " + std::to_string(range->most) : std::string("may be any number"))
           << "; make it of step scalars with nn.largest";
  return success();
}

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
    for (auto update : region.getBody().getOps<nn::UpdateSliceOp>())
      if (failed(verifyUpdate(update, region)))
        return failure();
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
