// Counts the code that ElementEmitter will make, without making it. Both remember values by index.
#include "passes/Kernels/Fusion/PulledWork.h"

#include "compiler/Interfaces/Structure.h"
#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Elements/RegionShape.h"
#include "passes/Kernels/Elements/RowComposites.h"
#include "passes/Kernels/Fusion/FusionRoles.h"

namespace hpc::kernels {

int PulledWork::indexOf(const Step &step, bool isLoop) {
  auto [found, isNew] = indices.try_emplace(step, int(loopOfIndex.size()));
  if (isNew)
    loopOfIndex.push_back(isLoop ? numLoops++ : loopOfIndex[size_t(step.from)]);
  return found->second;
}

int PulledWork::indexOf(OpOperand &operand, int index) {
  Operation *reader = operand.getOwner();
  if (auto update = dyn_cast<nn::UpdateSliceOp>(reader); update && operand.get() == update.getRows())
    return index;
  ArrayRef<int64_t> from = nn::shapeOf(operand.get()), to = nn::shapeOf(reader->getResult(0));
  // A composite reads its scale and shift as an elementwise op does.
  bool isLookup = accessOf(reader) == Access::Lookup;
  bool isElementwise = accessOf(reader) == Access::Elementwise || (isRowComposite(reader->getName()) && !isLookup);
  if (isa<dist::FillTailOp>(reader) || (isElementwise && from == to))
    return index;
  // Operands of one shape are read at one index, whichever op broadcasts them.
  if (isElementwise)
    return indexOf({index, nullptr, 0, from.vec()}, false);
  bool inLoop = accessOf(reader) == Access::Combine || isRowComposite(reader->getName());
  return indexOf({index, reader, operand.getOperandNumber(), {}}, inLoop);
}

bool PulledWork::pull(Value result, ArrayRef<int64_t> root) {
  // A result of row shape is computed where the others broadcast it from.
  bool isRoot = computedShape(result) == root;
  SmallVector<Read> open = {{result, isRoot ? 0 : indexOf({0, nullptr, 0, computedShape(result).vec()}, false)}};
  while (!open.empty()) {
    auto [value, index] = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !isInside(op) || !seen.insert({value, index}).second)
      continue;
    if (seen.size() > maxElements)
      return false;
    if (isExpensive(op) &&
        expensive.try_emplace({op, loopOfIndex[size_t(index)]}, index).first->second != index)
      return false;
    for (OpOperand &operand : op->getOpOperands())
      open.push_back({operand.get(), indexOf(operand, index)});
    if (isRowComposite(op->getName()) && accessOf(op) == Access::Composite) // along its row as well
      open.push_back({op->getOperand(0), indexOf({index, op, 0, {}}, true)});
  }
  return true;
}

} // namespace hpc::kernels
