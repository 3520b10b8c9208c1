// Conflicts between activations, decided by bytes moved: a cut that some neighbour cannot follow is given up where that
// moves less. A cut is weighed where it is as a whole (all ops along which it flowed), then op by op. Weights and seeds
// are never given up here.
#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/ModuleMachine.h"
#include "passes/Propagate/Propagation.h"

namespace hpc {

using namespace dist;

namespace {
/// A factor of an op.
using Node = std::pair<int, int>;

struct Cost {
  int64_t bytes = 0, collectives = 0;
  Cost &operator+=(const Cost &other) {
    bytes += other.bytes;
    collectives += other.collectives;
    return *this;
  }
  /// With the latency of each collective: one all-reduce is cheaper than a reduce-scatter and a later all-gather.
  int64_t total(const Prices &prices) const { return bytes + collectives * prices.bytesOfLatency; }
};
} // namespace

class ConflictCosts {
public:
  ConflictCosts(Propagation &propagation) : propagation(propagation), mesh(propagation.mesh), prices(pricesOf(propagation.function)) {
    for (OpState &state : propagation.ops)
      updateWants(state);
  }

  /// One round over the groups of factors that carry one cut, then over single factors; whether anything was given up.
  bool round() {
    bool changed = false;
    for (const std::vector<Node> &group : groups())
      changed |= tryGivingUp(group);
    for (int op = 0; op < int(propagation.ops.size()); ++op)
      for (int factor = 0; factor < int(propagation.ops[op].sharding.factors.size()); ++factor)
        if (mayGiveUp({op, factor}))
          changed |= tryGivingUp({Node(op, factor)});
    return changed;
  }

private:
  /// Not cuts of a seed, of a weight (two dims or more; a bias follows) or of the batch.
  bool mayGiveUp(Node node) const {
    const OpState &state = propagation.ops[node.first];
    AxisNames axes = axesOf(state.sharding.factors[node.second]);
    if (axes.empty() || state.anchored[node.second] || cutsBatch(axes, mesh))
      return false;
    // A composite that reduces the cut dim (a loss of logits) keeps its cut: whole, its operand would need more memory.
    const ShardingRule &rule = state.sharding.rule;
    if (rule.factors[node.second].isInternal && !isInResults(rule, node.second))
      return false;
    for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
      Value weight = nn::storedForm(operand);
      if (!isa_and_present<nn::ParameterOp>(weight.getDefiningOp()))
        continue;
      bool fixed =
          nn::tensorType(weight).getRank() >= 2 || propagation.sources[propagation.sourceIndex.lookup(weight)].seeded;
      for (const ShardingRule::DimFactors &dim : state.sharding.rule.operands[index])
        if (fixed && llvm::is_contained(dim, node.second))
          return false;
    }
    return true;
  }

  /// Factors that may be given up, joined where a value carries a cut from one to the other.
  std::vector<std::vector<Node>> groups() {
    std::map<Node, Node> parent; // a forest over the nodes, roots point to themselves
    for (int op = 0; op < int(propagation.ops.size()); ++op)
      for (int factor = 0; factor < int(propagation.ops[op].sharding.factors.size()); ++factor)
        if (mayGiveUp({op, factor}))
          parent[{op, factor}] = {op, factor};
    auto root = [&](Node node) {
      while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
      return node;
    };
    for (auto &entry : parent) {
      OpState &state = propagation.ops[entry.first.first];
      for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
        OpState *producer = propagation.producerOf(operand);
        if (!producer)
          continue;
        auto &sides = producer->sharding.rule.results[cast<OpResult>(operand).getResultNumber()];
        for (auto [dim, theirs] : llvm::zip(state.sharding.rule.operands[index], sides))
          if (llvm::is_contained(dim, entry.first.second))
            for (int factor : theirs)
              if (Node other(int(producer - propagation.ops.data()), factor); parent.count(other))
                parent[root(other)] = root(entry.first);
      }
    }
    std::map<Node, std::vector<Node>> byRoot;
    for (auto &entry : parent)
      byRoot[root(entry.first)].push_back(entry.first);
    std::vector<std::vector<Node>> result;
    for (auto &entry : byRoot)
      result.push_back(std::move(entry.second));
    return result;
  }

  bool tryGivingUp(const std::vector<Node> &nodes) {
    std::vector<int> members;
    for (Node node : nodes)
      if (members.empty() || members.back() != node.first)
        members.push_back(node.first);
    Cost before = costAround(members);
    if (before.bytes == 0)
      return false;
    std::vector<OpSharding> kept;
    for (int member : members)
      kept.push_back(propagation.ops[member].sharding);
    for (Node node : nodes) {
      OpSharding &sharding = propagation.ops[node.first].sharding;
      sharding.factors[node.second] = uncutFactors(sharding.rule)[node.second];
    }
    for (int member : members) {
      propagation.choosePassing(propagation.ops[member]);
      updateWants(propagation.ops[member]);
    }
    if (costAround(members).total(prices) < before.total(prices))
      return true;
    for (auto [member, sharding] : llvm::zip(members, kept)) {
      propagation.ops[member].sharding = sharding;
      updateWants(propagation.ops[member]);
    }
    return false;
  }

  /// The cost of moving the ops' operands and results to all their users, and of the composites' all-reduces for an
  /// internal cut.
  Cost costAround(ArrayRef<int> members) {
    Cost cost;
    llvm::SmallPtrSet<Value, 16> seen;
    for (int member : members) {
      const OpState &state = propagation.ops[member];
      cost += internalCost(state);
      SmallVector<Value> values(state.op->getOperands());
      llvm::append_range(values, state.op->getResults());
      for (Value value : values)
        if (seen.insert(value).second)
          cost += costOf(value);
    }
    return cost;
  }

  /// Recounts the shardings in which the op wants its operands, from its factors.
  void updateWants(OpState &state) {
    SmallVector<int> &noted = wantedBy[state.op];
    bool isNew = noted.empty();
    for (auto [index, operand] : llvm::enumerate(state.op->getOperands())) {
      Sharding sharding = state.sharding.operand(index, mesh);
      auto [entry, isUnknown] = numbers.try_emplace(toString(sharding), int(shardings.size()));
      if (isUnknown)
        shardings.push_back(sharding);
      int number = entry->second;
      if (isNew) {
        noted.push_back(number);
      } else {
        if (noted[index] == number)
          continue;
        auto old = wants[operand].find(noted[index]);
        if (--old->second == 0)
          wants[operand].erase(old);
        noted[index] = number;
      }
      ++wants[operand][number];
    }
  }

  /// Every wanted sharding is made once; one that is a slice of another wanted sharding costs nothing.
  /// Counts by sharding replace a walk over the users: a mask or a table of positions has as many as there are layers.
  Cost costOf(Value value) {
    if (auto source = propagation.sourceIndex.find(value); source != propagation.sourceIndex.end())
      if (propagation.sources[source->second].kind == SourceState::Kept)
        return {};
    Sharding has = propagation.shardingOf(value);
    std::vector<Sharding> wanted;
    for (auto [number, count] : wants[value])
      wanted.push_back(shardings[number]);
    if (isReturned(value)) {
      Sharding complete = has;
      complete.partial.clear();
      if (!llvm::is_contained(wanted, complete))
        wanted.push_back(complete);
    }
    Cost total;
    int64_t width = elementBytes(nn::tensorType(value).getElementType());
    for (const Sharding &target : wanted) {
      Cost direct = move(has, target, width);
      bool free =
          direct.bytes == 0 || llvm::any_of(wanted, [&](const Sharding &other) {
            return other != target && move(has, other, width).bytes > 0 && move(other, target, width).bytes == 0;
          });
      if (!free)
        total += direct;
    }
    return total;
  }

  /// Whether anything but an op with a rule reads the value.
  bool isReturned(Value value) {
    auto [entry, isNew] = returned.try_emplace(value, false);
    if (isNew)
      entry->second = llvm::any_of(value.getUsers(), [&](Operation *user) { return !propagation.stateOf(user); });
    return entry->second;
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
        entry->second.collectives = llvm::count_if(*steps, [](const ReshardStep &step) {
          return step.kind != ReshardStep::Slice && step.kind != ReshardStep::Accumulate;
        });
      }
    }
    return entry->second;
  }

  /// A composite that is decomposed all-reduces about two numbers a row.
  Cost internalCost(const OpState &state) {
    Cost cost;
    for (auto [factor, cut] : llvm::zip(state.sharding.rule.factors, state.sharding.factors))
      if (factor.isInternal && isCut(cut)) {
        // The number of rows of the first operand, along which the composite runs.
        RankedTensorType type = nn::tensorType(state.op->getOperand(0));
        cost.bytes += 4 * elementBytes(type) * type.getNumElements() / factor.size;
        cost.collectives += 2;
      }
    return cost;
  }

  Propagation &propagation;
  const Mesh &mesh;
  const Prices prices;
  std::map<std::string, Cost> moves;
  std::map<std::string, int> numbers;               ///< of wanted shardings, by text
  std::vector<Sharding> shardings;                  ///< by number
  DenseMap<Value, std::map<int, int>> wants;        ///< by value: how many uses want each sharding
  DenseMap<Operation *, SmallVector<int>> wantedBy; ///< per operand, as counted in `wants`
  DenseMap<Value, bool> returned;
};

void Propagation::weighConflicts() {
  ConflictCosts costs(*this);
  // Each round only gives up, so the number of rounds is bounded; in practice the second or third finds nothing.
  while (costs.round()) {
  }
}

void Propagation::settleParameters() {
  for (SourceState &source : sources) {
    if (source.kind != SourceState::Kept || source.seeded)
      continue;
    for (unsigned dim = 0; dim < source.sharding.dims.size(); ++dim)
      for (OpOperand &use : source.value.getUses())
        if (OpState *user = stateOf(use.getOwner()))
          if (user->sharding.operand(use.getOperandNumber(), mesh).dims[dim] != source.sharding.dims[dim])
            source.sharding.dims[dim] = replicated({nn::shapeOf(source.value)[dim]}).dims[0];
  }
}

} // namespace hpc
