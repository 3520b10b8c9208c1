// Scalings: a tensor times a number, and what else costs no more than reading the tensor does. Who reads the result may as
// well read the tensor and compute; to keep both is to hold one thing twice.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Interfaces/Structure.h"

namespace hpc {

/// The tensor that `op` scales: the only operand that is no single number, of the shape and type of the result, where
/// `op` takes a few instructions an element. Null where `op` is no scaling.
inline Value scaledBy(Operation *op) {
  auto isNumber = [](Value value) { return nn::tensorType(value).getNumElements() == 1; };
  if (op->getNumResults() != 1 || accessOf(op) != Access::Elementwise || effortOf(op) > Effort::Cheap ||
      isNumber(op->getResult(0)))
    return {};
  Value scaled;
  for (Value operand : op->getOperands())
    if (!isNumber(operand)) {
      if (scaled)
        return {};
      scaled = operand;
    }
  auto result = nn::tensorType(op->getResult(0));
  bool isAlike = scaled && nn::shapeOf(scaled) == result.getShape() &&
                 nn::tensorType(scaled).getElementType() == result.getElementType();
  return isAlike ? scaled : Value();
}

} // namespace hpc
