// Pass hpc-collect-partials: n-ary sums add the values that are partial over the same axes first, so that they share
// one all-reduce. Only adds of one shape that nothing else reads take part; the order among equals stays.
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "passes/Partition/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_COLLECTPARTIALS
#include "passes/Partition/Passes.h.inc"

using namespace dist;

/// An inner node of the sum whose result is `type`: an add of that shape that only the sum reads, complete itself.
static bool isInner(Value value, RankedTensorType type) {
  auto add = value.getDefiningOp<nn::AddOp>();
  return add && value.hasOneUse() && value.getType() == type && shardingOf(value).partial.empty() &&
         factorsOf(add);
}

/// The terms of the sum, left to right, and its adds: the root first, every add before those below it. A sum may be as
/// deep as the program.
static void collectLeaves(nn::AddOp root, RankedTensorType type, SmallVectorImpl<Value> &leaves,
                          SmallVectorImpl<Operation *> &adds) {
  SmallVector<Value> pending{root.getResult()};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (value != root.getResult() && !isInner(value, type)) {
      leaves.push_back(value);
      continue;
    }
    auto add = value.getDefiningOp<nn::AddOp>();
    adds.push_back(add);
    pending.push_back(add.getRhs());
    pending.push_back(add.getLhs());
  }
}

/// Whether somebody else needs the whole of a leaf, as the norm does that reads a residual: then it is there for the sum.
static bool isResolvedAnyway(Value leaf) {
  return llvm::any_of(leaf.getUsers(), [](Operation *user) { return !isa<nn::AddOp>(user); });
}

/// Leaves by the axes over which they are partial, in order of appearance; full leaves last and alone. A leaf that is
/// partial over an axis which cuts the sum is scattered before it, and counts as full; so does one that is resolved anyway.
static SmallVector<SmallVector<Value>> group(ArrayRef<Value> leaves, ArrayRef<int64_t> shape, const AxisNames &cut) {
  SmallVector<std::pair<AxisNames, SmallVector<Value>>> groups;
  SmallVector<SmallVector<Value>> result, full;
  for (Value leaf : leaves) {
    AxisNames partial = shardingOf(leaf).partial;
    if (partial.empty() || intersects(partial, cut) || nn::shapeOf(leaf) != shape || isResolvedAnyway(leaf)) {
      full.push_back({leaf});
      continue;
    }
    auto same = llvm::find_if(groups, [&](auto &entry) { return entry.first == partial; });
    if (same == groups.end())
      groups.push_back({partial, {leaf}});
    else
      same->second.push_back(leaf);
  }
  for (auto &entry : groups)
    result.push_back(entry.second);
  llvm::append_range(result, full);
  return result;
}

static void rebuild(nn::AddOp root) {
  auto type = nn::tensorType(root.getResult());
  SmallVector<Value> leaves;
  SmallVector<Operation *> adds;
  collectLeaves(root, type, leaves, adds);
  SmallVector<SmallVector<Value>> groups = group(leaves, type.getShape(), cutAxes(shardingOf(root.getResult())));
  if (llvm::all_of(groups, [](auto &values) { return values.size() < 2; }) || groups.size() < 2)
    return;
  OpBuilder builder(root);
  auto add = [&](Value lhs, Value rhs, const Sharding &sharding) -> Value {
    auto made = nn::AddOp::create(builder, root.getLoc(), withSharding(type, sharding), lhs, rhs);
    setFactors(made, *factorsOf(root));
    return made;
  };
  Value sum;
  for (ArrayRef<Value> values : groups) {
    Sharding partial = shardingOf(root.getResult());
    partial.partial = shardingOf(values[0]).partial;
    Value inner = values[0];
    for (Value value : values.drop_front())
      inner = add(inner, value, partial);
    sum = sum ? add(sum, inner, shardingOf(root.getResult())) : inner;
  }
  setValueIds(sum.getDefiningOp(), {valueIdsOf(root).made, {}});
  root.getResult().replaceAllUsesWith(sum);
  for (Operation *op : adds)
    op->erase();
}

namespace {
struct CollectPartials : impl::CollectPartialsBase<CollectPartials> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    SmallVector<nn::AddOp> roots;
    for (auto add : function.front().getOps<nn::AddOp>()) {
      auto type = nn::tensorType(add.getResult());
      bool inner = add->hasOneUse() && isa<nn::AddOp>(*add->getUsers().begin()) &&
                   isInner(add.getResult(), nn::tensorType((*add->getUsers().begin())->getResult(0)));
      if (!inner && factorsOf(add) && shardingOf(add.getResult()).partial.empty() && type)
        roots.push_back(add);
    }
    for (nn::AddOp root : roots)
      rebuild(root);
  }
};
} // namespace
} // namespace hpc
