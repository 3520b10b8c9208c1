// Constants get no seed: every rank has them, and what readers need of them is a slice.
#include "passes/Annotate/SequenceCut.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/StepPart.h"

namespace hpc {

static bool isOfUpdate(Operation *op) { return stepPartOf(op->getLoc()) == StepPart::Update; }

/// Whether a value lives across steps, or becomes what does: rows of a table of positions are no activations.
static bool isOfState(Value value, func::FuncOp function) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return nn::argumentPort(function, argument.getArgNumber()).isState();
  return isOfUpdate(value.getDefiningOp());
}

/// Whether the op can compute a part of a dim of its result.
static bool isCuttable(Value value, unsigned dim) {
  if (isa<BlockArgument>(value))
    return true;
  auto ruled = dyn_cast<ShardingRuleOpInterface>(value.getDefiningOp());
  if (!ruled || ruled->getNumOperands() == 0)
    return false;
  ShardingRule rule = ruled.getShardingRule();
  const auto &factors = rule.results[cast<OpResult>(value).getResultNumber()][dim];
  return factors.size() == 1 && rule.factors[factors[0]].canCut;
}

static dist::Seed seedOrOpen(Value value) {
  std::vector<int64_t> shape = nn::shapeOf(value).vec();
  return dist::seedOf(value).value_or(dist::Seed{dist::replicated(shape), std::vector<bool>(shape.size(), true)});
}

Operation *findMixer(func::FuncOp function, const SequenceDims &sequence) {
  nn::Dependences dependences = nn::findDependences(function);
  auto isMixed = [&](Value result) {
    return sequence.of(result) && dependences.lookup(result).isTrunk() && !sequence.isOfKeysAlone(result);
  };
  for (Operation *op : sequence.mixers())
    if (llvm::any_of(op->getResults(), isMixed))
      return op;
  return nullptr;
}

void cutSequence(func::FuncOp function, const SequenceDims &sequence, ArrayRef<std::string> axes,
                 llvm::function_ref<bool(Value)> isMeant) {
  nn::Dependences dependences = nn::findDependences(function);
  for (const auto &[value, place] : sequence.all()) {
    if (!dependences.lookup(value).fromInputs || isOfState(value, function) || (isMeant && !isMeant(value)))
      continue;
    dist::Seed seed = seedOrOpen(value);
    dist::DimSharding &dim = seed.sharding.dims[place.dim];
    std::vector<std::string> named = dist::cutAxes(seed.sharding), added;
    llvm::copy_if(axes, std::back_inserter(added), [&](const std::string &axis) { return !llvm::is_contained(named, axis); });
    // The gradient of such a table, too, is whole: it is gathered, once, where the pieces of an update would be. Sums over queries
    // become pieces as readers need them.
    if (llvm::any_of(value.getUsers(), isOfUpdate) || sequence.isOfKeys(value, place.dim)) {
      if (dist::isCut(dim))
        continue;
    } else {
      // A dim with more than positions follows its neighbours: the batch in it is cut, too. One of several parts is the user's.
      if (place.piece.size != nn::shapeOf(value)[place.dim] || !isCuttable(value, place.dim) || dim.size() != 1 ||
          (!seed.open[place.dim] && !dist::isCut(dim)) || added.empty())
        continue;
      dim.front().axes.insert(dim.front().axes.begin(), added.begin(), added.end());
    }
    seed.open[place.dim] = false;
    dist::setSeed(value, seed);
  }
}

} // namespace hpc
