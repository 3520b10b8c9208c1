// A piece goes from a result to the operands that have its factor, if it lies in one factor.
#include "passes/Annotate/FactorTrace.h"

#include "compiler/Dialect/NN/Ports.h"

namespace hpc {

/// Elements of a dim that an index of the factor stands for: the product of the factors after it.
static int64_t innerOf(const ShardingRule &rule, ArrayRef<int> factors, int factor) {
  int64_t inner = 1;
  for (int other : llvm::reverse(factors)) {
    if (other == factor)
      break;
    inner *= rule.factors[other].size;
  }
  return inner;
}

/// The places of the operands of an op that are a place of its result.
static SmallVector<DimPlace> stepBack(const DimPlace &place) {
  SmallVector<DimPlace> places;
  auto ruled = cast<ShardingRuleOpInterface>(place.value.getDefiningOp());
  ShardingRule rule = ruled.getShardingRule();
  const auto &factors = rule.results[cast<OpResult>(place.value).getResultNumber()][place.dim];
  for (int factor : factors) {
    int64_t inner = innerOf(rule, factors, factor), size = rule.factors[factor].size;
    if (place.piece.inner % inner || place.piece.inner * place.piece.size > inner * size)
      continue;
    for (auto [operand, dims] : llvm::zip(ruled->getOperands(), rule.operands))
      for (auto [dim, others] : llvm::enumerate(dims))
        if (llvm::is_contained(others, factor))
          places.push_back({operand, unsigned(dim),
                            {place.piece.inner / inner * innerOf(rule, others, factor), place.piece.size}});
  }
  return places;
}

/// The places without a producer, or with one at which the walk ends.
static SmallVector<DimPlace> endsOf(ArrayRef<DimPlace> from, llvm::function_ref<bool(Operation *)> isOnTheWay) {
  SmallVector<DimPlace> open(from), ends;
  std::set<std::tuple<void *, unsigned, int64_t, int64_t>> seen;
  while (!open.empty()) {
    DimPlace next = open.pop_back_val();
    if (!seen.insert({next.value.getAsOpaquePointer(), next.dim, next.piece.inner, next.piece.size}).second)
      continue;
    Operation *op = next.value.getDefiningOp();
    if (isa_and_present<ShardingRuleOpInterface>(op) && isOnTheWay(op))
      llvm::append_range(open, stepBack(next));
    else
      ends.push_back(next);
  }
  return ends;
}

SmallVector<DimPlace> parametersOf(const DimPlace &weight) {
  SmallVector<DimPlace> ends = endsOf(weight, [](Operation *) { return true; });
  llvm::erase_if(ends, [](const DimPlace &end) { return !isa_and_present<nn::ParameterOp>(end.value.getDefiningOp()); });
  return ends;
}

SmallVector<DimPlace> productsOf(ArrayRef<DimPlace> values) {
  SmallVector<DimPlace> ends = endsOf(values, [](Operation *op) {
    return accessOf(op) == Access::Elementwise || accessOf(op) == Access::Assemble || isView(op);
  });
  llvm::erase_if(ends, [](const DimPlace &end) {
    Operation *op = end.value.getDefiningOp();
    return !op || accessOf(op) != Access::Product;
  });
  return ends;
}

std::map<std::string, Value> gradientsOf(func::FuncOp function) {
  std::map<std::string, Value> gradients;
  Operation *end = function.front().getTerminator();
  for (unsigned index = 0; index < end->getNumOperands(); ++index)
    if (std::string name = nn::resultPort(function, index).gradient; !name.empty())
      gradients[name] = end->getOperand(index);
  return gradients;
}

} // namespace hpc
