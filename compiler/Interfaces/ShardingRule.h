// How an op's dims relate: one struct per op, read by propagation, partition, cost and layouts, which know factors and
// never ops. A factor is a loop of the op; a dim is a list of factors, major to minor; a dim of size 1 has none.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"
#include "compiler/MLIR.h"
#include "runtime/base/ReduceKind.h"

namespace hpc {

struct ShardingFactor {
  int64_t size = 1;
  bool canCut = true;                  ///< false: UPPER CASE letters, sequence order, view remainders
  std::optional<ReduceKind> reduction; ///< combined so in every result that lacks it
  bool isIndex = false;                ///< the op reads global coordinates of it (needs its offset when cut)
  bool isInternal = false; ///< a composite reduces over it though results have it: when cut, partition decomposes
  bool isLookup = false;   ///< an index that is looked up, not walked: nothing reads its padding, whatever is reduced
  bool isSequence = false; ///< positions of a sequence, which the op mixes: attention's queries and keys
  /// Only sums stay partial: what else is reduced over a cut factor is combined by the op itself.
  bool combinesAtOnce() const { return reduction && reduction != ReduceKind::Sum; }
};

/// Which operands a partial sum may pass through.
struct LinearClause {
  enum Kind {
    None,    ///< no operand may be partial
    Sum,     ///< all of `operands` are partial over the same axes, or none is (add, sub, select branches, views)
    Product, ///< at most one of `operands` is partial, all others full (mul, matmul; div lists operand 0 only)
  } kind = None;
  SmallVector<int> operands;
  /// Those that the sum passes on to, empty: all. Other results must not depend on `operands`.
  SmallVector<int> results = {};
  bool reaches(int result) const { return kind != None && (results.empty() || llvm::is_contained(results, result)); }
};

struct ShardingRule {
  using DimFactors = SmallVector<int>; ///< indices into `factors`, major to minor
  SmallVector<ShardingFactor> factors;
  SmallVector<SmallVector<DimFactors>> operands, results; ///< [value][dim]
  LinearClause linear;
  /// The text form, for --explain and tests: "...mk,kn->...mn".
  std::string text;
};

/// Builds a rule from its text. `...` = leading dims, NumPy-aligned; a letter is a factor; a dim of size 1 has no
/// factor; `(hd)` groups factors into one dim (their sizes come from elsewhere in the rule: one of them may be
/// inferred); UPPER CASE is never cut. Clauses after `;`: `sum|max|min|prod k` (default sum for a letter that no result
/// has), `linear 0,2` (Product), `linear all 0,1` (Sum), `linear 2 -> 0` (to result 0
/// alone), `index v`, `lookup v` (an index, too), `internal e`, `sequence q`. Asserts on a rule that does not fit the shapes: rules are ours, verifiers run first.
ShardingRule buildRule(StringRef text, ArrayRef<ArrayRef<int64_t>> operands, ArrayRef<ArrayRef<int64_t>> results);
/// The same, shapes from the op's ranked operand and result types.
ShardingRule buildRule(StringRef text, Operation *op);

/// NumPy-broadcasting elementwise op: result dims are factors, aligned from the right.
ShardingRule elementwiseRule(Operation *op, LinearClause linear = {});
/// Reshape: factors are the common refinement of the two shapes; runs of dims whose factors do not nest ([6,4] ->
/// [8,3]) become one factor per dim that cannot be cut. `linear all 0`.
ShardingRule viewRule(ArrayRef<int64_t> from, ArrayRef<int64_t> to);
/// Result dim i has operand dim `permutation[i]`.
ShardingRule transposeRule(ArrayRef<int64_t> from, ArrayRef<int64_t> permutation);
/// Slice of operand [start, start+size) per dim (step 1). A dim taken whole is one factor; an equal part (size divides
/// both start and the dim) is a view on (n, rest) with n uncut and rest shared with the result; else uncut factors.
ShardingRule sliceRule(ArrayRef<int64_t> from, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes);
/// Concat along `axis`; when all parts are equal a view on (n, rest), else the axis is uncut.
ShardingRule concatRule(Operation *op, int64_t axis);
/// All dims are factors except `axes`, which are present in operand and result but never cut.
ShardingRule axisLocalRule(Operation *op, ArrayRef<int64_t> axes);
/// Reduction over `axes` with result dims of size 1 there.
ShardingRule reduceRule(ArrayRef<int64_t> from, ArrayRef<int64_t> axes, ReduceKind kind);

} // namespace hpc

#include "compiler/Interfaces/ShardingRule.h.inc"
