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

} // namespace hpc::nn
