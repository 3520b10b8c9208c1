// Greedy fusion. A union of two groups is legal when (1) its results fit one loop nest, (2) its reductions are done
// once per row or once per result or add up rows, its composites once per row, (3) no expensive op is computed more
// often than before and the pulled work is bounded (PulledWork), (4) no path leaves it and comes
// back.
#include "passes/Kernels/Fusion/FusionGroups.h"

#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Elements/RowComposites.h"
#include "passes/Kernels/Fusion/Ancestors.h"
#include "passes/Kernels/Fusion/PulledWork.h"

#include "compiler/StepPart.h"

namespace hpc::kernels {

namespace {
constexpr size_t maxOps = 96;          // bounds the time to compile one kernel
constexpr size_t maxReads = 320;       // likewise; a group of ops with few operands stays below it
constexpr int64_t maxRowPasses = 4;    // each pulls its operand once more
constexpr int64_t maxRepeatedOps = 8;  // cheap ops that a broadcast may repeat
constexpr int64_t fewestItems = 8;     // blocks of rows, where sums of them are results: one is the work of one thread
} // namespace

SmallVector<Value> FusionGroup::results() const {
  SmallVector<Value> results;
  // Through reshapes of the group as well, however many.
  std::function<bool(Operation *)> isRead = [&](Operation *user) {
    return !members.contains(user) && (!llvm::is_contained(reshapes, user) || llvm::any_of(user->getUsers(), isRead));
  };
  for (Operation *op : ops)
    if (llvm::any_of(op->getUsers(), isRead))
      results.push_back(op->getResult(0));
  return results;
}

namespace {
/// A sum over leading dims.
bool isRowSum(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  return reduce && reduce.getKind() == ReduceKind::Sum && !reduce.getAxes().empty() &&
         reduce.getAxes().back() == nn::tensorType(reduce.getOperand()).getRank() - 2;
}

/// Adds the reshapes on the way from a member of one group to a member of another.
void addReshapes(const FusionGroup &from, const FusionGroup &to, SmallVectorImpl<Operation *> &reshapes) {
  for (Operation *op : to.ops)
    for (Value operand : op->getOperands()) {
      const size_t known = reshapes.size();
      Operation *producer = operand.getDefiningOp();
      for (; producer && !from.members.contains(producer) && !to.members.contains(producer) && isAlias(producer);
           producer = producer->getOperand(0).getDefiningOp())
        reshapes.push_back(producer);
      if (!producer || !from.members.contains(producer))
        reshapes.truncate(known);
    }
}

FusionGroup unite(const FusionGroup &a, const FusionGroup &b) {
  auto isBefore = [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); };
  FusionGroup group;
  std::merge(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), std::back_inserter(group.ops), isBefore);
  group.members = a.members;
  group.members.insert(b.ops.begin(), b.ops.end());
  // Every reshape from a member to a member, chains included.
  group.reshapes = a.reshapes;
  llvm::append_range(group.reshapes, b.reshapes);
  addReshapes(a, b, group.reshapes);
  if (b.ops.front()->isBeforeInBlock(a.ops.back()))
    addReshapes(b, a, group.reshapes);
  // Reshapes before a sum of rows, so that it reads the same value as other ops. A larger group has these already.
  for (const FusionGroup *part : {&a, &b})
    if (Operation *op = part->ops.front(); part->ops.size() == 1 && isRowSum(op))
      for (Operation *producer = op->getOperand(0).getDefiningOp(); producer && isAlias(producer);
           producer = producer->getOperand(0).getDefiningOp())
        group.reshapes.push_back(producer);
  llvm::sort(group.reshapes, isBefore);
  group.reshapes.erase(llvm::unique(group.reshapes), group.reshapes.end());
  return group;
}

/// Whether `op` of the second group reads an op outside of the union that follows from the first group: isConvex would
/// find it by a walk along everything between.
bool comesBack(const FusionGroup &first, Operation *op, const FusionGroup &both, const Ancestors &ancestors) {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return producer && !both.contains(producer) && llvm::any_of(first.ops, [&](Operation *member) {
      return ancestors.isKnownPath(member, producer);
    });
  });
}

/// Whether one more op can close no cycle: all its operands are in the group or sources, and nothing reads it yet.
bool readsGroupAlone(Operation *op, const FusionGroup &both) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return !producer || producer->getNumOperands() == 0 || both.contains(producer);
  });
}

/// The cost of pulling a value within a group.
struct Cone {
  bool hasReduction = false, isExpensive = false;
  int64_t ops = 0;
};

class Legality {
public:
  Legality(const FusionGroup &group, const FusionRoles &roles) : group(group), roles(roles) {}

  bool check() {
    results = group.results();
    size_t reads = 0;
    for (Operation *op : group.ops)
      reads += op->getNumOperands();
    if (group.ops.size() > maxOps || reads > maxReads || !findShape())
      return false;
    for (Operation *op : group.reshapes)
      if (!leadsToColumnSums(op) && (!keepsRows(op) || cone(op->getOperand(0)).hasReduction))
        return false;
    return llvm::all_of(group.ops, [&](Operation *op) { return checkOperands(op); }) && checkWork();
  }

  /// No path leaves the group and comes back. Another group is one step of a path, whichever of its ops the path enters
  /// and leaves by: two groups that read each other could not run.
  bool isConvex(llvm::function_ref<SmallVector<Operation *>(Operation *)> fusedWith) const {
    SmallVector<Operation *> open;
    DenseSet<Operation *> seen, done; // a group is walked through once, by whichever of its ops
    auto visitUsers = [&](Operation *op) {
      for (Operation *user : op->getUsers())
        if (!group.contains(user) && seen.insert(user).second)
          open.push_back(user);
    };
    for (Operation *op : group.ops)
      visitUsers(op);
    for (Operation *op : group.reshapes)
      visitUsers(op);
    while (!open.empty()) {
      Operation *op = open.pop_back_val();
      // No op after the group's last op leads back into it, and there are no groups there yet.
      if (!op->isBeforeInBlock(group.ops.back()) || done.contains(op))
        continue;
      for (Operation *step : fusedWith(op)) {
        seen.insert(step);
        done.insert(step);
        if (llvm::any_of(step->getUsers(), [&](Operation *user) { return group.members.contains(user); }))
          return false;
        visitUsers(step);
      }
    }
    return true;
  }

private:
  bool findShape() {
    SmallVector<Operation *> combining;
    for (Operation *op : group.ops)
      if (combinesElements(op))
        combining.push_back(op);
    std::optional<RegionShape> found = findRegionShape(results, combining);
    if (!found)
      return false;
    shape = *found;
    if (!shape.columnSums.empty() && (shape.items() < fewestItems || llvm::any_of(shape.columnSums, [&](ColumnSum sum) {
                                        return isReadInside(sum.op);
                                      })))
      return false;
    int64_t passes = 0;
    for (Operation *op : shape.rowOps)
      passes += isa<nn::ReduceOp>(op) ? 1 : passesOverRow(op);
    return passes <= maxRowPasses && llvm::all_of(combining, [&](Operation *op) {
             return llvm::is_contained(shape.rowOps, op) || shape.isColumnSum(op->getResult(0)) ||
                    nn::shapeOf(op->getResult(0)) == ArrayRef<int64_t>(shape.root);
           });
  }

  bool isReadInside(Operation *op) const {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return group.contains(user); });
  }
  /// Whether a reshape needs no check: the sums after it add up the rows of its operand.
  bool leadsToColumnSums(Operation *reshape) const {
    return llvm::all_of(reshape->getUsers(), [&](Operation *user) {
      return !group.contains(user) || (isAlias(user) ? leadsToColumnSums(user) : shape.isColumnSum(user->getResult(0)));
    });
  }
  bool isInside(Value value) const { return value.getDefiningOp() && group.contains(value.getDefiningOp()); }

  const Cone &cone(Value value) {
    auto [found, isNew] = cones.try_emplace(value);
    if (!isNew || !isInside(value))
      return found->second;
    Operation *op = value.getDefiningOp();
    Access access = *accessOf(op);
    // An op that reads from many places (a concat of many parts) has code for each place wherever it is pulled to.
    int64_t ops = op->getNumOperands() > maxRepeatedOps ? maxRepeatedOps + 1 : 1;
    Cone sum{access == Access::Combine || access == Access::Composite, isExpensive(op), ops};
    for (Value operand : op->getOperands()) {
      const Cone &part = cone(operand);
      // The sum over paths, which double where they meet again: it saturates.
      sum = {sum.hasReduction || part.hasReduction, sum.isExpensive || part.isExpensive,
             std::min<int64_t>(sum.ops + part.ops, maxRepeatedOps + 1)};
    }
    return cones[value] = sum;
  }

  /// A broadcast may repeat cheap values, and values with one element per row.
  bool checkRepeats(Operation *op, Value operand) {
    if (nn::tensorType(operand).getNumElements() >= nn::tensorType(op->getResult(0)).getNumElements() ||
        shape.isRowShape(nn::shapeOf(operand)))
      return true;
    return !cone(operand).isExpensive && cone(operand).ops <= maxRepeatedOps;
  }

  /// Whether an op may compute its operand where it reads it.
  bool mayPull(OpOperand &use) {
    Operation *op = use.getOwner();
    Value operand = use.get();
    const Cone inner = cone(operand);
    if (isa<nn::UpdateSliceOp>(operand.getDefiningOp()))
      return false; // only its rows are computed
    if (isa<nn::UpdateSliceOp>(op)) // rows at the element that is computed; the position is one number
      return use.getOperandNumber() == 1 || !inner.isExpensive;
    switch (*accessOf(op)) {
    case Access::Elementwise:
      return checkRepeats(op, operand);
    case Access::Move:
      return !inner.hasReduction;
    case Access::Repeat:
      return !inner.hasReduction && checkRepeats(op, operand);
    case Access::Combine: // a running sum reads every element many times
      return isa<nn::ReduceOp>(op) &&
             (llvm::is_contained(shape.rowOps, op) || shape.isColumnSum(op->getResult(0)) || !inner.hasReduction);
    case Access::Composite: // its row's operand, or a scale or shift
      return use.getOperandNumber() == 0 || checkRepeats(op, operand);
    default: // concat, pad, gathers: pulled at every index, chosen or not
      return !inner.isExpensive && inner.ops <= maxRepeatedOps;
    }
  }

  bool checkOperands(Operation *op) {
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &use) { return !isInside(use.get()) || mayPull(use); });
  }

  bool checkWork() const {
    PulledWork work([&](Operation *op) { return group.contains(op) || roles.of(op) == FusionRole::Cloned; });
    return llvm::all_of(results, [&](Value result) {
      std::optional<ColumnSum> sum =
          shape.isColumnSum(result) ? findColumnSum(result.getDefiningOp(), shape.root) : std::nullopt;
      return work.pull(sum ? sum->term : result, shape.root);
    });
  }

  const FusionGroup &group;
  const FusionRoles &roles;
  SmallVector<Value> results; ///< of the group
  RegionShape shape;
  DenseMap<Value, Cone> cones;
};
} // namespace

/// Whether a union would put a clone for gradients beside the graph's ops: it would be computed together with them, and
/// its result kept.
static bool wouldKeepRepetition(const FusionGroup &a, const FusionGroup &b) {
  auto has = [](const FusionGroup &group, StepPart part) {
    return llvm::any_of(group.ops, [&](Operation *op) { return stepPartOf(op->getLoc()) == part; });
  };
  return (has(a, StepPart::Repeated) && has(b, StepPart::Forward)) ||
         (has(a, StepPart::Forward) && has(b, StepPart::Repeated));
}

/// The value before views that change only its shape.
static Value withoutReshapes(Value value) {
  while (isAlias(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

namespace {
/// The ops that read a value as it lies in memory, in program order: another reader of the value may include sums of
/// its rows, or the sums the reader, though neither reads the other.
class Neighbours {
public:
  /// Ops whose groups might join the group of `op`.
  SmallVector<Operation *> of(Operation *op) const {
    SmallVector<Operation *> found;
    for (Value operand : op->getOperands())
      if (auto known = readers.find(withoutReshapes(operand)); known != readers.end())
        found.append(isRowSum(op) ? known->second.all : known->second.sums);
    return found;
  }
  void add(Operation *op) {
    for (Value operand : op->getOperands()) {
      Readers &known = readers[withoutReshapes(operand)];
      known.all.push_back(op);
      if (isRowSum(op))
        known.sums.push_back(op);
    }
  }

private:
  struct Readers {
    SmallVector<Operation *, 2> all, sums;
  };
  DenseMap<Value, Readers> readers;
};
} // namespace

std::vector<FusionGroup> formGroups(Block &block, const FusionRoles &roles) {
  std::vector<FusionGroup> groups;
  DenseMap<Operation *, size_t> groupOf;
  Neighbours neighbours;
  const Ancestors ancestors(block);
  for (Operation &op : block) {
    bool isMember = roles.of(&op) == FusionRole::Grouped || roles.materialized.contains(&op);
    if (!isMember)
      continue;
    size_t mine = groups.size();
    groupOf[&op] = mine;
    groups.push_back({{&op}, {&op}, {}});
    if (roles.of(&op) == FusionRole::Cloned)
      continue; // reads buffers and clones alone
    SmallVector<Operation *> others;
    for (Value operand : op.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      while (producer && roles.of(producer) == FusionRole::Alias)
        producer = producer->getOperand(0).getDefiningOp();
      others.push_back(producer);
    }
    others.append(neighbours.of(&op));
    neighbours.add(&op);
    llvm::SmallDenseSet<size_t> apart; // groups that cannot join the one of `op`, as it is now
    for (Operation *other : others) {
      auto found = other && roles.of(other) == FusionRole::Grouped ? groupOf.find(other) : groupOf.end();
      if (found == groupOf.end() || found->second == mine)
        continue;
      size_t theirs = found->second;
      if (groups[theirs].ops.size() + groups[mine].ops.size() > maxOps || !apart.insert(theirs).second ||
          wouldKeepRepetition(groups[theirs], groups[mine]))
        continue;
      FusionGroup both = unite(groups[theirs], groups[mine]);
      auto fusedWith = [&](Operation *other) -> SmallVector<Operation *> {
        auto group = groupOf.find(other);
        return group == groupOf.end() ? SmallVector<Operation *>{other} : groups[group->second].ops;
      };
      Legality legality(both, roles);
      bool isFirst = groups[mine].ops.size() == 1;
      if (comesBack(groups[theirs], &op, both, ancestors) || !legality.check() ||
          !((isFirst && readsGroupAlone(&op, both)) || legality.isConvex(fusedWith)))
        continue;
      for (Operation *member : both.ops)
        groupOf[member] = theirs;
      groups[theirs] = std::move(both);
      groups[mine] = {};
      mine = theirs;
      apart.clear();
    }
  }
  llvm::erase_if(groups, [](const FusionGroup &group) { return group.ops.empty(); });
  return groups;
}

} // namespace hpc::kernels
