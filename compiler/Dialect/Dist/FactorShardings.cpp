// Projection between factors and tensors, and the rules of partial sums.
#include "compiler/Dialect/Dist/FactorShardings.h"

#include "compiler/Dialect/Dist/ShardingCuts.h"

#include <algorithm>

namespace hpc::dist {

FactorShardings uncutFactors(const ShardingRule &rule) {
  FactorShardings factors;
  for (const ShardingFactor &factor : rule.factors)
    factors.push_back(factor.size == 1 ? DimSharding() : DimSharding{{factor.size, {}}});
  return factors;
}

AxisNames axesOf(const DimSharding &dim) {
  AxisNames axes;
  for (const SubDim &sub : dim)
    axes.insert(axes.end(), sub.axes.begin(), sub.axes.end());
  return axes;
}

AxisNames axesOf(const FactorShardings &factors) {
  AxisNames axes;
  for (const DimSharding &factor : factors)
    llvm::append_range(axes, axesOf(factor));
  return axes;
}

bool intersects(const AxisNames &a, const AxisNames &b) {
  return llvm::any_of(a, [&](const std::string &axis) { return llvm::is_contained(b, axis); });
}

AxisNames unite(const AxisNames &a, const AxisNames &b) {
  AxisNames result = a;
  for (const std::string &axis : b)
    if (!llvm::is_contained(result, axis))
      result.push_back(axis);
  llvm::sort(result);
  return result;
}

AxisNames without(const AxisNames &a, const AxisNames &b) {
  AxisNames result;
  llvm::copy_if(a, std::back_inserter(result), [&](const std::string &axis) { return !llvm::is_contained(b, axis); });
  llvm::sort(result);
  return result;
}

bool mayCut(const ShardingFactor &factor, const DimSharding &cut) {
  return factor.canCut && factor.size > 1 && (!factor.isIndex || cut.size() == 1);
}

bool splitByFactors(const ShardingRule &rule, ArrayRef<int> dimFactors, const DimSharding &dim, const Mesh &mesh,
                    SmallVectorImpl<DimSharding> &groups) {
  groups.assign(dimFactors.size(), {});
  std::vector<int64_t> sizes;
  SmallVector<size_t> places; // of the factors with more than one element
  for (auto [place, factor] : llvm::enumerate(dimFactors))
    if (rule.factors[factor].size != 1) {
      sizes.push_back(rule.factors[factor].size);
      places.push_back(place);
    }
  if (places.empty())
    return !isCut(dim);
  if (places.size() == 1) {
    groups[places[0]] = normalize(dim, mesh);
    return true;
  }
  std::vector<DimSharding> parts;
  if (!splitAt(dim, sizes, mesh, parts))
    return false;
  for (auto [place, part] : llvm::zip(places, parts))
    groups[place] = normalize(part, mesh);
  return true;
}

Sharding project(ArrayRef<ShardingRule::DimFactors> dims, const FactorShardings &factors, const Mesh &mesh) {
  Sharding sharding;
  for (const ShardingRule::DimFactors &dim : dims) {
    DimSharding subs;
    for (int factor : dim)
      llvm::append_range(subs, factors[factor]);
    sharding.dims.push_back(normalize(subs, mesh));
  }
  return sharding;
}

AxisNames reducedAxes(const ShardingRule &rule, const FactorShardings &factors, ReduceKind kind, unsigned result) {
  AxisNames axes;
  for (int index = 0; index < int(rule.factors.size()); ++index)
    if (rule.factors[index].reduction == kind &&
        llvm::none_of(rule.results[result],
                      [&](const ShardingRule::DimFactors &dim) { return llvm::is_contained(dim, index); }))
      llvm::append_range(axes, axesOf(factors[index]));
  llvm::sort(axes);
  return axes;
}

// ---- partial sums -------------------------------------------------------------------------------

/// Product: at most one listed operand is partial; -2 when there are more, -1 when none is.
static int onlyPartial(const LinearClause &linear, ArrayRef<AxisNames> partials) {
  int found = -1;
  for (int operand : linear.operands)
    if (!partials[operand].empty())
      found = found == -1 ? operand : -2;
  return found;
}

void OpSharding::choosePassing(ArrayRef<AxisNames> partials) {
  passing.clear();
  carrier = -1;
  if (rule.linear.kind == LinearClause::None || rule.linear.operands.empty())
    return;
  if (rule.linear.kind == LinearClause::Product) {
    carrier = onlyPartial(rule.linear, partials);
    if (carrier >= 0)
      passing = partials[carrier];
  } else {
    passing = partials[rule.linear.operands[0]];
    for (int operand : rule.linear.operands)
      passing = without(passing, without(passing, partials[operand]));
  }
  passing = without(passing, axesOf(factors)); // an axis does one thing in an op
}

AxisNames OpSharding::passingTo(unsigned result) const {
  return rule.linear.reaches(int(result)) ? passing : AxisNames();
}

void OpSharding::setPassing(ArrayRef<AxisNames> resultPartials, ArrayRef<AxisNames> partials) {
  passing.clear();
  carrier = -1;
  for (auto [result, partial] : llvm::enumerate(resultPartials))
    if (rule.linear.results.empty() || rule.linear.reaches(int(result)))
      passing = unite(passing, without(partial, reducedAxes(rule, factors, ReduceKind::Sum, result)));
  if (rule.linear.kind == LinearClause::Product && !passing.empty())
    carrier = onlyPartial(rule.linear, partials);
}

void OpSharding::setPassing(Operation *op) {
  auto partials = [](ValueRange values) {
    return llvm::map_to_vector(values, [](Value value) { return shardingOf(value).partial; });
  };
  setPassing(partials(op->getResults()), partials(op->getOperands()));
}

Sharding OpSharding::operand(unsigned index, const Mesh &mesh) const {
  Sharding sharding = project(rule.operands[index], factors, mesh);
  bool takes = rule.linear.kind == LinearClause::Sum ? llvm::is_contained(rule.linear.operands, int(index))
                                                     : carrier == int(index);
  if (takes)
    sharding.partial = passing;
  return sharding;
}

Sharding OpSharding::result(unsigned index, const Mesh &mesh) const {
  Sharding sharding = project(rule.results[index], factors, mesh);
  sharding.partial = unite(passingTo(index), reducedAxes(rule, factors, ReduceKind::Sum, index));
  return sharding;
}

// ---- reading ------------------------------------------------------------------------------------

static bool isMerged(const ShardingRule &rule, ArrayRef<int> dim) {
  return llvm::count_if(dim, [&](int factor) { return rule.factors[factor].size != 1; }) > 1;
}

static DimSharding withoutAxis(DimSharding dim, const std::string &axis) {
  for (SubDim &sub : dim)
    llvm::erase(sub.axes, axis);
  return dim;
}

/// A merged dim does not tell in which of its factors an axis stands that cuts a block of one element (ShardingCuts.h):
/// it goes where the dims that were read before have it.
static void placePinned(ArrayRef<int> dim, SmallVectorImpl<DimSharding> &groups, const FactorShardings &factors,
                        const std::vector<bool> &known, const Mesh &mesh) {
  for (size_t from = 0; from < groups.size(); ++from) {
    if (globalSize(groups[from]) == 0)
      continue; // no element is anywhere
    for (const std::string &axis : readCuts(groups[from], mesh).pinned) {
      auto fits = [&](int factor) { return !known[factor] || llvm::is_contained(axesOf(factors[factor]), axis); };
      auto home = llvm::find_if(dim, [&](int factor) { return known[factor] && fits(factor); });
      if (home == dim.end() && !fits(dim[from]))
        home = llvm::find_if(dim, fits);
      if (home == dim.end())
        continue;
      DimSharding &target = groups[size_t(home - dim.begin())];
      groups[from] = normalize(withoutAxis(groups[from], axis), mesh);
      target.insert(target.begin(), SubDim{1, {axis}});
      target = normalize(target, mesh);
    }
  }
}

std::optional<OpSharding> readOpSharding(const ShardingRule &rule, ArrayRef<Sharding> operands,
                                         ArrayRef<Sharding> results, const Mesh &mesh, std::string &why) {
  OpSharding op{rule, uncutFactors(rule), {}, -1};
  std::vector<bool> known(rule.factors.size(), false);
  auto read = [&](bool merged, ArrayRef<ShardingRule::DimFactors> dims, const Sharding &sharding,
                  const std::string &what) {
    if (dims.size() != sharding.dims.size()) {
      why = what + " has another rank than the rule";
      return false;
    }
    for (auto [d, dim] : llvm::enumerate(dims)) {
      if (isMerged(rule, dim) != merged)
        continue;
      SmallVector<DimSharding> groups;
      std::string place = what + " dim " + std::to_string(d) + ", cut " + toString(sharding.dims[d]);
      if (!splitByFactors(rule, dim, sharding.dims[d], mesh, groups)) {
        why = place + ", does not nest with the op's factors";
        return false;
      }
      placePinned(dim, groups, op.factors, known, mesh);
      for (auto [factor, group] : llvm::zip(dim, groups)) {
        if (known[factor] && normalize(op.factors[factor], mesh) != group) {
          why = place + ", differs from the cut " + toString(op.factors[factor]) +
                " that another dim of the same factor has";
          return false;
        }
        if (isCut(group) && !mayCut(rule.factors[factor], group)) {
          why = place + ", is cut where the op needs it whole";
          return false;
        }
        op.factors[factor] = group;
        known[factor] = true;
      }
    }
    return true;
  };
  for (bool merged : {false, true}) {
    for (auto [index, sharding] : llvm::enumerate(operands))
      if (!read(merged, rule.operands[index], sharding, "operand " + std::to_string(index)))
        return std::nullopt;
    for (auto [index, sharding] : llvm::enumerate(results))
      if (!read(merged, rule.results[index], sharding, "result " + std::to_string(index)))
        return std::nullopt;
  }
  AxisNames axes = axesOf(op.factors);
  llvm::sort(axes);
  if (auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end()) {
    why = "axis '" + *twice + "' cuts two factors of the op";
    return std::nullopt;
  }
  return op;
}

std::optional<OpSharding> readOpSharding(ShardingRuleOpInterface op, const Mesh &mesh, std::string &why) {
  auto operands = llvm::map_to_vector(op->getOperands(), [](Value value) { return shardingOf(value); });
  auto results = llvm::map_to_vector(op->getResults(), [](Value value) { return shardingOf(value); });
  std::optional<OpSharding> sharding = readOpSharding(op.getShardingRule(), operands, results, mesh, why);
  if (sharding)
    sharding->setPassing(op);
  return sharding;
}

OpSharding inferFromOperands(const ShardingRule &rule, ArrayRef<Sharding> operands, const Mesh &mesh) {
  OpSharding op{rule, uncutFactors(rule), {}, -1};
  SmallVector<AxisNames> partials;
  for (auto [index, sharding] : llvm::enumerate(operands)) {
    partials.push_back(sharding.partial);
    for (auto [dim, cut] : llvm::zip(rule.operands[index], sharding.dims)) {
      SmallVector<DimSharding> groups;
      if (!isCut(cut) || !splitByFactors(rule, dim, cut, mesh, groups))
        continue;
      for (auto [factor, group] : llvm::zip(dim, groups))
        if (isCut(group) && !isCut(op.factors[factor]) && mayCut(rule.factors[factor], group) &&
            !intersects(axesOf(group), axesOf(op.factors)))
          op.factors[factor] = group;
    }
  }
  op.choosePassing(partials);
  return op;
}

} // namespace hpc::dist
