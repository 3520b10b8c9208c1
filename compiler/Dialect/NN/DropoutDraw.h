// What decides which elements are dropped, whichever op draws: nn.dropout itself, or an attention that drops weights which
// nobody ever sees. The same draw at the same global position is the same number everywhere.
#pragma once

#include "compiler/Dialect/NN/NN.h"

#include <array>

namespace hpc::nn {

struct DropoutDraw {
  Value step, seed;                ///< step scalars
  /// For each of offsetDims: where this rank's part begins, a number, or the position of each index, a vector.
  SmallVector<Value> offsets;
  int64_t site;
  double rate;
  SmallVector<int64_t> wholeShape; ///< of the tensor that positions are counted in, row-major
  SmallVector<int64_t> offsetDims; ///< dims of wholeShape that are cut, or whose order is another

  /// The positions along a dim; null where they are consecutive.
  Value positionsOf(int64_t dim) const;
};

/// The op's draw; nothing where it drops nothing. Of an attention wholeShape is [batch, groups, repeat, queries, keys].
std::optional<DropoutDraw> dropoutOf(Operation *op);
/// Lets an attention or its gradient, which so far drops nothing, drop weights.
void addDropout(Operation *attention, const DropoutDraw &draw);
/// As nn.dropout has it, of any value whose elements are those of wholeShape in their order.
Value applyDropout(OpBuilder &builder, Location loc, Value value, const DropoutDraw &draw);

/// Checks the ranges of rate and site, the rank of step and seed, and the offsets, in dims of a tensor of shape `part`. Labels
/// are those of the op's constraints, in that order.
LogicalResult verifyDropout(Operation *op, const DropoutDraw &draw, ArrayRef<int64_t> part, std::array<const char *, 3> labels);
/// (C5) of an attention and of its gradient.
LogicalResult verifyAttentionDropout(Operation *attention);
/// ShardingRuleOpInterface::localize of both: offsets become where queries start, and where the draw does.
Operation *localizeAttention(Operation *attention, OpBuilder &builder, ValueRange operands, TypeRange resultTypes,
                             ValueRange offsets);

} // namespace hpc::nn
