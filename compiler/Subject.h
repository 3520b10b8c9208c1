// What a value is called in messages about seeds: one spelling, so that --explain finds a rule again.
#pragma once

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Location.h"

namespace hpc {

/// "wte.weight", "input ids", or the ONNX node.
inline std::string subjectOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    std::string name = nodeName(argument.getLoc());
    if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()); function && name.empty())
      name = nn::argumentPort(function, argument.getArgNumber()).name;
    return "input " + (name.empty() ? std::to_string(argument.getArgNumber()) : name);
  }
  Operation *op = value.getDefiningOp();
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    return parameter.getName().str();
  std::string node = nodeName(op->getLoc());
  return node.empty() ? op->getName().getStringRef().str() : node;
}

} // namespace hpc
