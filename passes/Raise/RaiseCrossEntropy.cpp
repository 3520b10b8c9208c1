// A loss of one label a row, if nobody else reads the log-probabilities: then they need not all be computed.
#include "passes/Raise/CrossEntropyMatch.h"
#include "passes/Raise/Passes.h"
#include "passes/Raise/Scalars.h"
#include "passes/Raise/Simplify.h"

namespace hpc {

#define GEN_PASS_DEF_RAISECROSSENTROPY
#include "passes/Raise/Passes.h.inc"

static LogicalResult raise(nn::GatherNdOp op, PatternRewriter &rewriter) {
  std::optional<CrossEntropyMatch> match = matchCrossEntropy(op);
  if (!match)
    return failure();
  Location loc = op.getLoc();
  ArrayRef<int64_t> shape = nn::shapeOf(match->logits);
  auto typeOf = [](Value like, ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, nn::tensorType(like).getElementType());
  };
  Value labels = nn::ReshapeOp::create(rewriter, loc, typeOf(match->labels, shape.drop_back()), match->labels);
  if (match->mayBeNegative) {
    Value isNegative = nn::CompareOp::create(rewriter, loc, nn::ComparePredicate::lt, labels, makeScalar(rewriter, loc, labels, 0));
    Value fromEnd = nn::AddOp::create(rewriter, loc, labels, makeScalar(rewriter, loc, labels, double(shape.back())));
    labels = nn::SelectOp::create(rewriter, loc, isNegative, fromEnd, labels);
  }
  auto entropy = nn::CrossEntropyOp::create(rewriter, loc, match->logits, labels, nn::CrossEntropyOp::ignoresNone);
  Value picked = nn::NegOp::create(rewriter, loc, entropy.getLoss());
  rewriter.replaceOpWithNewOp<nn::ReshapeOp>(op, op.getType(), picked);
  return success();
}

namespace {
struct RaiseCrossEntropy : impl::RaiseCrossEntropyBase<RaiseCrossEntropy> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(raise);
    if (failed(rewriteToTheEnd(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
