// Trees of sums, from above (their terms) and from below (their roots). Both ask whether a value is an inner add and
// whether a mul scales one, so they cannot differ.
#include "compiler/Dialect/NN/SumTree.h"

namespace hpc::nn {

/// Whether a value is part of a larger sum of its type: only that reads it. A sharding is part of a type, so an add
/// that is partial itself is none.
static bool isInnerAdd(Value value, Type type) {
  return value.getDefiningOp<AddOp>() && value.hasOneUse() && value.getType() == type;
}

/// The operand of a mul that is a part of the sum; none if both are.
static std::optional<unsigned> scaledPart(Value value, Type type) {
  auto mul = value.getDefiningOp<MulOp>();
  if (!mul || !value.hasOneUse() || value.getType() != type)
    return std::nullopt;
  bool isLeft = isInnerAdd(mul.getLhs(), type), isRight = isInnerAdd(mul.getRhs(), type);
  return isLeft == isRight ? std::nullopt : std::optional(isLeft ? 0u : 1u);
}

SumTree sumTree(AddOp root, const llvm::DenseSet<Operation *> &scaling) {
  SumTree tree;
  SmallVector<SumTerm> pending{{root.getResult(), {}}};
  while (!pending.empty()) {
    SumTerm term = pending.pop_back_val();
    Operation *op = term.value.getDefiningOp();
    if (std::optional<unsigned> part = scaledPart(term.value, root.getType()); part && scaling.contains(op)) {
      term.scales.insert(term.scales.begin(), {cast<MulOp>(op), *part});
      pending.push_back({op->getOperand(*part), term.scales});
    } else if (op == root || isInnerAdd(term.value, root.getType())) {
      pending.push_back({op->getOperand(1), term.scales});
      pending.push_back({op->getOperand(0), term.scales});
    } else {
      tree.terms.push_back(term);
      continue;
    }
    tree.ops.push_back(op);
  }
  return tree;
}

Operation *aboveInSum(Operation *op) {
  Value value = op->getResult(0);
  if (!value.hasOneUse())
    return nullptr;
  OpOperand &use = *value.use_begin();
  auto add = dyn_cast<AddOp>(use.getOwner());
  bool isPart = add ? add.getType() == value.getType()
                    : isa<MulOp>(use.getOwner()) && scaledPart(use.getOwner()->getResult(0), value.getType()) ==
                                                        use.getOperandNumber();
  return isPart ? use.getOwner() : nullptr;
}

bool isCollected(Value term, ArrayRef<int64_t> shape) {
  return shapeOf(term) == shape && llvm::all_of(term.getUsers(), llvm::IsaPred<AddOp>);
}

/// Whether a partial sum stays one through this use, whatever the other operands are.
static bool staysPartial(OpOperand &use) {
  Operation *op = use.getOwner();
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || op->getNumResults() != 1 || (!isView(op) && accessOf(op) != Access::Elementwise))
    return false;
  LinearClause linear = ruled.getShardingRule().linear;
  return (linear.kind == LinearClause::Product || (linear.kind == LinearClause::Sum && op->getNumOperands() == 1)) &&
         llvm::is_contained(linear.operands, int(use.getOperandNumber()));
}

static Operation *rootOf(AddOp add) {
  Operation *root = add;
  for (Operation *op = add; op; op = aboveInSum(op))
    if (isa<AddOp>(op)) // a mul above it scales all of the sum
      root = op;
  return root;
}

SmallVector<Operation *, 1> sumsOf(Value value) {
  while (value.hasOneUse() && staysPartial(*value.use_begin()))
    value = value.use_begin()->getOwner()->getResult(0);
  SmallVector<Operation *, 1> roots;
  for (Operation *user : value.getUsers())
    if (auto add = dyn_cast<AddOp>(user); add && isCollected(value, shapeOf(add.getResult())))
      roots.push_back(rootOf(add));
  return roots;
}

} // namespace hpc::nn
