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
  return success();
}

} // namespace hpc::nn
