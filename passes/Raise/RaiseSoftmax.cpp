// exp(x - max(x)) / sum(exp(x - max(x))) over the last dim becomes nn.softmax. Without the maximum it is left: it
// overflows earlier.
#include "passes/Raise/Passes.h"
#include "passes/Raise/RowReduction.h"
#include "passes/Raise/Simplify.h"

namespace hpc {

#define GEN_PASS_DEF_RAISESOFTMAX
#include "passes/Raise/Passes.h.inc"

static LogicalResult raise(Operation *op, Value numerator, Value sum, PatternRewriter &rewriter) {
  auto exponential = numerator.getDefiningOp<nn::ExpOp>();
  auto shifted = exponential ? exponential.getOperand().getDefiningOp<nn::SubOp>() : nn::SubOp();
  if (!shifted || reducedOverLast(sum, ReduceKind::Sum) != numerator ||
      reducedOverLast(shifted.getRhs(), ReduceKind::Max) != shifted.getLhs())
    return failure();
  rewriter.replaceOpWithNewOp<nn::SoftmaxOp>(op, shifted.getLhs());
  return success();
}

static LogicalResult raiseDivision(nn::DivOp op, PatternRewriter &rewriter) {
  return raise(op, op.getLhs(), op.getRhs(), rewriter);
}

static LogicalResult raiseProduct(nn::MulOp op, PatternRewriter &rewriter) {
  for (unsigned side : {1u, 0u})
    if (auto reciprocal = op->getOperand(side).getDefiningOp<nn::ReciprocalOp>())
      if (succeeded(raise(op, op->getOperand(1 - side), reciprocal.getOperand(), rewriter)))
        return success();
  return failure();
}

namespace {
struct RaiseSoftmax : impl::RaiseSoftmaxBase<RaiseSoftmax> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(raiseDivision);
    patterns.add(raiseProduct);
    if (failed(rewriteToTheEnd(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
