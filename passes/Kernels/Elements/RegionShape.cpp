// Finds the root shape of a region: the operand shape of its once-per-row ops if there are any, else its results'
// common shape.
#include "passes/Kernels/Elements/RegionShape.h"

#include "passes/Kernels/Elements/RowComposites.h"

#include "compiler/Accumulations.h"

#include "mlir/IR/OperationSupport.h"

namespace hpc::kernels {

ArrayRef<int64_t> computedShape(Value result) {
  auto update = result.getDefiningOp<nn::UpdateSliceOp>();
  return nn::shapeOf(update ? update.getRows() : result);
}

bool RegionShape::isRowShape(ArrayRef<int64_t> shape) const {
  return !root.empty() && shape.size() == root.size() && shape.back() == 1 && shape.drop_back() == outer();
}

bool combinesElements(Operation *op) { return isa<nn::ReduceOp>(op) || isRowComposite(op->getName()); }

/// Runs once per row of its operand or result: a reduction over the last dim alone, or a composite.
static bool runsAlongRows(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  return !reduce || reduce.getAxes() == ArrayRef<int64_t>(nn::tensorType(reduce.getOperand()).getRank() - 1);
}

/// The shape whose rows it runs along.
static ArrayRef<int64_t> rowsOf(Operation *op) {
  return nn::shapeOf(isa<nn::ReduceOp>(op) ? op->getOperand(0) : op->getResult(0));
}

std::optional<ColumnSum> findColumnSum(Operation *op, ArrayRef<int64_t> root) {
  auto reduce = dyn_cast_or_null<nn::ReduceOp>(op);
  if (!reduce || reduce.getKind() != ReduceKind::Sum || reduce.getAxes().empty() || root.empty())
    return std::nullopt;
  RankedTensorType type = nn::tensorType(reduce.getOperand());
  Type element = type.getElementType();
  ArrayRef<int64_t> axes = reduce.getAxes();
  const int64_t columns = type.getShape().back();
  // Side by side, up to the last dim: so rows of a block follow each other.
  if (axes.back() != type.getRank() - 2 || axes.back() - axes.front() + 1 != int64_t(axes.size()) ||
      type.getNumElements() == 0 || columns == 1 || columns != root.back() ||
      type.getNumElements() != ShapedType::getNumElements(root) ||
      !(element.isF32() || element.isF64() || element.isInteger(32) || element.isInteger(64)))
    return std::nullopt;
  ColumnSum sum{reduce, reduce.getOperand(), 1};
  for (int64_t axis : axes)
    sum.rows *= type.getDimSize(axis);
  Value shown = sum.term;
  while (nn::shapeOf(shown) != root) {
    auto reshape = shown.getDefiningOp<nn::ReshapeOp>();
    if (!reshape)
      return sum;
    shown = reshape.getOperand();
  }
  sum.term = shown;
  return sum;
}

/// Whether the root's loop nest computes the results; notes those that are sums of its rows.
static bool fits(RegionShape &shape, ArrayRef<Value> results) {
  shape.columnSums.clear();
  shape.rowsOfItem = 1;
  for (Value result : results) {
    if (computedShape(result) == ArrayRef<int64_t>(shape.root) || shape.isRowShape(computedShape(result)))
      continue;
    std::optional<ColumnSum> sum = findColumnSum(result.getDefiningOp(), shape.root);
    if (!sum || (!shape.columnSums.empty() && sum->rows != shape.rowsOfItem))
      return false;
    shape.columnSums.push_back(*sum);
    shape.rowsOfItem = sum->rows;
  }
  return true;
}

std::optional<RegionShape> findRegionShape(ArrayRef<Value> results, ArrayRef<Operation *> combining) {
  RegionShape shape;
  for (Operation *op : combining) {
    if (!runsAlongRows(op))
      continue;
    shape.root.assign(rowsOf(op).begin(), rowsOf(op).end());
    if (!fits(shape, results))
      continue;
    for (Operation *other : combining)
      if (runsAlongRows(other) && rowsOf(other) == ArrayRef<int64_t>(shape.root))
        shape.rowOps.push_back(other);
    return shape;
  }
  // Nothing runs along rows: the largest result is the root, others may be its rows.
  for (Value result : results) {
    shape.root.assign(computedShape(result).begin(), computedShape(result).end());
    if (fits(shape, results))
      return shape;
  }
  return std::nullopt;
}

std::optional<RegionShape> findRegionShape(nn::FusedOp region) {
  SmallVector<Operation *> combining;
  for (Operation &op : region.getBody().front())
    if (combinesElements(&op))
      combining.push_back(&op);
  SmallVector<Value> results(region.getBody().front().getTerminator()->getOperands());
  return findRegionShape(results, combining);
}

bool areEqual(nn::FusedOp a, nn::FusedOp b) {
  return a->getOperandTypes() == b->getOperandTypes() && a->getResultTypes() == b->getResultTypes() &&
         a.getInPlaceAttr() == b.getInPlaceAttr() && a.getAddsOverAttr() == b.getAddsOverAttr() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations |
                                                        OperationEquivalence::IgnoreDiscardableAttrs);
}

} // namespace hpc::kernels
