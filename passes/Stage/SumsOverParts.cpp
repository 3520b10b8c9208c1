// Both rewrites look at trees of additions: an addition whose only reader is another one of the same type is inside.
#include "passes/Stage/SumsOverParts.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

#include <map>

namespace hpc {

/// An addition that broadcasts nothing, or null.
static nn::AddOp plainSum(Operation *op) {
  auto add = dyn_cast_or_null<nn::AddOp>(op);
  return add && add.getLhs().getType() == add.getType() && add.getRhs().getType() == add.getType() ? add : nn::AddOp();
}

/// The terms of the tree below an addition, first to last, and the additions in it, readers before what they read.
static void findTerms(nn::AddOp root, SmallVectorImpl<Value> &terms, SmallVectorImpl<Operation *> &additions) {
  SmallVector<Value> pending{root.getResult()};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    nn::AddOp add = plainSum(value.getDefiningOp());
    if (!add || (add != root && (!value.hasOneUse() || value.getType() != root.getType()))) {
      terms.push_back(value);
      continue;
    }
    additions.push_back(add);
    pending.push_back(add.getRhs());
    pending.push_back(add.getLhs());
  }
}

static Value addUp(OpBuilder &builder, Location location, ArrayRef<Value> terms) {
  Value sum = terms.front();
  for (Value term : terms.drop_front())
    sum = nn::AddOp::create(builder, location, sum.getType(), sum, term);
  return sum;
}

static void eraseUnused(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (op->use_empty())
      op->erase();
}

// ---- over micro-batches -------------------------------------------------------------------------

/// The addition whose result is accumulated, through collectives that preserve a sum; `chain` lists the ops from the
/// accumulation upwards.
static nn::AddOp sumBefore(dist::AccumulateOp accumulate, SmallVectorImpl<Operation *> &chain) {
  chain.push_back(accumulate);
  Value value = accumulate.getOperand();
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (nn::AddOp add = plainSum(op))
      return add;
    auto collective = dyn_cast_or_null<CollectiveOpInterface>(op);
    if (!collective || isa<dist::AccumulateOp>(op) || collective.getReduction().value_or(ReduceKind::Sum) != ReduceKind::Sum)
      break;
    chain.push_back(op);
    value = op->getOperand(0);
  }
  return {};
}

bool accumulateByPart(func::FuncOp function, const StepParts &parts) {
  SmallVector<dist::AccumulateOp> accumulations(function.getBody().front().getOps<dist::AccumulateOp>());
  bool changed = false;
  for (dist::AccumulateOp accumulate : accumulations) {
    SmallVector<Operation *> chain, additions;
    SmallVector<Value> terms;
    nn::AddOp root = sumBefore(accumulate, chain);
    if (!root || parts.programOf(root.getResult()).value_or(0) < parts.numParts())
      continue; // gradients alone: the terms of a sum in the graph are in one part
    findTerms(root, terms, additions);
    std::map<size_t, SmallVector<Value>> byPart;
    for (Value term : terms) {
      std::optional<StepParts::Program> program = parts.programOf(term);
      byPart[program ? parts.partOf(*program) : 0].push_back(term);
    }
    if (byPart.size() < 2)
      continue;
    OpBuilder builder(accumulate);
    SmallVector<Value> subtotals;
    for (auto &[part, ofPart] : byPart) {
      // The place of its terms: the location of the whole sum is that of the earliest of all terms.
      Location place = ofPart.front().getLoc();
      Value value = addUp(builder, place, ofPart);
      for (Operation *op : llvm::reverse(chain)) {
        Operation *copy = builder.clone(*op);
        copy->setLoc(place);
        setValueIds(copy, {});
        copy->setOperand(0, value);
        value = copy->getResult(0);
      }
      subtotals.push_back(value);
    }
    Value total = addUp(builder, accumulate.getLoc(), subtotals);
    setValueIds(total.getDefiningOp(), {valueIdsOf(accumulate).held(), {}});
    accumulate.getResult().replaceAllUsesWith(total);
    eraseUnused(chain);
    eraseUnused(additions);
    changed = true;
  }
  return changed;
}

// ---- over stages --------------------------------------------------------------------------------

namespace {
class HomeFinder {
public:
  HomeFinder(func::FuncOp function, StepParts &parts) : function(function), parts(parts) {}

  llvm::DenseMap<Operation *, Homes> run() {
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front().without_terminator())
      if (parts.isOnceAStep(&op))
        ops.push_back(&op);
    for (Operation *op : ops) {
      nn::AddOp add = plainSum(op);
      if (!add || isInside(add) || !orderTerms(add))
        homes[op] = homesOver(op->getOperands());
    }
    for (Operation *op : erased) {
      homes.erase(op);
      parts.forget(op);
      op->erase();
    }
    return std::move(homes);
  }

private:
  /// None for a value cheap to repeat.
  std::optional<Homes> homesOf(Value value) const {
    if (std::optional<StepParts::Program> program = parts.programOf(value)) {
      Homes home(unsigned(parts.numStages()));
      home.set(unsigned(parts.stageOf(*program)));
      return home;
    }
    auto found = value.getDefiningOp() ? homes.find(value.getDefiningOp()) : homes.end();
    return found == homes.end() ? std::nullopt : std::optional(found->second);
  }

  /// The stages of the largest values, since the others are cheaper to send: a factor goes to the gradient.
  Homes homesOver(ValueRange values) const {
    Homes common(unsigned(parts.numStages()), true), any(unsigned(parts.numStages()));
    int64_t largest = -1;
    for (Value value : values) {
      std::optional<Homes> homes = homesOf(value);
      int64_t size = nn::tensorType(value).getNumElements();
      if (!homes || size < largest)
        continue;
      if (size > largest) {
        common.set();
        any.reset();
        largest = size;
      }
      common &= *homes;
      any |= *homes;
    }
    return common.any() ? common : any;
  }

  bool isInside(nn::AddOp add) const {
    return add->hasOneUse() && parts.isOnceAStep(*add->user_begin()) && plainSum(*add->user_begin()) &&
           (*add->user_begin())->getResult(0).getType() == add.getType();
  }

  /// False where all terms are in one stage, or where an addition does not run once a step.
  bool orderTerms(nn::AddOp root) {
    SmallVector<Value> terms;
    SmallVector<Operation *> additions;
    findTerms(root, terms, additions);
    std::map<int, SmallVector<Value>> byStage;
    for (Value term : terms) {
      std::optional<Homes> homes = homesOf(term);
      byStage[homes ? homes->find_first() : 0].push_back(term);
    }
    if (byStage.size() < 2 || !llvm::all_of(additions, [&](Operation *op) { return parts.isOnceAStep(op); }))
      return false;
    OpBuilder builder(root);
    SmallVector<Value> subtotals;
    for (auto &[stage, ofStage] : byStage) {
      subtotals.push_back(ofStage.front());
      for (Value term : ArrayRef(ofStage).drop_front()) {
        subtotals.back() = addUp(builder, root.getLoc(), {subtotals.back(), term});
        take(subtotals.back().getDefiningOp(), homesOver({subtotals.back().getDefiningOp()->getOperands()}));
      }
    }
    Homes everywhere(unsigned(parts.numStages()));
    for (Value subtotal : subtotals)
      everywhere |= homesOf(subtotal).value_or(Homes(unsigned(parts.numStages())));
    // Two stages exchange their subtotals. More would need a message for each pair, so one stage adds up for all.
    if (everywhere.count() > 2) {
      unsigned first = unsigned(everywhere.find_first());
      everywhere.reset();
      everywhere.set(first);
    }
    Value total = subtotals.front();
    for (Value subtotal : ArrayRef(subtotals).drop_front()) {
      total = addUp(builder, root.getLoc(), {total, subtotal});
      take(total.getDefiningOp(), everywhere);
    }
    setValueIds(total.getDefiningOp(), valueIdsOf(root));
    root.getResult().replaceAllUsesWith(total);
    // From the root down, so that each addition is erased before those that it reads.
    llvm::append_range(erased, additions);
    return true;
  }

  void take(Operation *op, Homes home) {
    homes[op] = std::move(home);
    parts.runOnceAStep(op);
  }

  func::FuncOp function;
  StepParts &parts;
  llvm::DenseMap<Operation *, Homes> homes;
  SmallVector<Operation *> erased;
};
} // namespace

llvm::DenseMap<Operation *, Homes> placeUpdates(func::FuncOp function, StepParts &parts) {
  return HomeFinder(function, parts).run();
}

} // namespace hpc
