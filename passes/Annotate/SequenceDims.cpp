// Queries go first: a mask of scores has a dim of queries and one of keys, and only the first can be cut.
#include "passes/Annotate/SequenceDims.h"

namespace hpc {

void SequenceDims::start(Value value, unsigned dim, Piece piece) {
  const Place place{dim, piece};
  if (dependences.lookup(value).isWeight())
    return;
  if (auto square = squares.find(value); square != squares.end() && square->second.second == dim) {
    if (keys.insert({value, place}).second)
      open.push_back({value, place});
    return;
  }
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

/// The dim that is this factor and nothing else.
static std::optional<unsigned> soleDim(ArrayRef<ShardingRule::DimFactors> dims, int factor) {
  for (auto [dim, factors] : llvm::enumerate(dims))
    if (factors.size() == 1 && factors[0] == factor)
      return unsigned(dim);
  return std::nullopt;
}

/// Columns are a factor that one operand has alone, rows the last of those that the other has alone. Without a common
/// one (samples, heads) rows may be the batch.
std::optional<SequenceDims::Scores> SequenceDims::matchScores(const DimPlace &columns) const {
  Operation *op = columns.value.getDefiningOp();
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  const auto &factors = rule.results[0][columns.dim];
  auto isTrunk = [&](Value operand) { return dependences.lookup(operand).isTrunk(); };
  if (op->getNumOperands() != 2 || factors.size() != 1 || !llvm::all_of(op->getOperands(), isTrunk))
    return std::nullopt;
  const unsigned ofKeys = soleDim(rule.operands[1], factors[0]) ? 1 : 0, ofQueries = 1 - ofKeys;
  std::optional<unsigned> keyDim = soleDim(rule.operands[ofKeys], factors[0]), queryDim, rows;
  bool hasCommon = false;
  for (auto [dim, others] : llvm::enumerate(rule.results[0]))
    for (int factor : others)
      if (std::optional<unsigned> ofRows = soleDim(rule.operands[ofQueries], factor)) {
        bool isCommon = soleDim(rule.operands[ofKeys], factor).has_value();
        hasCommon |= isCommon;
        if (!isCommon && others.size() == 1) {
          rows = unsigned(dim);
          queryDim = ofRows;
        }
      }
  if (!rows || !hasCommon || !keyDim || soleDim(rule.operands[ofQueries], factors[0]))
    return std::nullopt;
  return Scores{op, ofQueries, ofKeys, *queryDim, *keyDim, *rows, columns.dim};
}

/// Through all ops that keep both dims.
void SequenceDims::markSquares(Value value, unsigned rows, unsigned columns) {
  SmallVector<Value> pending = {value};
  if (!squares.insert({value, {rows, columns}}).second)
    return;
  auto visit = [&](Operation *op, Value from) {
    auto ruled = dyn_cast_if_present<ShardingRuleOpInterface>(op);
    if (!ruled)
      return;
    ShardingRule rule = ruled.getShardingRule();
    auto forEach = [&](llvm::function_ref<void(Value, ArrayRef<ShardingRule::DimFactors>)> body) {
      for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
        body(operand, dims);
      for (auto [result, dims] : llvm::zip(op->getResults(), rule.results))
        body(result, dims);
    };
    const auto [fromRows, fromColumns] = squares.lookup(from);
    int row = -1, column = -1;
    forEach([&, fromRows = fromRows, fromColumns = fromColumns](Value each, ArrayRef<ShardingRule::DimFactors> dims) {
      if (each == from && dims[fromRows].size() == 1 && dims[fromColumns].size() == 1) {
        row = dims[fromRows][0];
        column = dims[fromColumns][0];
      }
    });
    forEach([&](Value each, ArrayRef<ShardingRule::DimFactors> dims) {
      std::optional<unsigned> ofRows = soleDim(dims, row), ofColumns = soleDim(dims, column);
      if (ofRows && ofColumns && squares.insert({each, {*ofRows, *ofColumns}}).second)
        pending.push_back(each);
    });
  };
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    visit(next.getDefiningOp(), next);
    for (Operation *user : next.getUsers())
      visit(user, next);
  }
}

bool SequenceDims::isOfKeys(Value product, unsigned dim) const {
  Operation *op = product.getDefiningOp();
  if (!op || accessOf(op) != Access::Product)
    return false;
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  const auto &factors = rule.results[cast<OpResult>(product).getResultNumber()][dim];
  return !isSquare(product) && llvm::any_of(llvm::zip(op->getOperands(), rule.operands), [&](auto each) {
    auto square = squares.find(std::get<0>(each));
    return square != squares.end() && std::get<1>(each)[square->second.second] == factors;
  });
}

SequenceDims::SequenceDims(func::FuncOp function) : dependences(nn::findDependences(function)) {
  // 1. Values with two dims of positions, so that neither is taken for the other.
  for (const DimPlace &columns : findScores(function))
    if (std::optional<Scores> found = matchScores(columns)) {
      scores.push_back(*found);
      markSquares(columns.value, found->rows, found->columns);
    }
  struct Marked {
    Value value;
    unsigned dim;
    Piece piece;
    bool isQueries;
  };
  SmallVector<Marked> marked;
  for (Operation &op : function.getBody().front()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op.getNumOperands() == 0)
      continue;
    ShardingRule rule = ruled.getShardingRule();
    for (auto [operand, dims] : llvm::zip(op.getOperands(), rule.operands)) {
      std::optional<unsigned> rows, columns;
      for (auto [dim, factors] : llvm::enumerate(dims))
        if (factors.size() == 1 && rule.factors[factors[0]].isSequence) {
          const ShardingFactor &factor = rule.factors[factors[0]];
          marked.push_back({operand, unsigned(dim), {1, factor.size}, factor.canCut});
          (factor.canCut ? rows : columns) = unsigned(dim);
        }
      if (rows && columns)
        markSquares(operand, *rows, *columns);
    }
  }
  // 2. The flow, from queries, then from keys.
  for (bool isOfQueries : {true, false}) {
    startsFromKeys = !isOfQueries;
    for (const Scores &each : scores) {
      unsigned number = isOfQueries ? each.ofQueries : each.ofKeys, dim = isOfQueries ? each.queryDim : each.keyDim;
      Value operand = each.op->getOperand(number);
      start(operand, dim, {1, nn::shapeOf(operand)[dim]});
      flow();
    }
    for (const Marked &each : marked)
      if (each.isQueries == isOfQueries) {
        start(each.value, each.dim, each.piece);
        flow();
      }
  }
  // 3. Ops that need all positions at once.
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
