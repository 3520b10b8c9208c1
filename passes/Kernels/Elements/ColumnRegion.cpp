// Finding regions whose results are all computed from reductions over one set of leading dims.
#include "passes/Kernels/Elements/ColumnRegion.h"

#include "passes/Kernels/Elements/RegionShape.h"

namespace hpc::kernels {

SmallVector<int64_t> ColumnRegion::kept() const {
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim + 1 < int64_t(operand.size()); ++dim)
    if (!llvm::is_contained(axes, dim))
      kept.push_back(operand[size_t(dim)]);
  return kept;
}

int64_t ColumnRegion::items() const {
  int64_t items = blocks();
  for (int64_t size : kept())
    items *= size;
  return items;
}

/// Whether a value is computed from a reduction of the region.
static bool readsReduction(Value value, DenseMap<Value, bool> &known) {
  auto [found, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return found->second;
  Operation *op = value.getDefiningOp();
  bool reads = op && (isa<nn::ReduceOp>(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
                        return readsReduction(operand, known);
                      }));
  return known[value] = reads;
}

std::optional<ColumnRegion> findColumnRegion(nn::FusedOp region) {
  ColumnRegion columns;
  DenseMap<Value, bool> known;
  for (Operation &each : region.getBody().front()) {
    if (!combinesElements(&each))
      continue;
    auto op = dyn_cast<nn::ReduceOp>(each);
    if (!op)
      return std::nullopt; // a composite runs along rows
    ArrayRef<int64_t> shape = nn::shapeOf(op.getOperand());
    if (columns.reductions.empty()) {
      columns.operand.assign(shape.begin(), shape.end());
      columns.axes.assign(op.getAxes().begin(), op.getAxes().end());
    }
    if (shape != ArrayRef<int64_t>(columns.operand) || op.getAxes() != ArrayRef<int64_t>(columns.axes) ||
        readsReduction(op.getOperand(), known))
      return std::nullopt;
    columns.reductions.push_back(op);
  }
  if (columns.reductions.empty() || columns.axes.empty() || llvm::is_contained(columns.operand, 0) ||
      columns.axes.back() == int64_t(columns.operand.size()) - 1 || columns.columns() == 1)
    return std::nullopt;
  ArrayRef<int64_t> result = nn::shapeOf(columns.reductions.front().getResult());
  for (Value yielded : region.getBody().front().getTerminator()->getOperands())
    if (nn::shapeOf(yielded) != result)
      return std::nullopt;
  return columns;
}

} // namespace hpc::kernels
