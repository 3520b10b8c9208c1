// Views as index maps: which element of its operand an element of a view is.
// Indices are i64 values in range (>= 0), one per dim; a dim of size 1 always has the index constant 0, so that equal
// positions are equal values.
#pragma once

#include "compiler/Dialect/NN/NN.h"

namespace hpc::kernels {

using Index = SmallVector<Value>;

/// Index arithmetic that folds constants; all constants stand at the head of the function, one op each.
class IndexBuilder {
public:
  /// `entry`: the function's first block, where constants go.
  IndexBuilder(OpBuilder &builder, Location loc, Block *entry) : builder(builder), loc(loc), entry(entry) {}

  Value constant(int64_t value);
  Value add(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value div(Value a, int64_t b); ///< a >= 0
  Value rem(Value a, int64_t b); ///< a >= 0
  /// min(max(a, 0), size - 1), for indices that data or a neighbour's part decide.
  Value clamp(Value a, int64_t size);
  /// low <= a < high.
  Value isWithin(Value a, Value low, Value high);

  Value linearize(ArrayRef<Value> index, ArrayRef<int64_t> shape);
  Index delinearize(Value linear, ArrayRef<int64_t> shape);
  /// The index into `from` of element `index` of `to`, the same elements in row-major order. Dims that both shapes
  /// share pass unchanged.
  Index reshape(ArrayRef<Value> index, ArrayRef<int64_t> to, ArrayRef<int64_t> from);
  /// NumPy: dims align from the right, a dim of size 1 is always read at 0.
  Index broadcast(ArrayRef<Value> index, ArrayRef<int64_t> from);

private:
  OpBuilder &builder;
  Location loc;
  Block *entry;
  std::map<int64_t, Value> constants;
};

/// Reads through reshape, transpose, broadcast and slice: the operand's index for a result's. False for any other op.
bool mapThroughView(IndexBuilder &indices, Operation *op, ArrayRef<Value> index, Index &source);

} // namespace hpc::kernels
