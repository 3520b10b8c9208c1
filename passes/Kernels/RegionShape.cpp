// Finding the root shape of a region: the operand shape of what is done once per row where there is some, else its
// results' common shape.
#include "passes/Kernels/RegionShape.h"

#include "passes/Kernels/RowComposites.h"

#include "compiler/Accumulations.h"

#include "mlir/IR/OperationSupport.h"

namespace hpc::kernels {

bool RegionShape::isRowShape(ArrayRef<int64_t> shape) const {
  return !root.empty() && shape.size() == root.size() && shape.back() == 1 && shape.drop_back() == outer();
}

bool combinesElements(Operation *op) { return isa<nn::ReduceOp>(op) || isRowComposite(op->getName()); }

/// Once per row of what it reduces or makes: a reduction over the last dim alone, or a composite.
static bool runsAlongRows(Operation *op) {
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  return !reduce || (reduce.getAxes().size() == 1 &&
                     reduce.getAxes()[0] == nn::tensorType(reduce.getOperand()).getRank() - 1);
}

/// The shape whose rows it runs along.
static ArrayRef<int64_t> rowsOf(Operation *op) {
  return nn::shapeOf(isa<nn::ReduceOp>(op) ? op->getOperand(0) : op->getResult(0));
}

static bool fits(const RegionShape &shape, ArrayRef<Value> results) {
  return llvm::all_of(results, [&](Value result) {
    return nn::shapeOf(result) == ArrayRef<int64_t>(shape.root) || shape.isRowShape(nn::shapeOf(result));
  });
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
    shape.root.assign(nn::shapeOf(result).begin(), nn::shapeOf(result).end());
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
         a.getInPlaceAttr() == b.getInPlaceAttr() && addsOver(a) == addsOver(b) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations |
                                                        OperationEquivalence::IgnoreDiscardableAttrs);
}

} // namespace hpc::kernels
