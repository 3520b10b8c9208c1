// Queries go first: a mask of scores has a dim of queries and one of keys, and only the first can be cut.
#include "passes/Annotate/SequenceDims.h"

namespace hpc {

void SequenceDims::start(Value value, unsigned dim, Piece piece) {
  const Place place{dim, piece};
  if (dependences.lookup(value).isWeight())
    return;
  auto [found, isNew] = places.insert({value, place});
  if (isNew && startsFromKeys)
    ofKeys.insert(value);
  if (isNew || (found->second.dim != dim && keys.insert({value, place}).second))
    open.push_back({value, place});
}

SequenceDims::Place SequenceDims::placeOf(const ShardingRule &rule, ArrayRef<int> factors, int factor, unsigned dim) {
  Place place{dim, {1, rule.factors[factor].size}};
  for (int other : llvm::reverse(factors)) {
    if (other == factor)
      break;
    place.piece.inner *= rule.factors[other].size;
  }
  return place;
}

/// From a place of one of an op's values to those of its other values.
void SequenceDims::follow(Operation *op, bool fromOperand, unsigned number, Place place) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return;
  ShardingRule rule = ruled.getShardingRule();
  auto &dims = fromOperand ? rule.operands[number] : rule.results[number];
  for (int factor : dims[place.dim]) {
    if (!rule.factors[factor].canCut || !(placeOf(rule, dims[place.dim], factor, place.dim).piece == place.piece))
      continue;
    auto startAll = [&](auto values, auto &allDims) {
      for (auto [value, valueDims] : llvm::zip(values, allDims))
        for (auto [dim, factors] : llvm::enumerate(valueDims))
          if (llvm::is_contained(factors, factor))
            start(value, unsigned(dim), placeOf(rule, factors, factor, unsigned(dim)).piece);
    };
    startAll(op->getOperands(), rule.operands);
    startAll(op->getResults(), rule.results);
  }
}

void SequenceDims::flow() {
  while (!open.empty()) {
    auto [value, place] = open.pop_back_val();
    if (Operation *op = value.getDefiningOp())
      follow(op, /*fromOperand=*/false, cast<OpResult>(value).getResultNumber(), place);
    for (OpOperand &use : value.getUses())
      follow(use.getOwner(), /*fromOperand=*/true, use.getOperandNumber(), place);
  }
}

/// Attention that is spelled out: softmaxes along columns of products of two activations, with queries as rows and keys as columns.
static SmallVector<DimPlace> findScores(func::FuncOp function) {
  SmallVector<DimPlace> rows;
  for (Operation &op : function.getBody().front()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || accessOf(&op) != Access::Composite)
      continue;
    ShardingRule rule = ruled.getShardingRule();
    for (auto [dim, factors] : llvm::enumerate(rule.operands[0]))
      if (factors.size() == 1 && rule.factors[factors[0]].isInternal)
        rows.push_back({op.getOperand(0), unsigned(dim), {1, rule.factors[factors[0]].size}});
  }
  return productsOf(rows);
}

/// From a product's factor that one operand has alone, and the last of those that the other has alone. Without a common one (samples, heads)
/// its rows may be the batch.
void SequenceDims::startFromProduct(const DimPlace &columns) {
  Operation *op = columns.value.getDefiningOp();
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  const auto &factors = rule.results[0][columns.dim];
  if (op->getNumOperands() != 2 || factors.size() != 1 || !llvm::all_of(op->getOperands(), [&](Value operand) { return dependences.lookup(operand).isTrunk(); }))
    return;
  auto dimOf = [&](unsigned operand, int factor) -> std::optional<unsigned> {
    for (auto [dim, others] : llvm::enumerate(rule.operands[operand]))
      if (others.size() == 1 && others[0] == factor)
        return unsigned(dim);
    return std::nullopt;
  };
  unsigned ofKeys = dimOf(1, factors[0]) ? 1 : 0;
  std::optional<int> rows;
  bool hasCommon = false;
  for (const auto &others : rule.results[0])
    for (int factor : others) {
      bool isOfRows = bool(dimOf(1 - ofKeys, factor));
      hasCommon |= isOfRows && dimOf(ofKeys, factor);
      if (isOfRows && !dimOf(ofKeys, factor))
        rows = factor;
    }
  if (!rows || !hasCommon || dimOf(1 - ofKeys, factors[0]))
    return;
  scores = op;
  auto startFrom = [&](unsigned operand, int factor) { start(op->getOperand(operand), *dimOf(operand, factor), {1, rule.factors[factor].size}); };
  startFrom(startsFromKeys ? ofKeys : 1 - ofKeys, startsFromKeys ? factors[0] : *rows);
}

SequenceDims::SequenceDims(func::FuncOp function) : dependences(nn::findDependences(function)) {
  const SmallVector<DimPlace> products = findScores(function);
  for (bool isCuttable : {true, false}) {
    startsFromKeys = !isCuttable;
    for (Operation &op : function.getBody().front()) {
      auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
      if (!ruled || op.getNumOperands() == 0)
        continue;
      ShardingRule rule = ruled.getShardingRule();
      for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands))
        for (auto [dim, factors] : llvm::enumerate(dims))
          if (factors.size() == 1 && rule.factors[factors[0]].isSequence && rule.factors[factors[0]].canCut == isCuttable)
            start(operand, unsigned(dim), {1, rule.factors[factors[0]].size});
      flow();
    }
    for (const DimPlace &columns : products) {
      startFromProduct(columns);
      flow();
    }
  }
  for (Operation &op : function.getBody().front()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op.getNumResults() == 0)
      continue;
    ShardingRule rule = ruled.getShardingRule();
    auto takesWhole = [&](auto values, auto &allDims) {
      return llvm::any_of(llvm::zip(values, allDims), [&](auto each) {
        auto place = of(std::get<0>(each));
        return place && llvm::any_of(std::get<1>(each)[place->dim], [&](int factor) {
                 return !rule.factors[factor].canCut && !rule.factors[factor].isSequence;
               });
      });
    };
    if (takesWhole(op.getOperands(), rule.operands) && takesWhole(op.getResults(), rule.results))
      found.push_back(&op);
  }
}

} // namespace hpc
