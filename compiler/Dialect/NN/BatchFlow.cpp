// By the ops' own sharding rules.
#include "compiler/Dialect/NN/BatchFlow.h"

#include "compiler/Interfaces/ShardingRule.h"

namespace hpc::nn {

BatchFlow::BatchFlow(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims) {
  for (auto [argument, dim] : llvm::enumerate(batchDims))
    if (dim)
      carriers.insert({function.getArgument(argument), *dim});
}

bool BatchFlow::visit(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return false;
  ShardingRule rule = ruled.getShardingRule();
  DenseSet<int> batch;
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (!factors.empty() && carries(operand, int64_t(dim)))
        batch.insert(factors.front());
  const bool readsTotal = llvm::any_of(op->getOperands(), [&](Value operand) { return isTotal(operand); });
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results)) {
    bool carriesOn = false;
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (!factors.empty() && batch.contains(factors.front())) {
        carriers.insert({result, int64_t(dim)});
        carriesOn = true;
      }
    if (!carriesOn && (readsTotal || !batch.empty()))
      totals.insert(result);
  }
  return !batch.empty();
}

} // namespace hpc::nn
