// Finding the root shape of a region: the operand shape of its row reductions where it has some, else its results'
// common shape.
#include "passes/Kernels/RegionShape.h"

#include "mlir/IR/OperationSupport.h"

namespace hpc::kernels {

bool RegionShape::isRowShape(ArrayRef<int64_t> shape) const {
  return !root.empty() && shape.size() == root.size() && shape.back() == 1 && shape.drop_back() == outer();
}

bool reducesLastDim(nn::ReduceOp op) {
  return op.getAxes().size() == 1 && op.getAxes()[0] == nn::tensorType(op.getOperand()).getRank() - 1;
}

static bool fits(const RegionShape &shape, ArrayRef<Value> results) {
  return llvm::all_of(results, [&](Value result) {
    return nn::shapeOf(result) == ArrayRef<int64_t>(shape.root) || shape.isRowShape(nn::shapeOf(result));
  });
}

std::optional<RegionShape> findRegionShape(ArrayRef<Value> results, ArrayRef<nn::ReduceOp> reductions) {
  RegionShape shape;
  for (nn::ReduceOp op : reductions) {
    if (!reducesLastDim(op))
      continue;
    shape.root.assign(nn::shapeOf(op.getOperand()).begin(), nn::shapeOf(op.getOperand()).end());
    if (!fits(shape, results))
      continue;
    for (nn::ReduceOp other : reductions)
      if (reducesLastDim(other) && nn::shapeOf(other.getOperand()) == ArrayRef<int64_t>(shape.root))
        shape.rowReductions.push_back(other);
    return shape;
  }
  // No row reduction: the largest result is the root, others may be its rows.
  for (Value result : results) {
    shape.root.assign(nn::shapeOf(result).begin(), nn::shapeOf(result).end());
    if (fits(shape, results))
      return shape;
  }
  return std::nullopt;
}

std::optional<RegionShape> findRegionShape(nn::FusedOp region) {
  SmallVector<nn::ReduceOp> reductions(region.getOps<nn::ReduceOp>());
  SmallVector<Value> results(region.getBody().front().getTerminator()->getOperands());
  return findRegionShape(results, reductions);
}

bool areEqual(nn::FusedOp a, nn::FusedOp b) {
  return a->getOperandTypes() == b->getOperandTypes() && a->getResultTypes() == b->getResultTypes() &&
         a.getInPlaceAttr() == b.getInPlaceAttr() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations |
                                                        OperationEquivalence::IgnoreDiscardableAttrs);
}

} // namespace hpc::kernels
