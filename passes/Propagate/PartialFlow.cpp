// Partial sums: which results stay partial, and where they have to be resolved before the op.
// A partial value passes through its users only if all of them can take it, else it would be resolved twice.
#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Dialect/NN/NN.h"
#include "passes/Propagate/Propagation.h"

namespace hpc {

using namespace dist;

/// Whether a use could pass a partial sum over `axes` on.
static bool couldPass(const OpSharding &user, unsigned operand, const AxisNames &axes) {
  return user.rule.linear.kind != LinearClause::None && llvm::is_contained(user.rule.linear.operands, int(operand)) &&
         !intersects(axes, axesOf(user.factors));
}

/// Whether several ops read the value and make more of it than it is: then a sum that each of them passed on would be taken
/// several times, and of more. A gradient that a norm's backward reads three times is one.
static bool isReadMore(Value value) {
  int64_t elements = 0;
  llvm::SmallPtrSet<Operation *, 4> users;
  for (Operation *user : value.getUsers())
    if (users.insert(user).second)
      for (Value result : user->getResults())
        elements += nn::tensorType(result).getNumElements();
  return users.size() > 1 && elements > nn::tensorType(value).getNumElements();
}

void Propagation::choosePassing(OpState &state) {
  SmallVector<AxisNames> partials;
  for (Value operand : state.op->getOperands())
    partials.push_back(shardingOf(operand).partial);
  state.sharding.choosePassing(partials);
  // A sum over time is taken as early as it can be: what comes after is done once a step. It passes ops that do nothing
  // but add up and move (their operands are all terms of it), so that terms meet.
  const LinearClause &linear = state.sharding.rule.linear;
  if (linear.kind != LinearClause::Sum || linear.operands.size() != state.op->getNumOperands())
    state.sharding.passing =
        without(state.sharding.passing, axesWithRole(state.sharding.passing, mesh, AxisRole::Time));
  if (state.sharding.passing.empty()) {
    state.sharding.carrier = -1;
    return;
  }
  int64_t resultElements = 0;
  for (Value result : state.op->getResults())
    resultElements += nn::tensorType(result).getNumElements();
  for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
    if (partials[index].empty())
      continue;
    bool everyUse = wholeOutputDims(operand.getDefiningOp()).empty() && llvm::all_of(operand.getUses(), [&](OpOperand &use) {
      OpState *user = stateOf(use.getOwner());
      return user && couldPass(user->sharding, use.getOperandNumber(), state.sharding.passing);
    });
    // A product with a full value may be larger than its partial operand (matmul): then the sum is taken before.
    bool grows = state.sharding.carrier == int(index) && resultElements > nn::tensorType(operand).getNumElements();
    if (!everyUse || grows || isReadMore(operand)) {
      state.sharding.passing.clear();
      state.sharding.carrier = -1;
      return;
    }
  }
}

void Propagation::flowPartials() {
  for (OpState &state : ops)
    choosePassing(state);
}

} // namespace hpc
