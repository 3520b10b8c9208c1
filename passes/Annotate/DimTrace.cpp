// The walk. A dim is a list of factors; a piece that spans several is followed through each on its own, so heads and
// the dim of a head part by themselves where a reshape parts them.
#include "passes/Annotate/DimTrace.h"

namespace hpc {

std::optional<WeightMatmul> matchWeightMatmul(Operation *op, const nn::Origins &origins) {
  auto matmul = dyn_cast_if_present<nn::MatmulOp>(op);
  if (!matmul)
    return std::nullopt;
  for (unsigned weight : {1u, 0u}) {
    Value operand = matmul->getOperand(weight), other = matmul->getOperand(1 - weight);
    if (!origins.lookup(operand).isWeight() || origins.lookup(other).isWeight() || nn::shapeOf(operand).size() != 2)
      continue;
    WeightMatmul match{matmul, weight};
    bool kLast = weight == 1 ? matmul.getTransposeRhs() : !matmul.getTransposeLhs();
    match.weightK = kLast ? 1 : 0;
    match.weightN = kLast ? 0 : 1;
    return match;
  }
  return std::nullopt;
}

/// The part that two pieces share; nullopt when they share none or do not nest.
static std::optional<Piece> intersect(Piece a, Piece b) {
  int64_t low = std::max(a.inner, b.inner), high = std::min(a.inner * a.size, b.inner * b.size);
  if (high <= low || low % a.inner || low % b.inner || high % low)
    return std::nullopt;
  return Piece{low, high / low};
}

static SmallVector<Piece> intersect(ArrayRef<Piece> left, ArrayRef<Piece> right) {
  SmallVector<Piece> both;
  for (Piece a : left)
    for (Piece b : right)
      if (std::optional<Piece> common = intersect(a, b); common && common->size > 1)
        both.push_back(*common);
  return both;
}

SmallVector<Piece> DimTrace::back(Value value, unsigned dim, Piece piece) {
  Questions pending = {{value, dim, piece}};
  while (!pending.empty()) {
    Question question = pending.back();
    if (answers.count(question)) {
      pending.pop_back();
      continue;
    }
    Questions open; // that have to be answered first
    SmallVector<Piece> pieces = answer(question, open);
    if (open.empty())
      answers[question] = std::move(pieces);
    pending.append(open.rbegin(), open.rend());
  }
  return answers[{value, dim, piece}];
}

/// The answer, if those that it needs are known; else they are added to `open`.
SmallVector<Piece> DimTrace::answer(const Question &question, Questions &open) {
  auto [value, dim, piece] = question;
  if (nn::tensorType(value).getNumElements() == 0)
    return {}; // nothing to cut
  // What is not an activation can be cut anywhere by slicing; a graph input used as an activation is left whole.
  nn::Origin origin = origins.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!origin.isTrunk() && !(origin.fromInputs && !op))
    return {piece};
  auto ruled = dyn_cast_if_present<ShardingRuleOpInterface>(op);
  if (!ruled)
    return {};
  if (std::optional<WeightMatmul> matmul = matchWeightMatmul(op, origins)) {
    unsigned last = unsigned(nn::shapeOf(value).size()) - 1;
    unsigned nDim = matmul->weight == 1 ? last : last - 1;
    if (dim == nDim) {
      if (rowMatmuls.contains(op))
        return {piece}; // its result is whole on every rank
      columns.push_back({*matmul, piece});
      return {piece};
    }
  }

  ShardingRule rule = ruled.getShardingRule();
  const auto &factors = rule.results[cast<OpResult>(value).getResultNumber()][dim];
  SmallVector<Piece> found;
  int64_t inner = nn::shapeOf(value)[dim];
  for (int factor : factors) { // outermost first
    inner /= rule.factors[factor].size;
    std::optional<Piece> part = intersect(piece, {inner, rule.factors[factor].size});
    if (!part || part->size == 1 || !rule.factors[factor].canCut || rule.factors[factor].isInternal)
      continue;
    for (Piece success : backThroughFactor(op, rule, factor, {part->inner / inner, part->size}, open))
      found.push_back({success.inner * inner, success.size});
  }
  return found;
}

/// Follows a piece of a factor (relative to the factor) into every operand that has the factor; all must agree.
SmallVector<Piece> DimTrace::backThroughFactor(Operation *op, const ShardingRule &rule, int factor, Piece within,
                                               Questions &open) {
  SmallVector<Piece> agreed{within};
  bool isSomewhere = false;
  for (auto [number, dims] : llvm::enumerate(rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      if (nn::shapeOf(op->getOperand(number))[dim] == 0)
        continue;
      int64_t inner = nn::shapeOf(op->getOperand(number))[dim];
      for (int candidate : factors) {
        inner /= rule.factors[candidate].size;
        if (candidate != factor)
          continue;
        isSomewhere = true;
        Question question{op->getOperand(number), unsigned(dim), {within.inner * inner, within.size}};
        auto known = answers.find(question);
        if (known == answers.end()) {
          open.push_back(question);
          continue;
        }
        SmallVector<Piece> pieces = known->second;
        for (Piece &piece : pieces)
          piece.inner /= inner;
        agreed = intersect(agreed, pieces);
      }
    }
  return isSomewhere ? agreed : SmallVector<Piece>{};
}

} // namespace hpc
