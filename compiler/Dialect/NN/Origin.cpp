// One forward walk.
#include "compiler/Dialect/NN/Origin.h"

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

Origins findOrigins(func::FuncOp function) {
  Origins origins;
  for (Value argument : function.getArguments())
    origins[argument].fromInputs = true;
  for (Operation &op : function.getBody().front()) {
    Origin origin;
    origin.fromWeights = isa<ParameterOp>(op);
    for (Value operand : op.getOperands()) {
      origin.fromInputs |= origins[operand].fromInputs;
      origin.fromWeights |= origins[operand].fromWeights;
    }
    for (Value result : op.getResults())
      origins[result] = origin;
  }
  return origins;
}

bool isProduct(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost && effortOf(op) == Effort::Product &&
         cost.getFlops() > 2 * tensorType(op->getResult(0)).getNumElements();
}

Value storedForm(Value weight) {
  for (Value value = weight; Operation *op = value.getDefiningOp(); value = op->getOperand(0)) {
    if (isa<ParameterOp>(op))
      return value;
    if (op->getNumOperands() != 1 || accessOf(op) != Access::Elementwise || shapeOf(op->getOperand(0)) != shapeOf(value))
      break;
  }
  return weight;
}

} // namespace hpc::nn
