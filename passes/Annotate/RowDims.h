// The rows of values on ranks: dims of the batch and of positions, and which of them an axis cuts.
#pragma once

#include "compiler/Dialect/NN/BatchFlow.h"
#include "passes/Annotate/LayoutStrategy.h"
#include "passes/Annotate/SequenceDims.h"

namespace hpc {

/// The smallest batch of any input; 1 where none has one.
int64_t batchSize(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims);

/// Axes that cut rows, outermost first, those of size 1 left out: of the batch, and those for which it has too few sequences.
struct RowAxes {
  std::vector<std::string> batch, positions;
};
/// Axes of the role sequence cut positions; those of time and data that have a flag cut the batch; a layout's own cut the batch while every rank gets a
/// part of it, and positions from then on, where there are any.
RowAxes rowAxesFor(int64_t batch, bool hasPositions, ArrayRef<std::string> axes, const dist::Mesh &mesh);

class RowDims {
public:
  /// `batchDims`: as findBatchDims gives them.
  RowDims(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims, const dist::Mesh &mesh);

  /// The cuts of an op's result over `axes` of the mesh, outermost first: one for each dim of rows, also where it is closed to all axes, and none for
  /// what the op needs whole.
  SmallVector<DimCut, 2> cuts(OpResult value, ArrayRef<std::string> axes) const;
  RowAxes axesFor(ArrayRef<std::string> axes) const { return rowAxesFor(batch, !positions.all().empty(), axes, mesh); }

private:
  dist::Mesh mesh;
  SequenceDims positions;
  nn::BatchFlow flow;
  int64_t batch;
};

} // namespace hpc
