// The cuts of an op's factors, and their way to and from the shardings of its operands and results.
// Propagation decides the factors; everything after it only projects them. Nothing here knows an op, only its rule.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"

namespace hpc::dist {

/// One list of sub-dims (normal form) per factor of a rule, in the rule's order. As an attribute: a sharding whose dims
/// are the factors.
using FactorShardings = std::vector<DimSharding>;

FactorShardings uncutFactors(const ShardingRule &rule);
AxisNames axesOf(const DimSharding &dim);
AxisNames axesOf(const FactorShardings &factors);
bool intersects(const AxisNames &a, const AxisNames &b);
/// Sorted union and difference, for partial axes.
AxisNames unite(const AxisNames &a, const AxisNames &b);
AxisNames without(const AxisNames &a, const AxisNames &b);

/// Whether the op can run with a factor cut so: it may be cut, has more than one element, and an index factor is one
/// sub-dim (so that an offset says which indices a rank holds).
bool mayCut(const ShardingFactor &factor, const DimSharding &cut);

/// The part of a dim's sharding that belongs to each of its factors; false when its cuts do not nest with them (120@tp
/// and (3, 40)).
bool splitByFactors(const ShardingRule &rule, ArrayRef<int> dimFactors, const DimSharding &dim, const Mesh &mesh,
                    SmallVectorImpl<DimSharding> &groups);

/// The sharding, in normal form and nowhere partial, of a tensor whose dims are lists of factors.
Sharding project(ArrayRef<ShardingRule::DimFactors> dims, const FactorShardings &factors, const Mesh &mesh);

/// Axes that cut a factor which result `result` lacks and the op reduces so.
AxisNames reducedAxes(const ShardingRule &rule, const FactorShardings &factors, ReduceKind kind, unsigned result);

/// A rule with its factors cut, and the partial sums that pass through: what an op needs of its operands and gives as
/// results.
struct OpSharding {
  ShardingRule rule;
  FactorShardings factors;
  AxisNames passing; ///< partial axes of operands that the results have as well which the linear clause reaches
  int carrier = -1;  ///< Product: the operand that is partial over `passing`
  Sharding operand(unsigned index, const Mesh &mesh) const;
  Sharding result(unsigned index, const Mesh &mesh) const;
  /// The partial axes of operands that a result has as well.
  AxisNames passingTo(unsigned result) const;
  /// Chooses `passing` as large as the rule allows, given over which axes each operand is partial.
  void choosePassing(ArrayRef<AxisNames> operandPartials);
  /// The same when the results' partial axes are already decided.
  void setPassing(ArrayRef<AxisNames> resultPartials, ArrayRef<AxisNames> operandPartials);
  /// The same from the types of an op's operands and results.
  void setPassing(Operation *op);
};

/// The factors of an op from the shardings of all operands and results, which must agree exactly. On failure `why` says
/// what differs.
std::optional<OpSharding> readOpSharding(const ShardingRule &rule, ArrayRef<Sharding> operands,
                                         ArrayRef<Sharding> results, const Mesh &mesh, std::string &why);

/// The same from the types of an op, with the partial sums that pass through it.
std::optional<OpSharding> readOpSharding(ShardingRuleOpInterface op, const Mesh &mesh, std::string &why);

/// The factors that follow from the operands alone: every cut that they bring, the first operand first.
OpSharding inferFromOperands(const ShardingRule &rule, ArrayRef<Sharding> operands, const Mesh &mesh);

} // namespace hpc::dist
