// One forward walk.
#include "compiler/Dialect/NN/Dependence.h"

#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

Dependences findDependences(func::FuncOp function) {
  Dependences dependences;
  for (Value argument : function.getArguments())
    dependences[argument].fromInputs = true;
  for (Operation &op : function.getBody().front()) {
    Dependence dependence;
    dependence.fromWeights = isa<ParameterOp>(op);
    for (Value operand : op.getOperands()) {
      dependence.fromInputs |= dependences[operand].fromInputs;
      dependence.fromWeights |= dependences[operand].fromWeights;
    }
    for (Value result : op.getResults())
      dependences[result] = dependence;
  }
  return dependences;
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
