// The last rank has the smallest of uneven parts: an axis fits if that part is not empty.
#include "passes/Annotate/RowDims.h"

#include "compiler/Dialect/Dist/MeshDegrees.h"

namespace hpc {

int64_t batchSize(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims) {
  std::optional<int64_t> least;
  for (auto [argument, dim] : llvm::enumerate(batchDims))
    if (dim)
      least = std::min(least.value_or(std::numeric_limits<int64_t>::max()), nn::shapeOf(function.getArgument(argument))[size_t(*dim)]);
  return least.value_or(1);
}

RowAxes rowAxesFor(int64_t batch, bool hasPositions, ArrayRef<std::string> axes, const dist::Mesh &mesh) {
  RowAxes found;
  const dist::Mesh flags = dist::degreesOf();
  int64_t width = batch, last = batch; // of a rank's part, and of the last rank's
  for (const std::string &axis : axes) {
    const int64_t size = mesh.size(axis), part = llvm::divideCeil(width, size), rest = last - (size - 1) * part;
    if (size == 1)
      continue;
    bool isOfPositions = mesh.hasRole(axis, dist::AxisRole::Sequence) || (flags.index(axis) < 0 && hasPositions && rest <= 0);
    if (isOfPositions) {
      found.positions.push_back(axis);
      continue;
    }
    found.batch.push_back(axis);
    width = part;
    last = rest;
  }
  return found;
}

RowDims::RowDims(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims, const dist::Mesh &mesh)
    : mesh(mesh), positions(function), flow(function, batchDims), batch(batchSize(function, batchDims)) {
  for (Operation &op : function.front())
    flow.visit(&op);
}

/// Whether the op computes a part of the factor that is such a piece of a result's dim.
static bool mayCutPiece(const ShardingRule &rule, unsigned result, unsigned dim, Piece piece) {
  int64_t inner = 1;
  for (int factor : llvm::reverse(rule.results[result][dim])) {
    const ShardingFactor &found = rule.factors[factor];
    if (inner == piece.inner && found.size == piece.size)
      return found.canCut && !found.isInternal;
    // Several dims in one: the rest of the piece may lie in the next factors.
    if (inner <= piece.inner && piece.inner * piece.size <= inner * found.size)
      return found.canCut && !found.isInternal && !found.isIndex;
    inner *= found.size;
  }
  return false;
}

SmallVector<DimCut, 2> RowDims::cuts(OpResult value, ArrayRef<std::string> axes) const {
  const RowAxes over = axesFor(axes);
  ShardingRule rule = cast<ShardingRuleOpInterface>(value.getOwner()).getShardingRule();
  SmallVector<DimCut, 2> cuts;
  auto add = [&](unsigned dim, Piece piece, const std::vector<std::string> &names) {
    if (piece.size > 1 && mayCutPiece(rule, value.getResultNumber(), dim, piece))
      cuts.push_back({dim, piece, names});
  };
  ArrayRef<int64_t> shape = nn::shapeOf(value);
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (flow.carries(value, dim) && flow.size(value, dim) == batch)
      add(dim, {shape[dim] / batch, batch}, cuts.empty() ? over.batch : std::vector<std::string>()); // pairs of sequences have two such dims
  if (std::optional<SequenceDims::Place> place = positions.of(value))
    add(place->dim, place->piece, over.positions);
  return cuts;
}

} // namespace hpc
