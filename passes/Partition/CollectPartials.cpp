// Pass hpc-collect-partials: a sum (SumTree.h) adds terms that are partial over the same axes first, so that they share
// one all-reduce; the order among equals stays. A scaled term (partial + bias) * scale becomes partial * scale + bias *
// scale: otherwise every such term would be resolved before its bias. A partial times a number is resolved before the
// multiplication where it is resolved after it anyway: its readers can scale as they read.
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Dialect/NN/SumTree.h"
#include "passes/Partition/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace hpc {
#define GEN_PASS_DEF_COLLECTPARTIALS
#include "passes/Partition/Passes.h.inc"

using namespace dist;

/// Terms by the axes over which they are partial, in order of appearance; full terms last and alone. A term that is
/// resolved anyway counts as full; so does one alone that is partial over an axis which cuts the sum: it is scattered before.
static SmallVector<SmallVector<nn::SumTerm>> group(ArrayRef<nn::SumTerm> terms, ArrayRef<int64_t> shape,
                                                   const AxisNames &cut) {
  llvm::MapVector<AxisNames, SmallVector<nn::SumTerm>, std::map<AxisNames, unsigned>> groups;
  SmallVector<SmallVector<nn::SumTerm>> result, full;
  for (const nn::SumTerm &term : terms) {
    AxisNames partial = shardingOf(term.value).partial;
    if (partial.empty() || !nn::isCollected(term.value, shape))
      full.push_back({term});
    else
      groups[partial].push_back(term);
  }
  for (auto &[axes, collected] : groups)
    if (collected.size() == 1 && intersects(axes, cut))
      full.push_back(collected);
    else
      result.push_back(collected);
  llvm::append_range(result, full);
  return result;
}

static DimSharding withoutAxes(DimSharding dim, const AxisNames &axes, const Mesh &mesh) {
  for (SubDim &sub : dim)
    llvm::erase_if(sub.axes, [&](const std::string &axis) { return llvm::is_contained(axes, axis); });
  return normalize(dim, mesh);
}

/// Gives a mul smaller than the sum (of a bias) the sharding that follows from its operands.
static void setSmallType(nn::MulOp mul, RankedTensorType type, const Mesh &mesh) {
  mul.getResult().setType(type);
  SmallVector<Sharding> operands;
  for (Value operand : mul->getOperands()) {
    operands.push_back(shardingOf(operand));
    operands.back().partial.clear();
  }
  OpSharding sharding = inferFromOperands(cast<ShardingRuleOpInterface>(*mul).getShardingRule(), operands, mesh);
  mul.getResult().setType(withSharding(type, sharding.result(0, mesh)));
  setFactors(mul, sharding.factors);
}

/// `partialSums`: adds and muls above a partial term of their tree.
static void rebuild(nn::AddOp root, llvm::DenseSet<Operation *> &partialSums, const Mesh &mesh) {
  auto type = nn::tensorType(root.getResult());
  nn::SumTree tree = nn::sumTree(root, partialSums);
  const Sharding whole = shardingOf(root.getResult());
  auto groups = group(tree.terms, type.getShape(), cutAxes(whole));
  const bool isScattered = groups.size() == 1 && intersects(shardingOf(groups[0][0].value).partial, cutAxes(whole));
  if (llvm::all_of(groups, [](auto &values) { return values.size() < 2; }) || (groups.size() < 2 && !isScattered) ||
      !llvm::all_of(tree.ops, factorsOf))
    return;
  OpBuilder builder(root);
  // The partial sum of several terms is not cut over the axes over which it is partial.
  auto factorsWithout = [&](Operation *op, const AxisNames &axes) {
    FactorShardings factors = *factorsOf(op);
    for (DimSharding &factor : factors)
      factor = withoutAxes(factor, axes, mesh);
    return factors;
  };
  auto add = [&](Value lhs, Value rhs, const Sharding &sharding) -> Value {
    auto made = nn::AddOp::create(builder, root.getLoc(), withSharding(type, sharding), lhs, rhs);
    setFactors(made, factorsWithout(root, sharding.partial));
    return made;
  };
  auto scaled = [&](const nn::SumTerm &term, const Sharding &sharding) {
    Value value = term.value;
    for (auto [mul, part] : term.scales) {
      IRMapping mapping;
      mapping.map(mul->getOperand(part), value);
      auto made = cast<nn::MulOp>(builder.clone(*mul, mapping));
      setValueIds(made, {});
      value = made.getResult();
      if (RankedTensorType small = nn::broadcastType(made->getOperands()); small.getShape() != type.getShape())
        setSmallType(made, small, mesh);
      else {
        value.setType(withSharding(type, sharding));
        setFactors(made, factorsWithout(made, sharding.partial));
      }
    }
    return value;
  };
  Value sum;
  for (ArrayRef<nn::SumTerm> group : groups) {
    Sharding partial = whole; // one alone is resolved before it is scaled
    if (group.size() > 1) {
      partial.partial = shardingOf(group[0].value).partial;
      for (DimSharding &dim : partial.dims)
        dim = withoutAxes(dim, partial.partial, mesh);
    }
    Value inner = scaled(group[0], partial);
    for (const nn::SumTerm &term : group.drop_front())
      inner = add(inner, scaled(term, partial), partial);
    sum = sum ? add(sum, inner, whole) : inner;
  }
  if (isScattered)
    sum = ReshardOp::create(builder, root.getLoc(), root.getType(), sum, StringAttr(), StringAttr());
  if (std::optional<int64_t> id = valueIdsOf(root).made)
    setValueIds(sum.getDefiningOp(), isScattered ? ValueIds{{}, id} : ValueIds{id, {}});
  root.getResult().replaceAllUsesWith(sum);
  for (Operation *op : tree.ops) {
    partialSums.erase(op);
    op->erase();
  }
}

static bool isNumber(Value value) {
  return nn::tensorType(value).getNumElements() == 1 && shardingOf(value).partial.empty();
}

/// Whether every reader of a partial value needs the whole sum, not scattered over the axes.
static bool isResolvedByAll(Value value) {
  const AxisNames axes = shardingOf(value).partial;
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() || llvm::all_of(user->getResults(), [&](Value result) {
             Sharding sharding = shardingOf(result);
             return sharding.partial.empty() && !intersects(axes, cutAxes(sharding));
           });
  });
}

/// A gradient times the factor of the loss, partial over dp.
static void resolveBeforeScaling(nn::MulOp mul) {
  Sharding sharding = shardingOf(mul.getResult());
  if (sharding.partial.empty() || mul->use_empty() || !(isNumber(mul.getLhs()) || isNumber(mul.getRhs())) ||
      !isResolvedByAll(mul.getResult()))
    return;
  sharding.partial.clear();
  mul.getResult().setType(withSharding(nn::tensorType(mul.getResult()), sharding));
}

namespace {
struct CollectPartials : impl::CollectPartialsBase<CollectPartials> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!function)
      return;
    SmallVector<nn::AddOp> roots; // scaled additions that are terms of other sums, before these
    llvm::DenseSet<Operation *> partialSums;
    for (auto add : function.front().getOps<nn::AddOp>()) {
      if (llvm::any_of(add->getOperands(), [](Value term) { return !shardingOf(term).partial.empty(); }))
        for (Operation *op = add; op && partialSums.insert(op).second;)
          op = nn::aboveInSum(op);
      if (shardingOf(add.getResult()).partial.empty() && !isa_and_present<nn::AddOp>(nn::aboveInSum(add)))
        roots.push_back(add);
    }
    for (nn::AddOp root : roots)
      if (partialSums.contains(root))
        rebuild(root, partialSums, dist::meshOf(getOperation()));
    for (auto mul : function.front().getOps<nn::MulOp>())
      resolveBeforeScaling(mul);
  }
};
} // namespace
} // namespace hpc
