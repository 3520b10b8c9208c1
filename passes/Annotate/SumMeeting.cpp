// A sum is a tree of adds and of muls that scale some of it. Partial sums enter it through views and scales alone: what a
// full operand, a bias, is added to is full, so it may be another term of the tree but nothing else.
#include "passes/Annotate/SumMeeting.h"

namespace hpc {

/// No more terms of a tree are looked at; every product looks once.
static constexpr int maxSteps = 64;

/// The operand through which a partial sum passes an op that is no add, whatever its other operands are.
static std::optional<int> passingOperand(Operation *op, llvm::function_ref<bool(int)> accept) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || op->getNumResults() != 1 || (!isView(op) && accessOf(op) != Access::Elementwise))
    return std::nullopt;
  LinearClause linear = ruled.getShardingRule().linear;
  if (linear.kind == LinearClause::Product || (linear.kind == LinearClause::Sum && op->getNumOperands() == 1))
    for (int operand : linear.operands)
      if (accept(operand))
        return operand;
  return std::nullopt;
}

/// Whether a term of a tree is one of `sums`, or has one among its own terms.
static bool hasSum(Value term, const llvm::DenseSet<Operation *> &sums) {
  SmallVector<std::pair<Value, bool>> pending = {{term, true}}; // whether adds are still of the tree
  for (int steps = 0; steps < maxSteps && !pending.empty(); ++steps) {
    auto [value, isTree] = pending.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !value.hasOneUse())
      continue;
    if (sums.contains(op))
      return true;
    if (isa<nn::AddOp>(op)) {
      if (isTree)
        for (Value operand : op->getOperands())
          pending.push_back({operand, true});
      continue;
    }
    const bool staysInTree = isTree && isa<nn::MulOp>(op);
    (void)passingOperand(op, [&](int operand) {
      pending.push_back({op->getOperand(operand), staysInTree});
      return false; // each of them
    });
  }
  return false;
}

bool meetsSum(Value value, const llvm::DenseSet<Operation *> &sums) {
  bool isTree = false;
  for (int steps = 0; steps < maxSteps && value.hasOneUse(); ++steps) {
    OpOperand &use = *value.use_begin();
    Operation *op = use.getOwner();
    if (isa<nn::AddOp>(op)) {
      isTree = true;
      for (OpOperand &other : op->getOpOperands())
        if (other.getOperandNumber() != use.getOperandNumber() && hasSum(other.get(), sums))
          return true;
    } else if ((isTree && !isa<nn::MulOp>(op)) ||
               !passingOperand(op, [&](int operand) { return operand == int(use.getOperandNumber()); })) {
      return false;
    }
    value = op->getResult(0);
  }
  return false;
}

} // namespace hpc
