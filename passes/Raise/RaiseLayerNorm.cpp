// A norm that an exporter wrote as several ops becomes one op, then takes in the weight and the bias that follow it.
#include "passes/Raise/NormMatch.h"
#include "passes/Raise/Passes.h"
#include "passes/Raise/Simplify.h"

namespace hpc {

#define GEN_PASS_DEF_RAISELAYERNORM
#include "passes/Raise/Passes.h.inc"

template <typename Root> static LogicalResult raiseNorm(Root op, PatternRewriter &rewriter) {
  std::optional<NormMatch> match = matchNorm(op);
  if (!match)
    return failure();
  APFloat epsilon(match->epsilon);
  if (match->subtractsMean)
    rewriter.replaceOpWithNewOp<nn::LayerNormOp>(op, op.getType(), match->input, Value(), Value(), epsilon);
  else
    rewriter.replaceOpWithNewOp<nn::RmsNormOp>(op, op.getType(), match->input, Value(), epsilon);
  return success();
}

/// `vector` as [e]: it may have leading dims of size 1.
static Value asVector(Value vector, int64_t size, PatternRewriter &rewriter) {
  ArrayRef<int64_t> shape = nn::shapeOf(vector);
  if (shape.empty() || shape.back() != size || nn::tensorType(vector).getNumElements() != size)
    return {};
  if (shape.size() == 1)
    return vector;
  auto type = RankedTensorType::get({size}, nn::tensorType(vector).getElementType());
  return nn::ReshapeOp::create(rewriter, vector.getLoc(), type, vector);
}

/// norm(x) * w, where nothing else reads norm(x).
static LogicalResult absorbWeight(nn::MulOp op, PatternRewriter &rewriter) {
  for (unsigned side : {0u, 1u}) {
    Operation *norm = op->getOperand(side).getDefiningOp();
    if (!isa_and_present<nn::LayerNormOp, nn::RmsNormOp>(norm) || !norm->hasOneUse() || norm->getNumOperands() != 1 ||
        norm->getResult(0).getType() != op.getType())
      continue;
    Value weight = asVector(op->getOperand(1 - side), nn::shapeOf(op.getResult()).back(), rewriter);
    if (!weight)
      continue;
    if (auto layerNorm = dyn_cast<nn::LayerNormOp>(norm))
      rewriter.replaceOpWithNewOp<nn::LayerNormOp>(op, op.getType(), layerNorm.getOperand(), weight, Value(),
                                                   layerNorm.getEpsilon());
    else
      rewriter.replaceOpWithNewOp<nn::RmsNormOp>(op, op.getType(), norm->getOperand(0), weight,
                                                 cast<nn::RmsNormOp>(norm).getEpsilon());
    return success();
  }
  return failure();
}

static LogicalResult absorbBias(nn::AddOp op, PatternRewriter &rewriter) {
  for (unsigned side : {0u, 1u}) {
    auto norm = op->getOperand(side).getDefiningOp<nn::LayerNormOp>();
    if (!norm || !norm->hasOneUse() || norm.getBias() || norm.getType() != op.getType())
      continue;
    Value bias = asVector(op->getOperand(1 - side), nn::shapeOf(op.getResult()).back(), rewriter);
    if (!bias)
      continue;
    rewriter.replaceOpWithNewOp<nn::LayerNormOp>(op, op.getType(), norm.getOperand(), norm.getWeight(), bias,
                                                 norm.getEpsilon());
    return success();
  }
  return failure();
}

namespace {
struct RaiseLayerNorm : impl::RaiseLayerNormBase<RaiseLayerNorm> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(raiseNorm<nn::DivOp>);
    patterns.add(raiseNorm<nn::MulOp>);
    patterns.add(absorbWeight);
    patterns.add(absorbBias);
    if (failed(rewriteToTheEnd(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
