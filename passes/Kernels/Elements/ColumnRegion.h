// Regions that reduce over leading dims, as the gradients of biases and norms do: [B, S, C] -> [1, 1, C].
// A column is never reduced alone, which would read one element of each row: an item takes a block of neighbouring
// columns and runs down the rows, its sums beside each other in scratch memory.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

struct ColumnRegion {
  SmallVector<int64_t> operand;          ///< the shape that is reduced
  SmallVector<int64_t> axes;             ///< along which; not the last dim
  SmallVector<nn::ReduceOp> reductions;  ///< all over `operand` and `axes`, none of another's result
  static constexpr int64_t width = 64;   ///< columns of an item: some vectors, and whole cache lines of a row

  int64_t columns() const { return operand.back(); }
  int64_t blocks() const { return (columns() + width - 1) / width; }
  /// The dims that are neither reduced nor columns.
  SmallVector<int64_t> kept() const;
  int64_t items() const;
};

/// nullopt if the region is of another kind.
std::optional<ColumnRegion> findColumnRegion(nn::FusedOp region);

} // namespace hpc::kernels
