// Arguments are added to the block right away, so that ops can read them; the type and the attributes follow in write().
#include "passes/Train/StepFunction.h"

#include "compiler/StepPart.h"

namespace hpc {

StepFunction::StepFunction(func::FuncOp function)
    : function(function), terminator(function.getBody().front().getTerminator()) {
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    results.push_back({operand.get(), nn::resultPort(function, number), function.getResultAttrDict(number)});
  }
  for (unsigned number = 0; number < function.getNumArguments(); ++number) {
    arguments.push_back(nn::argumentPort(function, number));
    argumentAttributes.push_back(function.getArgAttrDict(number));
  }
  function.walk([&](nn::ParameterOp op) { parameterValues.try_emplace(op.getName().str(), op.getResult()); });
}

Value StepFunction::addArgument(RankedTensorType type, const nn::ArgumentPort &port, Location location) {
  arguments.push_back(port);
  argumentAttributes.push_back({});
  return function.getBody().front().addArgument(type, location);
}

Value StepFunction::stepScalar(StringRef name) {
  for (auto [number, port] : llvm::enumerate(arguments))
    if (port.stepScalar == name)
      return function.getBody().front().getArgument(unsigned(number));
  MLIRContext *context = function.getContext();
  nn::ArgumentPort port;
  port.stepScalar = name.str();
  return addArgument(RankedTensorType::get({}, Float64Type::get(context)), port, updateLocation(context, ""));
}

Value StepFunction::resultNamed(StringRef name) const {
  const Result *found = llvm::find_if(results, [&](const Result &result) { return result.port.name == name; });
  return found == results.end() ? Value() : found->value;
}

SmallVector<StepFunction::Result> StepFunction::gradients() const {
  SmallVector<Result> found;
  llvm::copy_if(results, std::back_inserter(found), [](const Result &result) { return !result.port.gradient.empty(); });
  return found;
}

void eraseDeadOps(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void StepFunction::write() {
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<nn::ResultPort> ports;
  SmallVector<DictionaryAttr> attributes;
  for (const Result &result : results) {
    values.push_back(result.value);
    types.push_back(result.value.getType());
    ports.push_back(result.port);
    attributes.push_back(result.attributes);
  }
  terminator->setOperands(values);
  Block &body = function.getBody().front();
  function.setFunctionType(FunctionType::get(function.getContext(), body.getArgumentTypes(), types));
  function.setAllArgAttrs(argumentAttributes);
  function.setAllResultAttrs(attributes);
  nn::setArgumentPorts(function, arguments);
  nn::setResultPorts(function, ports);
}

} // namespace hpc
