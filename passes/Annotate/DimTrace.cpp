// The walk. A dim is a list of factors; a piece that spans several is followed through each on its own, so heads and
// the dim of a head part by themselves where a reshape parts them.
#include "passes/Annotate/DimTrace.h"

#include <unordered_set>

namespace hpc {

/// The dim of a value that is this factor and nothing else.
static std::optional<unsigned> dimOf(ArrayRef<ShardingRule::DimFactors> dims, int factor) {
  for (auto [dim, factors] : llvm::enumerate(dims))
    if (factors.size() == 1 && factors[0] == factor)
      return unsigned(dim);
  return std::nullopt;
}

static bool isSum(const ShardingFactor &factor) { return factor.reduction == ReduceKind::Sum; }

std::optional<unsigned> WeightMatmul::weightDimOf(unsigned resultDim) const {
  if (resultN == resultDim)
    return weightN;
  for (auto [weightDim, dim] : stacked)
    if (dim == resultDim)
      return weightDim;
  return std::nullopt;
}

WeightMatmul WeightMatmul::withColumns(unsigned resultDim) const {
  WeightMatmul product = *this;
  product.weightN = *weightDimOf(resultDim);
  product.resultN = resultDim;
  return product;
}

/// Whether dim `dim` of a weight comes from a parameter. A weight that was broadcast along the dim, as queries that are
/// equal for all samples, is one matrix many times: the dim may be the batch.
static bool isOfWeight(Value weight, unsigned dim) {
  SmallVector<std::pair<Value, unsigned>> open = {{weight, dim}};
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
  while (!open.empty()) {
    auto [value, at] = open.pop_back_val();
    if (!seen.insert({value, at}).second)
      continue;
    auto result = dyn_cast<OpResult>(value);
    auto ruled = result ? dyn_cast<ShardingRuleOpInterface>(result.getOwner()) : nullptr;
    if (!ruled) // a parameter
      return true;
    const ShardingRule rule = ruled.getShardingRule();
    for (int factor : rule.results[result.getResultNumber()][at])
      for (auto [operand, dims] : llvm::zip(ruled->getOperands(), rule.operands))
        for (auto [index, factors] : llvm::enumerate(dims))
          if (llvm::is_contained(factors, factor))
            open.push_back({operand, unsigned(index)});
  }
  return false;
}

std::optional<WeightMatmul> matchWeightMatmul(Operation *op, const nn::Dependences &dependences) {
  if (accessOf(op) != Access::Product)
    return std::nullopt;
  for (unsigned weight : {1u, 0u}) {
    Value operand = op->getOperand(weight), other = op->getOperand(1 - weight);
    unsigned rank = nn::shapeOf(operand).size();
    if (!dependences.lookup(operand).isWeight() || dependences.lookup(other).isWeight() || rank < 2)
      continue;
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    WeightMatmul match{op, weight, 1 - weight, 0, 0, std::nullopt, std::nullopt, {}};
    bool isKnown = false;
    for (unsigned dim : {rank - 2, rank - 1})
      if (const auto &factors = rule.operands[weight][dim]; factors.size() == 1) {
        bool isK = isSum(rule.factors[factors[0]]);
        match.weightK = isK ? dim : 2 * rank - 3 - dim;
        match.weightN = 2 * rank - 3 - match.weightK;
        if (isK)
          match.activationK = dimOf(rule.operands[1 - weight], factors[0]);
        else
          match.resultN = dimOf(rule.results[0], factors[0]);
        isKnown = true;
      }
    for (unsigned dim = 0; dim + 2 < rank; ++dim)
      if (const auto &factors = rule.operands[weight][dim]; factors.size() == 1)
        if (std::optional<unsigned> resultDim = dimOf(rule.results[0], factors[0]);
            resultDim && isOfWeight(operand, dim))
          match.stacked.push_back({dim, *resultDim});
    if (isKnown)
      return match;
  }
  return std::nullopt;
}

std::optional<WeightLookup> matchWeightLookup(Operation *op, const nn::Dependences &dependences) {
  if (accessOf(op) != Access::Lookup)
    return std::nullopt;
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (factors.size() == 1 && rule.factors[factors[0]].isIndex && isSum(rule.factors[factors[0]]) &&
          dependences.lookup(operand).isWeight())
        return WeightLookup{op, operand, unsigned(dim)};
  return std::nullopt;
}

/// The part that two pieces share; nullopt when they share none or do not nest.
static std::optional<Piece> intersect(Piece a, Piece b) {
  int64_t low = std::max(a.inner, b.inner), high = std::min(a.inner * a.size, b.inner * b.size);
  bool nests = a.inner * a.size % high == 0 && b.inner * b.size % high == 0;
  if (high <= low || low % a.inner || low % b.inner || high % low || !nests)
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

const OpFacts::Facts &OpFacts::of(Operation *op) {
  std::unique_ptr<Facts> &facts = known[op];
  if (!facts) {
    facts = std::make_unique<Facts>();
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op)) {
      facts->rule = ruled.getShardingRule();
      facts->product = matchWeightMatmul(op, dependences);
    }
  }
  return *facts;
}

DimTrace::Answered &DimTrace::find(const Question &question) {
  SmallVector<Question> pending = {question};
  while (!pending.empty()) {
    Question next = pending.back();
    if (answers.count(next)) {
      pending.pop_back();
      continue;
    }
    SmallVector<Question> open; // that have to be answered first
    Answer found = answer(next, open);
    if (open.empty())
      answers.emplace(next, std::move(found));
    pending.append(open.rbegin(), open.rend());
  }
  return *answers.find(question);
}

SmallVector<Piece> DimTrace::back(Value value, unsigned dim, Piece piece) {
  return find({value, dim, piece}).second.pieces;
}
bool DimTrace::reachesColumns(Value value, unsigned dim, Piece piece) {
  return find({value, dim, piece}).second.reachesColumns;
}

DimTrace::Reached DimTrace::reach(const Question &question) {
  Reached reached;
  const unsigned walk = ++walks;
  SmallVector<Answered *> pending = {&find(question)};
  while (!pending.empty()) {
    auto &[asked, answer] = *pending.pop_back_val();
    if (std::exchange(answer.lastWalk, walk) == walk)
      continue;
    reached.questions.push_back(&asked);
    if (answer.column)
      reached.products.insert(answer.column->op);
    pending.append(answer.asked.begin(), answer.asked.end());
    reached.whole.append(answer.whole.begin(), answer.whole.end());
  }
  return reached;
}

bool DimTrace::areDigitsOfOne(Value value, unsigned dim, Piece piece, Piece other) {
  llvm::DenseSet<Value> values;
  llvm::DenseSet<std::pair<Value, unsigned>> dims;
  for (const Question *question : reach({value, dim, piece}).questions) {
    values.insert(question->value);
    dims.insert({question->value, question->dim});
  }
  Reached reached = reach({value, dim, other});
  return llvm::all_of(reached.questions, [&](const Question *question) {
    return !values.contains(question->value) || dims.contains({question->value, question->dim});
  });
}

/// Whether the sources of any of the questions, whole or not, include columns of any of the products. Ops before the
/// first product cannot, so a walk visits the ops between, not the whole program.
bool DimTrace::comeFrom(SmallVector<Question> pending, const llvm::SetVector<Operation *> &products) {
  auto before = [](Operation *a, Operation *b) { return a->getBlock() == b->getBlock() && a->isBeforeInBlock(b); };
  auto first = std::min_element(products.begin(), products.end(), before);
  if (first == products.end())
    return false;
  const unsigned walk = ++walks;
  while (!pending.empty()) {
    Question question = pending.pop_back_val();
    Operation *op = question.value.getDefiningOp();
    if (!op || before(op, *first))
      continue;
    Answer &answer = find(question).second;
    if (std::exchange(answer.lastWalk, walk) == walk)
      continue;
    if (answer.column && products.contains(answer.column->op))
      return true;
    for (Answered *asked : answer.asked)
      pending.push_back(asked->first);
    pending.append(answer.whole.begin(), answer.whole.end());
  }
  return false;
}

bool DimTrace::tearsColumns(Value value, unsigned dim, Piece piece) {
  if (!find({value, dim, piece}).second.reachesWhole)
    return false;
  Reached reached = reach({value, dim, piece});
  return comeFrom(std::move(reached.whole), reached.products);
}

std::vector<std::pair<WeightMatmul, Piece>> DimTrace::takeColumns(Value value, unsigned dim, Piece piece) {
  std::vector<std::pair<WeightMatmul, Piece>> columns;
  SmallVector<Answered *> pending = {&find({value, dim, piece})};
  while (!pending.empty()) {
    auto &[question, answer] = *pending.pop_back_val();
    if (answer.isTaken || !answer.reachesColumns)
      continue;
    answer.isTaken = true;
    if (answer.column)
      columns.push_back({answer.column->withColumns(question.dim), question.piece});
    pending.append(answer.asked.rbegin(), answer.asked.rend());
  }
  return columns;
}

/// Whether a rank can compute a part of such a dim: a dim that may be cut, or a composite's row that results have too.
bool DimTrace::isDivisible(const ShardingRule &rule, int factor) const {
  auto has = [&](const ShardingRule::DimFactors &dim) { return llvm::is_contained(dim, factor); };
  bool livesOn = llvm::any_of(rule.results, [&](const auto &dims) { return llvm::any_of(dims, has); });
  return rule.factors[factor].canCut && (!rule.factors[factor].isInternal || (crossesRows && livesOn));
}

bool DimTrace::staysInParts(Value value, unsigned dim, Piece piece, Operation *sum) {
  SmallVector<Question> pending = {{value, dim, piece}};
  std::unordered_set<Question, QuestionHash> seen;
  while (!pending.empty()) {
    Question at = pending.pop_back_val();
    if (!seen.insert(at).second)
      continue;
    for (OpOperand &use : at.value.getUses()) {
      Operation *op = use.getOwner();
      if (isa<func::ReturnOp>(op))
        continue;
      const std::optional<ShardingRule> &rule = facts.of(op).rule;
      if (!rule)
        return false;
      int64_t inner = nn::shapeOf(at.value)[at.dim];
      for (int factor : rule->operands[use.getOperandNumber()][at.dim]) { // outermost first
        const ShardingFactor &ofFactor = rule->factors[factor];
        inner /= ofFactor.size;
        std::optional<Piece> part = intersect(at.piece, {inner, ofFactor.size});
        if (!part || part->size == 1)
          continue;
        if (!isDivisible(*rule, factor))
          return false;
        if (ofFactor.reduction && accessOf(op) == Access::Product && op != sum && !sums.contains(op))
          return false;
        for (auto [result, dims] : llvm::zip(op->getResults(), rule->results))
          for (auto [resultDim, factors] : llvm::enumerate(dims)) {
            int64_t resultInner = nn::shapeOf(result)[resultDim];
            for (int candidate : factors) {
              resultInner /= rule->factors[candidate].size;
              if (candidate == factor)
                pending.push_back({result, unsigned(resultDim), {part->inner / inner * resultInner, part->size}});
            }
          }
      }
    }
  }
  return true;
}

/// Operands that every rank must hold whole.
SmallVector<DimTrace::Question, 0> DimTrace::dimsReadWhole(Operation *op, const ShardingRule &rule) const {
  SmallVector<Question, 0> whole;
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (llvm::any_of(factors, [&](int factor) { return !isDivisible(rule, factor); }))
        whole.push_back({operand, unsigned(dim), {1, nn::shapeOf(operand)[dim]}});
  return whole;
}

/// The answer, if the answers that it depends on are known; otherwise their questions are added to `open`.
DimTrace::Answer DimTrace::answer(const Question &question, SmallVectorImpl<Question> &open) {
  auto [value, dim, piece] = question;
  Answer answer;
  if (nn::tensorType(value).getNumElements() == 0) {
    if (piece.size != 0) // a past of length 0: any cut fits, since it has no elements
      answer.pieces = {piece};
    return answer;
  }
  // Any rank can slice values that are no activations: weights, masks, and a graph input, whose part each rank receives
  // (the keys and values of past tokens, cut like the heads that read them).
  Operation *op = value.getDefiningOp();
  if (!facts.dependences.lookup(value).isTrunk()) {
    answer.pieces = {piece};
    return answer;
  }
  if (!op)
    return answer;
  const auto &[ruled, product] = facts.of(op);
  if (!ruled)
    return answer;
  if (sums.contains(op)) { // its result is whole on every rank
    answer.pieces = {piece};
    return answer;
  }
  if (product && product->weightDimOf(dim)) {
    answer.column = &*product;
    answer.reachesColumns = true;
    if (product->resultN == dim) {
      answer.pieces = {piece};
      return answer;
    } // else the activations may be stacked too
  }

  const ShardingRule &rule = *ruled;
  const auto &factors = rule.results[cast<OpResult>(value).getResultNumber()][dim];
  int64_t inner = nn::shapeOf(value)[dim];
  for (int factor : factors) { // outermost first
    inner /= rule.factors[factor].size;
    std::optional<Piece> part = intersect(piece, {inner, rule.factors[factor].size});
    if (!part || part->size == 1)
      continue;
    if (!isDivisible(rule, factor)) { // whole on every rank, and a slice is free
      answer.pieces.push_back(*part);
      answer.whole = dimsReadWhole(op, rule);
      answer.reachesWhole = true;
      continue;
    }
    for (Piece success : backThroughFactor(op, rule, factor, {part->inner / inner, part->size}, answer, open))
      answer.pieces.push_back({success.inner * inner, success.size});
  }
  return answer;
}

/// Follows a piece of a factor (relative to the factor) into every operand that has the factor; all must agree. A
/// factor that no operand has (a broadcast's new dim) can be cut anywhere.
SmallVector<Piece> DimTrace::backThroughFactor(Operation *op, const ShardingRule &rule, int factor, Piece within,
                                               Answer &answer, SmallVectorImpl<Question> &open) {
  SmallVector<Piece> agreed{within};
  for (auto [number, dims] : llvm::enumerate(rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      if (nn::shapeOf(op->getOperand(number))[dim] == 0)
        continue;
      int64_t inner = nn::shapeOf(op->getOperand(number))[dim];
      for (int candidate : factors) {
        inner /= rule.factors[candidate].size;
        if (candidate != factor)
          continue;
        Question question{op->getOperand(number), unsigned(dim), {within.inner * inner, within.size}};
        auto known = answers.find(question);
        if (known == answers.end()) {
          open.push_back(question);
          continue;
        }
        answer.asked.push_back(&*known);
        answer.reachesColumns |= known->second.reachesColumns;
        answer.reachesWhole |= known->second.reachesWhole;
        SmallVector<Piece> pieces = known->second.pieces;
        for (Piece &piece : pieces)
          piece.inner /= inner;
        agreed = intersect(agreed, pieces);
      }
    }
  return agreed;
}

} // namespace hpc
