// The rows of values on ranks: dims of the batch and of positions, and which of them an axis cuts. Axes cut the batch while
// every rank gets a part of it, and the positions from then on (layouts.md, section 1).
#pragma once

#include "compiler/Dialect/NN/BatchFlow.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/SequenceDims.h"

namespace hpc {

/// How many of `axes`, outermost first, cut `elements` so that every rank gets some.
size_t axesThatFit(int64_t elements, ArrayRef<std::string> axes, const dist::Mesh &mesh);

class RowDims {
public:
  /// `batchDims`: as findBatchDims gives them.
  RowDims(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims, const dist::Mesh &mesh);

  /// The cuts of an op's result over `axes` of the mesh, outermost first: one for each dim of rows, also where it is closed to all axes, and none for
  /// what the op needs whole. A value without positions is cut over those axes alone that cut the batch.
  SmallVector<DimCut, 2> cuts(OpResult value, ArrayRef<std::string> axes) const;

private:
  dist::Mesh mesh;
  SequenceDims positions;
  nn::BatchFlow flow;
  int64_t batch = 1; ///< of the inputs
};

} // namespace hpc
