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

/// Whether several ops read the value and their results have more elements than it: a sum that each of them passed on
/// would be resolved several times, with more bytes. An example is a gradient that a norm's backward reads three times.
static bool isReadMore(Value value) {
  int64_t elements = 0;
  llvm::SmallPtrSet<Operation *, 4> users;
  for (Operation *user : value.getUsers())
    if (users.insert(user).second)
      for (Value result : user->getResults())
        elements += nn::tensorType(result).getNumElements();
  return users.size() > 1 && elements > nn::tensorType(value).getNumElements();
}

/// Whether the op only adds and moves: all its operands are terms of its result.
static bool addsUp(const OpState &state) {
  const LinearClause &linear = state.sharding.rule.linear;
  return linear.kind == LinearClause::Sum && linear.operands.size() == state.op->getNumOperands();
}

/// Terms of one sum over ranks, as gradients are, stay uncut over these ranks where no other operand needs the cut: the
/// reader of the sum cuts it by one collective for all terms added on the way; over ranks of data, once a step.
void Propagation::choosePassing(OpState &state) {
  SmallVector<AxisNames> partials;
  for (Value operand : state.op->getOperands())
    partials.push_back(shardingOf(operand).partial);
  const FactorShardings cut = state.sharding.factors;
  if (AxisNames ranks = uncutTerms(state, partials); !ranks.empty()) {
    choosePassing(state, partials);
    if (without(ranks, state.sharding.passing).empty())
      return;
    state.sharding.factors = cut;
  }
  choosePassing(state, partials);
}

/// Removes from an op's factors the axes of ranks over which all its operands are terms; returns the removed axes.
AxisNames Propagation::uncutTerms(OpState &state, ArrayRef<AxisNames> partials) const {
  AxisNames ranks, taken;
  if (addsUp(state) && !partials.empty())
    ranks = without(partials.front(), axesWithRole(partials.front(), mesh, AxisRole::Time));
  for (const AxisNames &partial : partials)
    ranks = without(ranks, without(ranks, partial));
  for (auto [factor, cut] : llvm::enumerate(state.sharding.factors)) {
    if (state.anchored[unsigned(factor)] || !intersects(axesOf(cut), ranks))
      continue;
    for (SubDim &sub : cut) {
      taken = unite(taken, without(sub.axes, without(sub.axes, ranks)));
      sub.axes = without(sub.axes, ranks);
    }
    cut = normalize(cut, mesh);
  }
  return taken;
}

void Propagation::choosePassing(OpState &state, ArrayRef<AxisNames> partials) {
  state.sharding.choosePassing(partials);
  // A sum over time is resolved as early as possible: ops after it run once a step. It passes ops that only add and
  // move, so that terms meet.
  if (!addsUp(state))
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

/// The sharding in which all readers of a value but reductions take it; none where they differ.
std::optional<Sharding> Propagation::takenAs(Value value) {
  std::optional<Sharding> taken;
  for (OpOperand &use : value.getUses()) {
    OpState *user = stateOf(use.getOwner());
    if (user && accessOf(user->op) == Access::Combine)
      continue;
    std::optional<Sharding> wanted;
    if (user)
      wanted = user->sharding.operand(use.getOperandNumber(), mesh);
    if (!wanted || (taken && *taken != *wanted))
      return std::nullopt;
    taken = wanted;
  }
  return taken;
}

void Propagation::takePieces() {
  for (OpState &state : ops) {
    if (accessOf(state.op) != Access::Combine)
      continue;
    const ShardingRule &rule = state.sharding.rule;
    for (auto [operand, dims] : llvm::zip(state.op->getOperands(), rule.operands)) {
      AxisNames partial = shardingOf(operand).partial;
      std::optional<Sharding> pieces = partial.empty() ? std::nullopt : takenAs(operand);
      for (unsigned dim = 0; pieces && dim < dims.size(); ++dim) {
        if (dims[dim].size() != 1 || rule.factors[dims[dim][0]].reduction != ReduceKind::Sum || isInResults(rule, dims[dim][0]))
          continue;
        int factor = dims[dim][0];
        const DimSharding &cut = pieces->dims[dim], &current = state.sharding.factors[factor];
        AxisNames added = without(axesOf(cut), axesOf(current));
        if (!added.empty() && without(added, partial).empty() && without(axesOf(current), axesOf(cut)).empty() &&
            mayTake(state, factor, cut) && !intersects(added, axesOf(state.sharding.factors)))
          state.sharding.factors[factor] = cut;
      }
    }
  }
}

void Propagation::flowPartials() {
  for (OpState &state : ops)
    choosePassing(state);
}

} // namespace hpc
