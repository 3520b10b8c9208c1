// By the ops' own sharding rules.
#include "compiler/Dialect/NN/BatchFlow.h"

#include "compiler/Interfaces/ShardingRule.h"

namespace hpc::nn {

BatchFlow::BatchFlow(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims) {
  for (auto [argument, dim] : llvm::enumerate(batchDims))
    if (dim)
      carriers[{function.getArgument(argument), *dim}] = shapeOf(function.getArgument(argument))[size_t(*dim)];
}

bool BatchFlow::visit(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return false;
  ShardingRule rule = ruled.getShardingRule();
  DenseMap<int, int64_t> batch; // sizes by factor
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (!factors.empty() && carries(operand, int64_t(dim)))
        batch[factors.front()] = std::min(size(operand, int64_t(dim)), rule.factors[factors.front()].size);
  const bool readsTotal = llvm::any_of(op->getOperands(), [&](Value operand) { return isTotal(operand); });
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results)) {
    bool carriesOn = false;
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (!factors.empty() && batch.contains(factors.front())) {
        carriers[{result, int64_t(dim)}] = batch.lookup(factors.front());
        carriesOn = true;
      }
    if (!carriesOn && (readsTotal || !batch.empty()))
      totals.insert(result);
  }
  return !batch.empty();
}

void BatchFlow::replace(Value old, Value next) {
  for (int64_t dim = 0; dim < tensorType(old).getRank(); ++dim)
    if (carries(old, dim))
      carriers[{next, dim}] = size(old, dim);
  if (isTotal(old))
    totals.insert(next);
}

} // namespace hpc::nn
