// Guarantees of the phase: the ports of @main are those of a training step.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/Ports.h"
#include "passes/Train/Passes.h"

namespace hpc {

#define GEN_PASS_DEF_VERIFYTRAIN
#include "passes/Train/Passes.h.inc"

/// A gradient has the type of its parameter and is there once.
static LogicalResult verifyGradients(func::FuncOp function) {
  std::map<std::string, Type> parameters;
  function.walk([&](nn::ParameterOp op) { parameters.try_emplace(op.getName().str(), op.getType()); });
  std::set<std::string> seen;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    std::string name = nn::resultPort(function, index).gradient;
    if (name.empty())
      continue;
    auto parameter = parameters.find(name);
    if (parameter == parameters.end())
      return function.emitError() << "result " << index << " is the gradient of '" << name << "', which is no parameter";
    if (parameter->second != function.getResultTypes()[index])
      return function.emitError() << "result " << index << " of type " << function.getResultTypes()[index]
                                  << " is the gradient of '" << name << "' of type " << parameter->second;
    if (!seen.insert(name).second)
      return function.emitError() << "'" << name << "' has two gradients, the second is result " << index;
  }
  return success();
}

/// The training loop finds step scalars and inputs by name, so no input may have the name of a step scalar.
static LogicalResult verifyNames(func::FuncOp function) {
  std::set<std::string> scalars;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    scalars.insert(nn::argumentPort(function, index).stepScalar);
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (std::string name = nn::argumentPort(function, index).name; !name.empty() && scalars.count(name))
      return userError(function, ErrorKind::Model)
             << "input '" << name << "' has the name of a number that the training loop gives in each step; rename the input in the model";
  return success();
}

namespace {
struct VerifyTrain : impl::VerifyTrainBase<VerifyTrain> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && (failed(verifyNames(function)) || failed(nn::verifyPorts(function)) || failed(verifyGradients(function))))
      signalPassFailure();
  }
};
} // namespace

} // namespace hpc
