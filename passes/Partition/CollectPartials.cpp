// Pass hpc-collect-partials: n-ary sums add the values that are partial over the same axes first, so that they share
// one all-reduce. Only adds of one shape that nothing else reads take part; the order among equals stays. A scaled term
// (partial + bias) * scale is partial * scale + bias * scale: else every such term is summed before its bias. A partial
// times a number is summed before it is scaled, where it is summed behind it anyway: its readers can scale as they
// read.
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

/// A term of the sum, and what scales it: the muls on the way up, innermost first, each with the operand that leads down.
struct Term {
  Value value;
  SmallVector<std::pair<nn::MulOp, unsigned>> scales;
};

/// The operand of a scaled term that is a sum with partial terms and full ones, all of which the scale makes as large as
/// the result.
static std::optional<unsigned> scaledSum(Value value, RankedTensorType type) {
  auto mul = value.getDefiningOp<nn::MulOp>();
  if (!mul || !value.hasOneUse() || value.getType() != type || !shardingOf(value).partial.empty() || !factorsOf(mul))
    return std::nullopt;
  for (unsigned side : {0u, 1u}) {
    if (!isInner(mul->getOperand(side), type))
      continue;
    bool hasPartial = false, fits = true;
    SmallVector<Value> pending{mul->getOperand(side)};
    while (!pending.empty()) {
      Value term = pending.pop_back_val();
      if (isInner(term, type)) {
        llvm::append_range(pending, term.getDefiningOp()->getOperands());
        continue;
      }
      hasPartial |= !shardingOf(term).partial.empty();
      fits &= nn::broadcastType({term, mul->getOperand(1 - side)}).getShape() == type.getShape();
    }
    if (hasPartial && fits)
      return side;
  }
  return std::nullopt;
}

/// The terms of the sum, left to right, and its ops: the root first, every op before those below it. A sum may be as
/// deep as the program.
static void collectTerms(nn::AddOp root, RankedTensorType type, SmallVectorImpl<Term> &terms,
                         SmallVectorImpl<Operation *> &ops) {
  SmallVector<Term> pending{{root.getResult(), {}}};
  while (!pending.empty()) {
    Term term = pending.pop_back_val();
    if (std::optional<unsigned> side = scaledSum(term.value, type)) {
      auto mul = term.value.getDefiningOp<nn::MulOp>();
      ops.push_back(mul);
      term.scales.insert(term.scales.begin(), {mul, *side});
      pending.push_back({mul->getOperand(*side), term.scales});
      continue;
    }
    if (term.value != root.getResult() && !isInner(term.value, type)) {
      terms.push_back(term);
      continue;
    }
    auto add = term.value.getDefiningOp<nn::AddOp>();
    ops.push_back(add);
    pending.push_back({add.getRhs(), term.scales});
    pending.push_back({add.getLhs(), term.scales});
  }
}

/// Whether somebody else needs the whole of a term, as the norm does that reads a residual: then it is there for the sum.
static bool isResolvedAnyway(Value term) {
  return llvm::any_of(term.getUsers(), [](Operation *user) { return !isa<nn::AddOp>(user); });
}

/// Terms by the axes over which they are partial, in order of appearance; full terms last and alone. A term that is
/// partial over an axis which cuts the sum is scattered before it, and counts as full; so does one that is resolved anyway.
static SmallVector<SmallVector<Term>> group(ArrayRef<Term> terms, ArrayRef<int64_t> shape, const AxisNames &cut) {
  SmallVector<std::pair<AxisNames, SmallVector<Term>>> groups;
  SmallVector<SmallVector<Term>> result, full;
  for (const Term &term : terms) {
    AxisNames partial = shardingOf(term.value).partial;
    if (partial.empty() || intersects(partial, cut) || nn::shapeOf(term.value) != shape ||
        isResolvedAnyway(term.value)) {
      full.push_back({term});
      continue;
    }
    auto same = llvm::find_if(groups, [&](auto &entry) { return entry.first == partial; });
    if (same == groups.end())
      groups.push_back({partial, {term}});
    else
      same->second.push_back(term);
  }
  for (auto &entry : groups)
    result.push_back(entry.second);
  llvm::append_range(result, full);
  return result;
}

static void rebuild(nn::AddOp root) {
  auto type = nn::tensorType(root.getResult());
  SmallVector<Term> terms;
  SmallVector<Operation *> ops;
  collectTerms(root, type, terms, ops);
  SmallVector<SmallVector<Term>> groups = group(terms, type.getShape(), cutAxes(shardingOf(root.getResult())));
  if (llvm::all_of(groups, [](auto &values) { return values.size() < 2; }) || groups.size() < 2)
    return;
  OpBuilder builder(root);
  auto add = [&](Value lhs, Value rhs, const Sharding &sharding) -> Value {
    auto made = nn::AddOp::create(builder, root.getLoc(), withSharding(type, sharding), lhs, rhs);
    setFactors(made, *factorsOf(root));
    return made;
  };
  auto scaled = [&](const Term &term, const Sharding &sharding) {
    Value value = term.value;
    for (auto [mul, side] : term.scales) {
      Value lhs = side == 0 ? value : mul.getLhs(), rhs = side == 0 ? mul.getRhs() : value;
      auto made = nn::MulOp::create(builder, mul.getLoc(), withSharding(type, sharding), lhs, rhs);
      setFactors(made, *factorsOf(mul));
      value = made;
    }
    return value;
  };
  Value sum;
  for (ArrayRef<Term> group : groups) {
    Sharding partial = shardingOf(root.getResult()); // one alone is resolved before it is scaled
    if (group.size() > 1)
      partial.partial = shardingOf(group[0].value).partial;
    Value inner = scaled(group[0], partial);
    for (const Term &term : group.drop_front())
      inner = add(inner, scaled(term, partial), partial);
    sum = sum ? add(sum, inner, shardingOf(root.getResult())) : inner;
  }
  setValueIds(sum.getDefiningOp(), {valueIdsOf(root).made, {}});
  root.getResult().replaceAllUsesWith(sum);
  for (Operation *op : ops)
    op->erase();
}

static bool isNumber(Value value) {
  return nn::tensorType(value).getNumElements() == 1 && shardingOf(value).partial.empty();
}

/// Whether every reader of a partial value needs the whole sum of what it reads, not scattered over the axes.
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
    for (auto mul : function.front().getOps<nn::MulOp>())
      resolveBeforeScaling(mul);
  }
};
} // namespace
} // namespace hpc
