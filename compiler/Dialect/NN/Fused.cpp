// Fused regions.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

LogicalResult FusedOp::verify() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getOperands().getTypes())
    return emitOpError("(C1) block arguments must have the operands' types");
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("(C1) nn.yield must have the results' types");
  if (!getInPlace())
    return success();
  ArrayRef<int64_t> inPlace = *getInPlace();
  if (inPlace.size() != getNumResults())
    return emitOpError("(C2) in_place has ") << inPlace.size() << " entries for " << getNumResults() << " results";
  for (auto [index, operand] : llvm::enumerate(inPlace)) {
    if (operand == -1)
      continue;
    if (operand < 0 || operand >= int64_t(getNumOperands()))
      return emitOpError("(C2) in_place names operand ") << operand << " of " << getNumOperands();
    if (getOperand(unsigned(operand)).getType() != getResult(unsigned(index)).getType())
      return emitOpError("(C2) result ") << index << " of type " << getResult(unsigned(index)).getType()
                                         << " cannot be written over operand " << operand << " of type "
                                         << getOperand(unsigned(operand)).getType();
    if (llvm::count(inPlace, operand) > 1)
      return emitOpError("(C2) two results are written over operand ") << operand;
  }
  return success();
}

} // namespace hpc::nn
