// From the product with v back to q k^T, through casts from 16 bits to f32 around the softmax. A causal mask is taken
// only if the elements that it masks have weight exactly 0, as in nn.attention, in every row: a row whose other
// elements are masked too, by a number as low, would be uniform over the elements that the causal mask hides. A dropout
// of the weights numbers its elements as nn.attention does, whatever dims contain batch and heads.
#include "passes/Raise/AttentionMatch.h"

#include "compiler/Masks.h"
#include "passes/Raise/Scalars.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

namespace hpc {

namespace {
struct Chain {
  nn::MatmulOp scores;
  double scale = 1;
  SmallVector<ScoreStep> steps; ///< inside out
};
} // namespace

static bool isLow(Value value) {
  std::optional<double> number = scalarOf(value);
  return number && *number <= maskingNumber;
}
static bool isMinusInfinity(Value value) { return scalarOf(value) == -std::numeric_limits<double>::infinity(); }

/// Values without a chain to q k^T, so that a sum of a sum of ... of one value is walked once.
using Excluded = llvm::SmallDenseSet<Value>;

/// The operand of a cast from 16 bits to f32, the type of nn.attention's own scores; null for any other value.
static Value beforeWidening(Value value) {
  auto cast = value.getDefiningOp<nn::CastOp>();
  Type from = cast ? getElementTypeOrSelf(cast.getOperand().getType()) : Type();
  return from && (from.isF16() || from.isBF16()) && getElementTypeOrSelf(value.getType()).isF32() ? Value(cast.getOperand())
                                                                                               : Value();
}

static std::optional<Chain> findChainOf(Operation *op, ArrayRef<int64_t> shape, int depth, Excluded &excluded);

/// The chain from q k^T to `value`; all its values have one shape, so no step broadcasts.
static std::optional<Chain> findChain(Value value, ArrayRef<int64_t> shape, int depth, Excluded &excluded) {
  Operation *op = value.getDefiningOp();
  if (!op || nn::shapeOf(value) != shape || depth > 16 || excluded.contains(value))
    return std::nullopt;
  std::optional<Chain> chain = findChainOf(op, shape, depth, excluded);
  if (!chain)
    excluded.insert(value);
  return chain;
}

static std::optional<Chain> findChainOf(Operation *op, ArrayRef<int64_t> shape, int depth, Excluded &excluded) {
  if (auto matmul = dyn_cast<nn::MatmulOp>(op))
    return Chain{matmul, 1, {}};
  if (Value narrow = beforeWidening(op->getResult(0)))
    return findChain(narrow, shape, depth + 1, excluded);
  if (isa<nn::MulOp, nn::DivOp>(op)) {
    for (unsigned side : {1u, 0u}) {
      bool isFactor = side == 1 || isa<nn::MulOp>(op);
      std::optional<double> number = isFactor ? scalarOf(op->getOperand(side)) : std::nullopt;
      std::optional<Chain> chain =
          number ? findChain(op->getOperand(1 - side), shape, depth + 1, excluded) : std::nullopt;
      // nn.attention does not scale its bias with the scores.
      if (!chain || !chain->steps.empty())
        continue;
      chain->scale *= isa<nn::DivOp>(op) ? 1 / *number : *number;
      return std::isfinite(chain->scale) ? chain : std::nullopt;
    }
    return std::nullopt;
  }
  if (isa<nn::AddOp>(op)) {
    for (unsigned side : {0u, 1u})
      if (std::optional<Chain> chain = findChain(op->getOperand(side), shape, depth + 1, excluded)) {
        chain->steps.push_back({op->getOperand(1 - side), {}, {}});
        return chain;
      }
    return std::nullopt;
  }
  if (auto select = dyn_cast<nn::SelectOp>(op)) {
    bool isNegated = !isLow(select.getOnFalse());
    Value low = isNegated ? select.getOnTrue() : select.getOnFalse();
    Value high = isNegated ? select.getOnFalse() : select.getOnTrue();
    std::optional<Chain> chain = findChain(high, shape, depth + 1, excluded);
    if (!chain || !isLow(low))
      return std::nullopt;
    chain->steps.push_back({{}, conjunctsOf(select.getCondition(), isNegated), low});
    return chain;
  }
  return std::nullopt;
}

/// A selection of 0 or a low number, added: as a selection of the sum it is the same but for a masked element, which is
/// as low.
static std::optional<ScoreStep> asSelection(Value term) {
  // Views that leave the last two dims alone.
  Value inner = term;
  while (isa_and_present<nn::ReshapeOp, nn::BroadcastOp>(inner.getDefiningOp())) {
    Value operand = inner.getDefiningOp()->getOperand(0);
    if (nn::shapeOf(operand).size() < 2 || nn::shapeOf(inner).size() < 2 ||
        nn::shapeOf(operand).take_back(2) != nn::shapeOf(inner).take_back(2))
      break;
    inner = operand;
  }
  auto select = inner.getDefiningOp<nn::SelectOp>();
  if (!select)
    return std::nullopt;
  bool isNegated = !isLow(select.getOnFalse());
  Value low = isNegated ? select.getOnTrue() : select.getOnFalse();
  if (!isLow(low) || scalarOf(isNegated ? select.getOnFalse() : select.getOnTrue()) != 0.0)
    return std::nullopt;
  return ScoreStep{{}, conjunctsOf(select.getCondition(), isNegated), low};
}

/// The smallest offset among causal conjuncts, and the other conjuncts; no offset if there is none, or if a row would
/// see no element.
static std::pair<std::optional<int64_t>, SmallVector<Conjunct>> splitCausal(ArrayRef<Conjunct> conjuncts) {
  std::pair<std::optional<int64_t>, SmallVector<Conjunct>> split;
  for (const Conjunct &conjunct : conjuncts) {
    std::optional<int64_t> offset = causalOffset(conjunct);
    if (offset && *offset >= 0)
      split.first = std::min(split.first.value_or(*offset), *offset);
    else
      split.second.push_back(conjunct);
  }
  return split;
}

/// No element reaches `bound`, up or down, or is NaN.
static bool isModerate(DenseElementsAttr elements, double bound) {
  if (elements.getElementType().isF32()) // by far the most elements
    return llvm::all_of(elements.getValues<float>(), [&](float number) { return std::abs(number) < bound; });
  if (!isa<FloatType>(elements.getElementType()))
    return true;
  return llvm::all_of(elements.getValues<APFloat>(), [&](APFloat number) {
    bool losesInfo = false;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return std::abs(number.convertToDouble()) < bound;
  });
}

/// Whether a bias cannot mask anything: computed from weights, positions and constants, none of which reaches `bound`.
static bool isModerate(Value term, double bound) {
  constexpr size_t maxValues = 256; // a value that depends on data may depend on the whole program
  llvm::SetVector<Value> cone;
  cone.insert(term);
  for (size_t i = 0; i < cone.size(); ++i) {
    Operation *op = cone[i].getDefiningOp();
    if (!op || cone.size() > maxValues)
      return false; // data
    if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!elements || !isModerate(elements, bound))
        return false;
    }
    cone.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// If only causal masks and windows may mask: all causal steps become the attribute, whatever their low numbers, since a
/// row sees the keys from its window's first to its own.
static std::optional<MaskSplit> takeAllCausal(ArrayRef<ScoreStep> steps) {
  MaskSplit split;
  split.everyRowSees = true;
  // A bias may not lift masked elements back among the scores.
  double bound = maskMagnitude;
  for (const ScoreStep &step : steps)
    if (std::optional<ScoreStep> selection = step.term ? asSelection(step.term) : step)
      bound = std::min(bound, -*scalarOf(selection->low) / 4);
  for (const ScoreStep &step : steps) {
    std::optional<ScoreStep> selection = step.term ? asSelection(step.term) : step;
    if (selection) {
      auto [offset, others] = splitCausal(selection->visible);
      if (!llvm::all_of(others, isWindow))
        return std::nullopt;
      if (offset)
        split.causalOffset = std::min(split.causalOffset.value_or(*offset), *offset);
      if (!others.empty())
        split.rest.push_back({{}, others, selection->low});
    } else if (isModerate(step.term, bound)) {
      split.rest.push_back(step);
    } else {
      return std::nullopt;
    }
  }
  bool hasWindow = llvm::any_of(split.rest, [](const ScoreStep &step) { return !step.term; });
  return hasWindow && !split.causalOffset ? std::nullopt : std::optional(split); // a window alone stays as it was
}

/// Otherwise only elements that end as -infinity whatever else is masked: causal masks of -infinity that no other
/// selection overrides.
static MaskSplit takeInfiniteCausal(ArrayRef<ScoreStep> steps) {
  MaskSplit split;
  bool isOverridden = false;
  for (const ScoreStep &step : llvm::reverse(steps)) {
    std::optional<ScoreStep> selection = step.term ? asSelection(step.term) : step;
    if (isOverridden || !selection || !isMinusInfinity(selection->low)) {
      isOverridden |= !step.term;
      split.rest.push_back(step);
      continue;
    }
    auto [offset, others] = splitCausal(selection->visible);
    if (offset)
      split.causalOffset = std::min(split.causalOffset.value_or(*offset), *offset);
    if (!offset || !others.empty()) {
      // The rest of a conjunction stays, inside of the causal part. An added mask stays as it was.
      isOverridden |= !step.term;
      split.rest.push_back(step.term ? step : ScoreStep{{}, others, step.low});
    }
  }
  std::reverse(split.rest.begin(), split.rest.end());
  return split;
}

MaskSplit splitMask(ArrayRef<ScoreStep> steps) {
  std::optional<MaskSplit> split = takeAllCausal(steps);
  return split ? *split : takeInfiniteCausal(steps);
}

/// p of select(is_nan(p), 0, p), which only matters for rows that see nothing.
static Value nanGuardOperand(Value value) {
  auto select = value.getDefiningOp<nn::SelectOp>();
  auto isNan = select ? select.getCondition().getDefiningOp<nn::IsNanOp>() : nn::IsNanOp();
  bool isGuard = isNan && isNan.getOperand() == select.getOnFalse() && scalarOf(select.getOnTrue()) == 0.0;
  return isGuard && select.getType() == select.getOnFalse().getType() ? select.getOnFalse() : Value();
}

/// Whether q, k and v fit nn.attention: one element type, equal batch dims, heads a multiple of the groups.
static bool haveFittingTypes(nn::MatmulOp scores, nn::MatmulOp root) {
  Type type = nn::tensorType(root.getResult()).getElementType();
  Type ofScores = nn::tensorType(scores.getResult()).getElementType();
  bool isWide = ofScores.isF32() && (type.isF16() || type.isBF16());
  if ((ofScores != type && !isWide) || nn::tensorType(scores.getLhs()).getElementType() != type ||
      nn::tensorType(root.getRhs()).getElementType() != type)
    return false;
  ArrayRef<int64_t> query = nn::shapeOf(scores.getLhs()), key = nn::shapeOf(scores.getRhs()),
                    value = nn::shapeOf(root.getRhs());
  size_t rank = query.size();
  if (rank < 2 || rank > 4 || key.size() != rank || value.size() != rank ||
      nn::shapeOf(scores.getResult()).size() != rank)
    return false;
  if (rank < 4)
    return query.drop_back(2) == key.drop_back(2) && query.drop_back(2) == value.drop_back(2);
  return query[0] == key[0] && query[0] == value[0] && key[1] == value[1] && key[1] > 0 && query[1] % key[1] == 0;
}

/// Before the cast back from the softmax's wider type.
static Value beforeNarrowing(Value weights) {
  auto cast = weights.getDefiningOp<nn::CastOp>();
  return cast ? Value(cast.getOperand()) : weights;
}

std::optional<AttentionMatch> matchAttention(nn::MatmulOp root) {
  Value weights = beforeNarrowing(root.getLhs());
  auto dropout = weights.getDefiningOp<nn::DropoutOp>();
  if (dropout)
    weights = beforeNarrowing(dropout.getOperand());
  Value guarded = nanGuardOperand(weights);
  auto softmax = (guarded ? beforeNarrowing(guarded) : weights).getDefiningOp<nn::SoftmaxOp>();
  if (!softmax || root.getTransposeLhs())
    return std::nullopt;
  Excluded excluded;
  std::optional<Chain> chain = findChain(softmax.getOperand(), nn::shapeOf(softmax.getResult()), 0, excluded);
  if (!chain || !haveFittingTypes(chain->scores, root))
    return std::nullopt;
  MaskSplit mask = splitMask(chain->steps);
  // A guard against NaN matters where a row may see nothing.
  return AttentionMatch{chain->scores, root, chain->scale, mask, guarded && !mask.everyRowSees, dropout};
}

} // namespace hpc
