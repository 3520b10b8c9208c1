// Views as index maps: from an element of a view to the element of its operand.
// An index has one expression per dim, in range (>= 0); a dim of size 1 always has the constant 0.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "passes/Kernels/Regions/IndexExpr.h"

namespace hpc::kernels {

using Index = SmallVector<IndexExpr>;

/// The position in row-major order, and back.
IndexExpr linearize(IndexBuilder &indices, ArrayRef<IndexExpr> index, ArrayRef<int64_t> shape);
Index delinearize(IndexBuilder &indices, IndexExpr linear, ArrayRef<int64_t> shape);
/// NumPy: dims align from the right, a dim of size 1 is always read at 0.
Index broadcastIndex(ArrayRef<IndexExpr> index, ArrayRef<int64_t> from);

/// Reads through reshape, transpose, broadcast, slice and window: the operand's index for a result's. False for any other op.
bool mapThroughView(IndexBuilder &indices, Operation *op, ArrayRef<IndexExpr> index, Index &source);

} // namespace hpc::kernels
