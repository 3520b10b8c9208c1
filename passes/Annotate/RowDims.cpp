// A model without positions has its batch cut over all axes: ranks beyond the batch have no rows.
#include "passes/Annotate/RowDims.h"

namespace hpc {

size_t axesThatFit(int64_t elements, ArrayRef<std::string> axes, const dist::Mesh &mesh) {
  int64_t width = elements, last = elements; // of a rank's part; of the last rank's, the smallest
  for (auto [number, axis] : llvm::enumerate(axes)) {
    width = llvm::divideCeil(width, mesh.size(axis));
    last -= (mesh.size(axis) - 1) * width;
    if (last <= 0)
      return number;
  }
  return axes.size();
}

RowDims::RowDims(func::FuncOp function, ArrayRef<std::optional<int64_t>> batchDims, const dist::Mesh &mesh)
    : mesh(mesh), positions(function), flow(function, batchDims) {
  for (Operation &op : function.front())
    flow.visit(&op);
  for (auto [argument, dim] : llvm::enumerate(batchDims))
    if (dim && batch == 1)
      batch = nn::shapeOf(function.getArgument(argument))[size_t(*dim)];
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
  std::vector<std::string> ofBatch, ofSequence;
  for (const std::string &axis : axes)
    if (mesh.size(axis) > 1)
      (mesh.hasRole(axis, dist::AxisRole::Sequence) ? ofSequence : ofBatch).push_back(axis);
  if (!positions.all().empty()) {
    size_t fit = axesThatFit(batch, ofBatch, mesh);
    ofSequence.insert(ofSequence.end(), ofBatch.begin() + ptrdiff_t(fit), ofBatch.end());
    ofBatch.resize(fit);
  }
  ShardingRule rule = cast<ShardingRuleOpInterface>(value.getOwner()).getShardingRule();
  SmallVector<DimCut, 2> cuts;
  auto add = [&](unsigned dim, Piece piece, const std::vector<std::string> &over) {
    if (piece.size > 1 && mayCutPiece(rule, value.getResultNumber(), dim, piece))
      cuts.push_back({dim, piece, over});
  };
  ArrayRef<int64_t> shape = nn::shapeOf(value);
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (flow.carries(value, dim) && flow.size(value, dim) == batch)
      add(dim, {shape[dim] / batch, batch}, ofBatch);
  if (std::optional<SequenceDims::Place> place = positions.of(value))
    add(place->dim, place->piece, ofSequence);
  return cuts;
}

} // namespace hpc
