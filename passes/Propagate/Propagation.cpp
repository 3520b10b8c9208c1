// Seeds flow along factors: an op takes cuts from its operands and offers them to the producers of its operands, and
// users take them from the op. A producer that cannot follow refuses, and the cut goes no further; hpc-insert-reshards
// bridges the difference.
#include "passes/Propagate/Propagation.h"

#include "compiler/Dialect/Dist/WholeOutput.h"
#include "compiler/Dialect/NN/Ports.h"

namespace hpc {

using namespace dist;

Propagation::Propagation(func::FuncOp function, const Mesh &mesh) : function(function), mesh(mesh) {
  auto addSource = [&](Value value, SourceState::Kind kind) {
    sourceIndex[value] = int(sources.size());
    ArrayRef<int64_t> shape = nn::shapeOf(value);
    sources.push_back({kind, value, replicated(shape.vec()), {}, false, llvm::SmallBitVector(unsigned(shape.size()))});
  };
  std::map<std::string, int> kept; // parameters and states
  for (BlockArgument argument : function.getArguments()) {
    nn::ArgumentPort port = nn::argumentPort(function, argument.getArgNumber());
    if (port.isState())
      kept[port.state] = int(sources.size());
    addSource(argument, port.isState() ? SourceState::Kept : SourceState::Input);
  }
  for (Operation &op : function.front()) {
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op)) {
      OpState state;
      state.op = &op;
      state.sharding.rule = ruled.getShardingRule();
      state.sharding.factors = uncutFactors(state.sharding.rule);
      state.anchored.resize(state.sharding.rule.factors.size());
      state.whole.resize(state.sharding.rule.factors.size());
      state.closed.resize(state.sharding.rule.factors.size(), op.getNumOperands() == 0); // iota is whole everywhere
      opIndex[&op] = int(ops.size());
      ops.push_back(std::move(state));
    } else {
      if (auto parameter = dyn_cast<nn::ParameterOp>(op))
        kept[parameter.getName().str()] = int(sources.size());
      for (Value result : op.getResults())
        addSource(result, isa<nn::ParameterOp>(op) ? SourceState::Kept : SourceState::Constant);
    }
  }
  for (const auto &[name, result] : nn::writtenBy(function))
    if (auto source = kept.find(name); source != kept.end())
      written[result] = source->second;
}

/// The part of a cut over axes of time.
static DimSharding onlyTime(DimSharding cut, const Mesh &mesh) {
  for (SubDim &sub : cut)
    sub.axes = axesWithRole(sub.axes, mesh, AxisRole::Time);
  return normalize(cut, mesh);
}

/// The part of a cut that lies outside of all cuts over `axes`.
static DimSharding outside(DimSharding cut, const AxisNames &axes, const Mesh &mesh) {
  for (SubDim &sub : cut)
    sub.axes.erase(llvm::find_if(sub.axes, [&](const std::string &axis) { return llvm::is_contained(axes, axis); }), sub.axes.end());
  return normalize(cut, mesh);
}

/// Whether a factor may take such a cut, judged by this factor alone.
bool Propagation::mayTake(const OpState &state, int factor, const DimSharding &cut) const {
  return !state.closed[factor] && mayCut(state.sharding.rule.factors[factor], cut) &&
         (!state.whole[factor] || axesOf(cut) == axesWithRole(axesOf(cut), mesh, AxisRole::Time));
}

OpState *Propagation::stateOf(Operation *op) {
  auto found = opIndex.find(op);
  return found == opIndex.end() ? nullptr : &ops[found->second];
}

Sharding Propagation::shardingOf(Value value) const {
  if (auto source = sourceIndex.find(value); source != sourceIndex.end())
    return sources[source->second].sharding;
  auto result = cast<OpResult>(value);
  return ops[opIndex.lookup(result.getOwner())].sharding.result(result.getResultNumber(), mesh);
}

Sharding Propagation::usedSharding(Value value) const {
  auto source = sourceIndex.find(value);
  if (source == sourceIndex.end() || sources[source->second].kind != SourceState::Kept)
    return shardingOf(value);
  return withoutRows(sources[source->second].sharding, mesh);
}

Sharding Propagation::returnedSharding(unsigned result) const {
  if (auto target = written.find(result); target != written.end())
    return sources[target->second].sharding;
  func::FuncOp main = function;
  Value value = main.front().getTerminator()->getOperand(result);
  Sharding sharding = shardingOf(value);
  sharding.partial.clear();
  if (std::optional<Seed> seed = readSeedOf(value))
    for (auto [dim, wanted] : llvm::zip(sharding.dims, normalize(seed->sharding, mesh).dims))
      if (isCut(wanted) && dim == outside(wanted, without(axesOf(wanted), axesOf(dim)), mesh) &&
          !intersects(without(axesOf(wanted), axesOf(dim)), cutAxes(sharding)))
        dim = wanted;
  for (int64_t dim : wholeOutputDims(value.getDefiningOp()))
    sharding.dims[dim] = onlyTime(sharding.dims[dim], mesh);
  return sharding;
}

const CutOrigins &Propagation::originsOf(Value value) const {
  if (auto source = sourceIndex.find(value); source != sourceIndex.end())
    return sources[source->second].origins;
  return ops[opIndex.lookup(value.getDefiningOp())].origins;
}

void Propagation::touch(OpState &state) {
  state.dirty = true;
  for (Value result : state.op->getResults())
    touchUsers(result);
}

void Propagation::touchUsers(Value value) {
  for (Operation *user : value.getUsers())
    if (OpState *state = stateOf(user))
      state->dirty = true;
}

// ---- offers -------------------------------------------------------------------------------------

/// A composite's internal factor is cut when both sides want it: the operand has the cut and a user wants it.
static bool operandHas(const OpState &state, int factor, const DimSharding &cut, const Mesh &mesh,
                       llvm::function_ref<Sharding(Value)> shardingOf) {
  const ShardingRule &rule = state.sharding.rule;
  for (auto [index, operand] : llvm::enumerate(state.op->getOperands()))
    for (auto [d, dim] : llvm::enumerate(rule.operands[index])) {
      SmallVector<DimSharding> groups;
      if (!llvm::is_contained(dim, factor) || isa_and_present<nn::ParameterOp>(operand.getDefiningOp()) ||
          !splitByFactors(rule, dim, shardingOf(operand).dims[d], mesh, groups))
        continue;
      if (groups[llvm::find(dim, factor) - dim.begin()] == cut)
        return true;
    }
  return false;
}

/// Whether a cut of stored pieces lies inside of the cut that a factor has.
bool Propagation::cutsFurther(const OpState &state, int factor, const DimSharding &cut) const {
  const DimSharding &has = state.sharding.factors[factor];
  AxisNames added = without(axesOf(cut), axesOf(has));
  return followsStorage && !state.anchored[factor] && !added.empty() && isCut(has) && has == outside(cut, added, mesh);
}

/// All or nothing for one dim of a result: every factor takes its part of the cut, or none does.
bool Propagation::offerToOp(OpState &state, unsigned result, unsigned dim, const DimSharding &wanted,
                            const CutOrigins &origins) {
  const ShardingRule &rule = state.sharding.rule;
  const ShardingRule::DimFactors &dimFactors = rule.results[result][dim];
  SmallVector<DimSharding> groups;
  if (!splitByFactors(rule, dimFactors, wanted, mesh, groups))
    return false;
  AxisNames used = axesOf(state.sharding.factors);
  for (auto [factor, group] : llvm::zip(dimFactors, groups)) {
    if (group == state.sharding.factors[factor])
      continue;
    const DimSharding &has = state.sharding.factors[factor];
    if ((isCut(has) && !cutsFurther(state, factor, group)) || !mayTake(state, factor, group) ||
        intersects(without(axesOf(group), axesOf(has)), used))
      return false;
    if (rule.factors[factor].isInternal &&
        !operandHas(state, factor, group, mesh, [&](Value value) { return shardingOf(value); }))
      return false;
    llvm::append_range(used, axesOf(group));
  }
  for (auto [factor, group] : llvm::zip(dimFactors, groups)) {
    for (const std::string &axis : axesOf(group))
      if (auto origin = origins.find(axis); origin != origins.end())
        state.origins.insert(*origin);
    state.sharding.factors[factor] = group;
  }
  touch(state);
  return true;
}

/// Offers a cut of one dim of a value to its producer or source. Constants stay whole; users never cut parameters and
/// states over the batch's axes.
bool Propagation::offer(Value value, unsigned dim, const DimSharding &wanted, const CutOrigins &origins) {
  if (OpState *producer = producerOf(value))
    return offerToOp(*producer, cast<OpResult>(value).getResultNumber(), dim, wanted, origins);
  SourceState &source = sources[sourceIndex[value]];
  DimSharding &current = source.sharding.dims[dim];
  AxisNames axes = axesOf(wanted);
  if (source.kind == SourceState::Constant || source.closed[dim] || isCut(current) ||
      intersects(axes, cutAxes(source.sharding)))
    return false;
  if (source.kind == SourceState::Kept && cutsBatch(axes, mesh))
    return false;
  current = normalize(wanted, mesh);
  for (const std::string &axis : axes)
    if (auto origin = origins.find(axis); origin != origins.end())
      source.origins.insert(*origin);
  touchUsers(value);
  return true;
}

// ---- the flow -----------------------------------------------------------------------------------

namespace {
/// A cut that an operand brings to a factor.
struct Candidate {
  bool weight, isSummed;
  int64_t elements;
  unsigned operand;
  int factor;
  DimSharding cut;
};
} // namespace

bool isInResults(const ShardingRule &rule, int factor) {
  return llvm::any_of(rule.results, [&](ArrayRef<ShardingRule::DimFactors> dims) {
    return llvm::any_of(dims, [&](ArrayRef<int> dim) { return llvm::is_contained(dim, factor); });
  });
}

/// An internal factor that results have follows their readers; otherwise the operand decides, as for a sum.
static bool yieldsToResults(const ShardingRule &rule, int factor) {
  return rule.factors[factor].isInternal && isInResults(rule, factor);
}

/// Weights go before activations, then factors that results have before those that are summed: a gradient of a weight keeps the weight's cut,
/// and its rows meet. Then larger operands before smaller ones, and the order of operands.
bool Propagation::takeFromOperands(OpState &state) {
  const ShardingRule &rule = state.sharding.rule;
  std::vector<Candidate> candidates;
  for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
    Sharding sharding = usedSharding(operand);
    bool weight = isa_and_present<nn::ParameterOp>(operand.getDefiningOp());
    for (auto [dim, cut] : llvm::zip(rule.operands[index], sharding.dims)) {
      SmallVector<DimSharding> groups;
      if (!isCut(cut) || !splitByFactors(rule, dim, cut, mesh, groups))
        continue;
      for (auto [factor, group] : llvm::zip(dim, groups))
        if (DimSharding taken = state.whole[factor] ? onlyTime(group, mesh) : group;
            isCut(taken) && (!isCut(state.sharding.factors[factor]) || cutsFurther(state, factor, taken)) && !yieldsToResults(rule, factor) &&
            mayTake(state, factor, taken))
          candidates.push_back({weight, !isInResults(rule, factor), nn::tensorType(operand).getNumElements(), unsigned(index), factor, taken});
    }
  }
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::make_tuple(!a.weight, a.isSummed, -a.elements, a.operand, a.factor) <
           std::make_tuple(!b.weight, b.isSummed, -b.elements, b.operand, b.factor);
  });
  bool changed = false;
  for (const Candidate &candidate : candidates) {
    DimSharding &factor = state.sharding.factors[candidate.factor];
    if ((isCut(factor) && !cutsFurther(state, candidate.factor, candidate.cut)) ||
        intersects(without(axesOf(candidate.cut), axesOf(factor)), axesOf(state.sharding.factors)))
      continue;
    factor = candidate.cut;
    const CutOrigins &origins = originsOf(state.op->getOperand(candidate.operand));
    for (const std::string &axis : axesOf(candidate.cut))
      if (auto origin = origins.find(axis); origin != origins.end())
        state.origins.insert(*origin);
    changed = true;
  }
  return changed;
}

bool Propagation::takeRestFromOperands(OpState &state) {
  const ShardingRule &rule = state.sharding.rule;
  bool changed = false;
  for (auto [index, operand] : llvm::enumerate(state.op->getOperands()))
    for (auto [dim, cut] : llvm::zip(rule.operands[index], usedSharding(operand).dims)) {
      SmallVector<DimSharding> groups;
      if (!isCut(cut) || !splitByFactors(rule, dim, cut, mesh, groups))
        continue;
      for (auto [factor, group] : llvm::zip(dim, groups)) {
        if (isCut(state.sharding.factors[factor]) || yieldsToResults(rule, factor))
          continue;
        DimSharding taken = outside(group, axesOf(state.sharding.factors), mesh);
        if (!mayTake(state, factor, taken))
          taken = onlyTime(taken, mesh);
        if (!isCut(taken) || !mayTake(state, factor, taken))
          continue;
        state.sharding.factors[factor] = taken;
        changed = true;
      }
    }
  return changed;
}

void Propagation::giveToOperands(OpState &state) {
  for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
    Sharding has = shardingOf(operand),
             wanted = project(state.sharding.rule.operands[index], state.sharding.factors, mesh);
    for (unsigned dim = 0; dim < wanted.dims.size(); ++dim)
      if (isCut(wanted.dims[dim]) && wanted.dims[dim] != normalize(has.dims[dim], mesh))
        (void)offer(operand, dim, wanted.dims[dim],
                    state.origins); // a refusal is a conflict, seen again in weighConflicts
  }
}

void Propagation::visit(OpState &state) {
  state.dirty = false;
  if (takeFromOperands(state))
    for (Value result : state.op->getResults())
      touchUsers(result);
  giveToOperands(state);
}

void Propagation::flow() {
  auto anyDirty = [&] { return llvm::any_of(ops, [](const OpState &state) { return state.dirty; }); };
  // Sweeps in both directions: a chain of any length is done in one.
  while (anyDirty()) {
    for (OpState &state : ops)
      if (state.dirty)
        visit(state);
    for (OpState &state : llvm::reverse(ops))
      if (state.dirty)
        visit(state);
  }
}

void Propagation::flowRest() {
  for (OpState &state : ops)
    if (takeRestFromOperands(state)) {
      touch(state);
      flow();
    }
}

} // namespace hpc
