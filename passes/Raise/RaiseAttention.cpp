// Builds nn.attention from a match: operands in [b, h, s, d], the steps that are not causal as one bias and one mask of
// visible elements. An element that a selection hides does not depend on its score, whatever the score is.
#include "compiler/Dialect/NN/DropoutDraw.h"
#include "passes/Raise/AttentionMatch.h"
#include "passes/Raise/Passes.h"
#include "passes/Raise/Scalars.h"
#include "passes/Raise/Simplify.h"

#include <cmath>

namespace hpc {

#define GEN_PASS_DEF_RAISEATTENTION
#include "passes/Raise/Passes.h.inc"

/// Swaps the last two dims where `isTransposed`.
static Value straighten(OpBuilder &builder, Location loc, Value value, bool isTransposed) {
  if (!isTransposed)
    return value;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(nn::shapeOf(value).size())));
  std::swap(permutation.back(), *std::prev(permutation.end(), 2));
  return nn::TransposeOp::create(builder, loc, value, permutation);
}

static Value reshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  return nn::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, nn::tensorType(value).getElementType()),
                               value);
}

/// [s, d] -> [1, 1, s, d], [b, s, d] -> [b, 1, s, d].
static Value asRank4(OpBuilder &builder, Location loc, Value value) {
  ArrayRef<int64_t> shape = nn::shapeOf(value);
  if (shape.size() == 4)
    return value;
  int64_t batch = shape.size() == 3 ? shape[0] : 1;
  return reshape(builder, loc, value, {batch, 1, shape[shape.size() - 2], shape.back()});
}

/// A bias or mask that broadcasts to scores of rank `rank`, so that it broadcasts to [b, h, q, k].
static Value asRank4(OpBuilder &builder, Location loc, Value mask, size_t rank) {
  if (!mask)
    return mask;
  SmallVector<int64_t> shape(rank - nn::shapeOf(mask).size(), 1);
  llvm::append_range(shape, nn::shapeOf(mask));
  while (shape.size() < 4)
    shape.insert(shape.begin() + (shape.size() == 3 ? 1 : 0), 1); // [b, q, k] has its heads in b
  return nn::shapeOf(mask) == ArrayRef<int64_t>(shape) ? mask : reshape(builder, loc, mask, shape);
}

static Value buildCondition(OpBuilder &builder, Location loc, ArrayRef<Conjunct> conjuncts, Value condition = {}) {
  for (const Conjunct &conjunct : conjuncts) {
    Value part = conjunct.isNegated ? Value(nn::NotOp::create(builder, loc, conjunct.condition)) : conjunct.condition;
    condition = condition ? Value(nn::AndOp::create(builder, loc, condition, part)) : part;
  }
  return condition;
}

/// The steps applied to a score of 0, in the type of the last of them.
static Value buildBias(OpBuilder &builder, Location loc, ArrayRef<ScoreStep> steps) {
  Value bias;
  for (const ScoreStep &step : steps) {
    Type element = getElementTypeOrSelf((step.term ? step.term : step.low).getType());
    if (bias && getElementTypeOrSelf(bias.getType()) != element)
      bias = nn::CastOp::create(builder, loc, RankedTensorType::get(nn::shapeOf(bias), element), bias);
    if (step.term) {
      bias = bias ? Value(nn::AddOp::create(builder, loc, bias, step.term)) : step.term;
      continue;
    }
    if (!bias)
      bias = makeScalar(builder, loc, step.low, 0);
    bias = nn::SelectOp::create(builder, loc, buildCondition(builder, loc, step.visible), bias,
                                makeScalar(builder, loc, step.low, *scalarOf(step.low)));
  }
  return bias;
}

namespace {
/// The masks of an nn.attention; null where it has none.
struct Masks {
  Value bias, visible;
  FloatAttr hidden;
};
} // namespace

/// A score is visible if no selection hides it. If one number replaces all hidden scores and nothing was added before,
/// that number is the op's own; otherwise hidden scores are 0, and the bias is the result of the steps from 0.
static Masks buildMasks(OpBuilder &builder, Location loc, ArrayRef<ScoreStep> steps) {
  Masks masks;
  for (const ScoreStep &step : steps)
    if (!step.term)
      masks.visible = buildCondition(builder, loc, step.visible, masks.visible);
  ArrayRef<ScoreStep> added = steps.drop_until([](const ScoreStep &step) { return bool(step.term); });
  ArrayRef<ScoreStep> selected = steps.drop_back(added.size());
  auto isLater = [](const ScoreStep &step) { return !step.term; };
  auto isAsLow = [&](const ScoreStep &step) { return scalarOf(step.low) == scalarOf(selected.front().low); };
  if (masks.visible && llvm::none_of(added, isLater) && llvm::all_of(selected, isAsLow)) {
    masks.hidden = builder.getF64FloatAttr(*scalarOf(selected.front().low));
    steps = added;
  }
  masks.bias = buildBias(builder, loc, steps);
  return masks;
}

/// k or v of grouped attention, whose groups the exporter has repeated: [b, g, s, d] -> [b, g, 1, s, d] -> [b, g, r, s,
/// d] -> [b, g * r, s, d].
static Value beforeRepeat(Value value) {
  auto merge = value.getDefiningOp<nn::ReshapeOp>();
  auto repeat = merge ? merge.getOperand().getDefiningOp<nn::BroadcastOp>() : nn::BroadcastOp();
  auto source = repeat ? repeat.getOperand().getDefiningOp<nn::ReshapeOp>() : nn::ReshapeOp();
  if (!source)
    return {};
  ArrayRef<int64_t> shape = nn::shapeOf(source.getOperand()), apart = nn::shapeOf(source.getResult());
  ArrayRef<int64_t> repeated = nn::shapeOf(repeat.getResult()), merged = nn::shapeOf(value);
  if (shape.size() != 4 || repeated.size() != 5 || merged.size() != 4)
    return {};
  bool isRepeat = apart == ArrayRef<int64_t>({shape[0], shape[1], 1, shape[2], shape[3]}) &&
                  repeated.take_front(2) == shape.take_front(2) && repeated.drop_front(3) == shape.drop_front(2) &&
                  merged[0] == shape[0] && merged[1] == repeated[1] * repeated[2] &&
                  merged.drop_front(2) == shape.drop_front(2);
  return isRepeat ? source.getOperand() : Value();
}

/// q or k before the exporter's scale, by the square root of the whole on each; so that a repetition of groups can be
/// seen. Types that overflow early keep the scale: their scores may need it.
static Value withoutScale(Value value, double &scale) {
  if (getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() < 32)
    return value;
  for (std::optional<WithScalar> scaled = matchWithScalar<nn::MulOp>(value);
       scaled && scaled->other.getType() == value.getType() && std::isfinite(scale * scaled->number);
       scaled = matchWithScalar<nn::MulOp>(value)) {
    scale *= scaled->number;
    value = scaled->other;
  }
  return value;
}

static LogicalResult raiseAttention(nn::MatmulOp root, PatternRewriter &rewriter) {
  std::optional<AttentionMatch> match = matchAttention(root);
  if (!match)
    return failure();
  Location loc = root.getLoc();
  nn::MatmulOp scores = match->scores;
  size_t rank = nn::shapeOf(scores.getResult()).size();
  double scale = match->scale;
  Value query = withoutScale(scores.getLhs(), scale), key = withoutScale(scores.getRhs(), scale);
  query = asRank4(rewriter, loc, straighten(rewriter, loc, query, scores.getTransposeLhs()));
  key = asRank4(rewriter, loc, straighten(rewriter, loc, key, !scores.getTransposeRhs()));
  Value value = asRank4(rewriter, loc, straighten(rewriter, loc, root.getRhs(), root.getTransposeRhs()));
  Masks masks = buildMasks(rewriter, loc, match->mask.rest);
  auto type = RankedTensorType::get(
      {nn::shapeOf(query)[0], nn::shapeOf(query)[1], nn::shapeOf(query)[2], nn::shapeOf(value)[3]},
      nn::tensorType(query).getElementType());
  std::optional<int64_t> causal = match->mask.causalOffset;
  IntegerAttr offset = causal ? rewriter.getI64IntegerAttr(*causal) : IntegerAttr();
  Value bias = asRank4(rewriter, loc, masks.bias, rank), visible = asRank4(rewriter, loc, masks.visible, rank);
  auto attention = nn::AttentionOp::create(rewriter, loc, type, query, key, value, bias, rewriter.getF64FloatAttr(scale),
                                           offset, match->isGuarded ? rewriter.getUnitAttr() : UnitAttr());
  if (visible)
    attention.getVisibleMutable().assign(visible);
  attention.setHiddenAttr(masks.hidden);
  if (match->dropout)
    nn::addDropout(attention, *nn::dropoutOf(match->dropout));
  Value result = attention.getResult();
  if (result.getType() != root.getType())
    result = reshape(rewriter, loc, result, nn::shapeOf(root.getResult()));
  rewriter.replaceOp(root, result);
  return success();
}

/// The terms of a sum, in order; nullopt for more terms than a bias of attention has (a term counts as often as it is
/// added, so x + x of x + x of ... is unbounded).
static std::optional<SmallVector<ScoreStep>> termsOf(Value sum) {
  constexpr size_t maxTerms = 64;
  SmallVector<ScoreStep> terms;
  SmallVector<Value> pending{sum};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (auto add = value.getDefiningOp<nn::AddOp>()) {
      pending.push_back(add.getRhs());
      pending.push_back(add.getLhs());
    } else {
      terms.push_back({value, {}, {}});
    }
    if (terms.size() + pending.size() > maxTerms)
      return std::nullopt;
  }
  return terms;
}

/// An nn.attention that the model had already, with a causal mask as its bias.
static LogicalResult absorbCausalBias(nn::AttentionOp op, PatternRewriter &rewriter) {
  if (!op.getBias() || op.getCausalOffset() || op.getVisible())
    return failure();
  std::optional<SmallVector<ScoreStep>> terms = termsOf(op.getBias());
  MaskSplit mask = terms ? splitMask(*terms) : MaskSplit();
  if (!mask.causalOffset)
    return failure();
  Value bias = asRank4(rewriter, op.getLoc(), buildBias(rewriter, op.getLoc(), mask.rest), 4);
  rewriter.modifyOpInPlace(op, [&] {
    if (bias)
      op.getBiasMutable().assign(bias);
    else
      op.getBiasMutable().clear();
    op.setCausalOffset(uint64_t(*mask.causalOffset));
  });
  return success();
}

/// Keys and values of grouped attention need no repetition.
static LogicalResult dropRepeats(nn::AttentionOp op, PatternRewriter &rewriter) {
  Value key = beforeRepeat(op.getKey()), value = beforeRepeat(op.getValue());
  if (!key || !value || nn::shapeOf(key)[1] != nn::shapeOf(value)[1])
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.getKeyMutable().assign(key);
    op.getValueMutable().assign(value);
  });
  return success();
}

/// The weight of bools without known content on which an attention's bias or mask depends, if one is near them.
static nn::ParameterOp absentMask(nn::AttentionOp attention) {
  constexpr size_t mostSteps = 64; // slices, selections, sums: a bias computed from data takes more
  SmallVector<Value> pending;
  for (Value mask : {attention.getBias(), attention.getVisible()})
    if (mask)
      pending.push_back(mask);
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!pending.empty() && seen.size() < mostSteps) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto parameter = dyn_cast<nn::ParameterOp>(op);
        parameter && parameter.isAbsent() && nn::tensorType(parameter).getElementType().isInteger(1))
      return parameter;
    llvm::append_range(pending, op->getOperands());
  }
  return {};
}

/// One remark for all layers: the plan is right, and slower than it need be.
static void remarkAbsentMasks(Operation *root) {
  int64_t count = 0;
  nn::AttentionOp first;
  root->walk([&](nn::AttentionOp op) {
    if (absentMask(op) && ++count == 1)
      first = op;
  });
  if (count > 0)
    mlir::emitRemark(first.getLoc())
        << (count == 1 ? "an attention is" : std::to_string(count) + " attentions are")
        << " masked by weights whose content is not known here, the first by '" << absentMask(first).getName()
        << "': whether that is a causal mask is not known either, so nothing that it hides is left out, and cuDNN does not "
           "take it; compile where the external data is, without --no-weights, or keep the masks in the model's own file";
}

namespace {
struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateSimplifyPatterns(patterns);
    patterns.add(raiseAttention);
    patterns.add(absorbCausalBias);
    patterns.add(dropRepeats);
    if (failed(rewriteToTheEnd(getOperation(), std::move(patterns))))
      return signalPassFailure();
    remarkAbsentMasks(getOperation());
  }
};
} // namespace

} // namespace hpc
