// Conflicts between activations, decided by bytes moved: a cut that some neighbour cannot follow is given up where that moves less.
// Weights and seeds are never given up here, so an op keeps every cut that it shares with a parameter.
#include "compiler/Dialect/NN/NN.h"
#include "passes/Propagate/Propagation.h"

namespace hpc {

using namespace dist;

std::vector<Sharding> distinct(std::vector<Sharding> shardings) {
  std::vector<Sharding> result;
  for (Sharding &sharding : shardings)
    if (!llvm::is_contained(result, sharding))
      result.push_back(std::move(sharding));
  return result;
}

namespace {
/// Bytes first; then the number of collectives, each of which has a latency.
struct Cost {
  int64_t bytes = 0, collectives = 0;
  Cost &operator+=(const Cost &other) {
    bytes += other.bytes;
    collectives += other.collectives;
    return *this;
  }
  bool operator<(const Cost &other) const { return std::tie(bytes, collectives) < std::tie(other.bytes, other.collectives); }
};
} // namespace

class ConflictCosts {
public:
  ConflictCosts(Propagation &propagation) : propagation(propagation), mesh(propagation.mesh) {}

  /// One sweep; whether anything was given up.
  bool sweep() {
    bool changed = false;
    for (OpState &state : propagation.ops)
      for (unsigned factor = 0; factor < state.sharding.factors.size(); ++factor)
        if (mayGiveUp(state, factor))
          changed |= tryGivingUp(state, factor);
    return changed;
  }

private:
  bool mayGiveUp(const OpState &state, unsigned factor) const {
    AxisNames axes = axesOf(state.sharding.factors[factor]);
    if (axes.empty() || state.anchored[factor] || llvm::is_contained(axes, "mb"))
      return false;
    for (auto [index, operand] : llvm::enumerate(state.op->getOperands()))
      if (isa_and_present<nn::ParameterOp>(operand.getDefiningOp()))
        for (const ShardingRule::DimFactors &dim : state.sharding.rule.operands[index])
          if (llvm::is_contained(dim, int(factor)))
            return false;
    return true;
  }

  bool tryGivingUp(OpState &state, unsigned factor) {
    Cost cut = costAround(state);
    if (cut.bytes == 0)
      return false;
    OpSharding before = state.sharding;
    state.sharding.factors[factor] = uncutFactors(before.rule)[factor];
    propagation.choosePassing(state);
    if (costAround(state) < cut)
      return true;
    state.sharding = before;
    return false;
  }

  /// What the op's operands and results cost on their way to all their users, and what a composite pays for an internal cut.
  Cost costAround(const OpState &state) {
    Cost cost = internalCost(state);
    SmallVector<Value> values;
    llvm::append_range(values, state.op->getOperands());
    llvm::append_range(values, state.op->getResults());
    llvm::SmallPtrSet<Value, 8> seen;
    for (Value value : values)
      if (seen.insert(value).second)
        cost += costOf(value);
    return cost;
  }

  /// Every sharding that users want is made once; one that another wanted sharding gives by slicing costs nothing.
  Cost costOf(Value value) {
    if (auto source = propagation.sourceIndex.find(value); source != propagation.sourceIndex.end())
      if (propagation.sources[source->second].kind == SourceState::Parameter)
        return {};
    Sharding has = propagation.shardingOf(value);
    std::vector<Sharding> wanted;
    for (OpOperand &use : value.getUses()) {
      if (OpState *user = propagation.stateOf(use.getOwner()))
        wanted.push_back(user->sharding.operand(use.getOperandNumber(), mesh));
      else { // returned
        wanted.push_back(has);
        wanted.back().partial.clear();
      }
    }
    wanted = distinct(std::move(wanted));
    Cost total;
    int64_t width = nn::tensorType(value).getElementTypeBitWidth() / 8 + 1;
    for (const Sharding &target : wanted) {
      Cost direct = move(has, target, width);
      bool free = direct.bytes == 0 || llvm::any_of(wanted, [&](const Sharding &other) {
        return other != target && move(has, other, width).bytes > 0 && move(other, target, width).bytes == 0;
      });
      if (!free)
        total += direct;
    }
    return total;
  }

  Cost move(const Sharding &from, const Sharding &to, int64_t elementBytes) {
    if (from == to)
      return {};
    std::string key = toString(from) + ">" + toString(to) + "*" + std::to_string(elementBytes);
    auto [entry, isNew] = moves.try_emplace(key);
    if (isNew) {
      Expected<std::vector<ReshardStep>> steps = planReshard(from, to, mesh);
      if (!steps.ok())
        entry->second.bytes = std::numeric_limits<int64_t>::max() / 64; // not at all
      else {
        entry->second.bytes = bytesMoved(*steps, mesh, elementBytes);
        entry->second.collectives = llvm::count_if(*steps, [](const ReshardStep &step) { return step.kind != ReshardStep::Slice; });
      }
    }
    return entry->second;
  }

  /// A composite that is decomposed all-reduces about two numbers a row.
  Cost internalCost(const OpState &state) {
    Cost cost;
    for (auto [factor, cut] : llvm::zip(state.sharding.rule.factors, state.sharding.factors))
      if (factor.isInternal && isCut(cut)) {
        cost.bytes += 4 * 4 * nn::tensorType(state.op->getResult(0)).getNumElements() / factor.size;
        cost.collectives += 2;
      }
    return cost;
  }

  Propagation &propagation;
  const Mesh &mesh;
  std::map<std::string, Cost> moves;
};

void Propagation::weighConflicts() {
  ConflictCosts costs(*this);
  // Each sweep only gives up, so the number of sweeps is bounded; in practice the second finds nothing.
  while (costs.sweep()) {
  }
}

void Propagation::settleParameters() {
  for (SourceState &source : sources) {
    if (source.kind != SourceState::Parameter || source.seeded)
      continue;
    for (unsigned dim = 0; dim < source.sharding.dims.size(); ++dim)
      for (OpOperand &use : source.value.getUses())
        if (OpState *user = stateOf(use.getOwner()))
          if (user->sharding.operand(use.getOperandNumber(), mesh).dims[dim] != source.sharding.dims[dim])
            source.sharding.dims[dim] = replicated({nn::shapeOf(source.value)[dim]}).dims[0];
  }
}

} // namespace hpc
