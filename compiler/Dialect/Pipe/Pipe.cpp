// Registration and verifiers of the pipe dialect.
#include "compiler/Dialect/Pipe/Pipe.h"

#include "compiler/Dialect/Pipe/Schedule.h"

#include "compiler/Dialect/Pipe/PipeDialect.cpp.inc"
#include "compiler/Dialect/Pipe/PipeEnums.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/Dialect/Pipe/PipeOps.cpp.inc"

namespace hpc::pipe {

void PipeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/Dialect/Pipe/PipeOps.cpp.inc"
      >();
}

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  static const DiscardableAttribute table[] = {{scheduleAttrName, onFunction, forms::texts}};
  return verifyDiscardable(op, attribute, attributePlaceOf(op), table);
}

LogicalResult StageOp::verify() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getOperands().getTypes())
    return emitOpError("(C1) block arguments must have the operands' types");
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("(C1) pipe.yield must have the results' types");
  for (Value operand : getOperands())
    if (Operation *producer = operand.getDefiningOp()) {
      auto transfer = dyn_cast<TransferOp>(producer);
      auto program = dyn_cast<StageOp>(producer);
      if (!(transfer && transfer.getTo() == getIndex()) && !(program && program.getIndex() == getIndex()))
        return emitOpError("(C2) operand ") << operand << " must be a function argument, a transfer to stage "
                                            << getIndex() << " or a result of another program of it";
    }
  for (Operation *user : getOperation()->getUsers())
    if (auto transfer = dyn_cast<TransferOp>(user); transfer && transfer.getFrom() != getIndex())
      return emitOpError("(C2) a result goes through a transfer from stage ")
             << transfer.getFrom() << ", not " << getIndex();
  return success();
}

LogicalResult TransferOp::verify() {
  if (getOperand().getType() != getResult().getType())
    return emitOpError("(C1) operand and result types differ");
  int64_t from = int64_t(getFrom()), to = int64_t(getTo());
  if (from == to || from < 0 || to < 0)
    return emitOpError("(C2) goes from stage ") << from << " to stage " << to << "; it must connect two stages";
  return success();
}

} // namespace hpc::pipe
