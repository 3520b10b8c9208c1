// Reading at the same element means: through elementwise ops that broadcast nothing, all the way to the results; sums
// of rows are added to before the element is written.
#include "passes/Kernels/Fusion/InPlace.h"

#include "compiler/Interfaces/Structure.h"
#include "passes/Kernels/Elements/RegionShape.h"

namespace hpc::kernels {

bool canWriteOver(nn::FusedOp region, unsigned result, unsigned operand) {
  Value source = region.getBody().getArgument(operand);
  ArrayRef<int64_t> shape = nn::shapeOf(source);
  if (source.getType() != region.getResult(result).getType())
    return false;
  const std::optional<RegionShape> rows = findRegionShape(region);
  auto isAddedUp = [&](Operation *user) {
    return rows && llvm::any_of(rows->columnSums, [&](ColumnSum sum) {
             return sum.op == user ||
                    (isa<nn::ReshapeOp>(user) && user->hasOneUse() && sum.op.getOperand() == user->getResult(0));
           });
  };
  SmallVector<Value> open = {source};
  DenseSet<Value> seen = {source};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isa<nn::YieldOp>(user) || isAddedUp(user))
        continue;
      if (auto update = dyn_cast<nn::UpdateSliceOp>(user)) { // reads nothing of its state
        if (update.getState() == source && update.getRows() != source && update->hasOneUse() &&
            update.getResult() == region.getBody().front().getTerminator()->getOperand(result))
          continue;
        return false;
      }
      if (accessOf(user) != Access::Elementwise || nn::shapeOf(user->getResult(0)) != shape)
        return false;
      if (seen.insert(user->getResult(0)).second)
        open.push_back(user->getResult(0));
    }
  return true;
}

} // namespace hpc::kernels
