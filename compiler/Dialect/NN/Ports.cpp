// The attributes of arguments and results, read and written in one place.
#include "compiler/Dialect/NN/Ports.h"

#include "compiler/Diagnostics.h"

namespace hpc::nn {

static constexpr const char *nameAttr = "nn.name", *dimsAttr = "nn.dims", *stateAttr = "nn.state",
                            *initialAttr = "nn.initial", *writesAttr = "nn.writes", *stepScalarAttr = "nn.step_scalar";

static std::string textOf(DictionaryAttr attrs, StringRef name) {
  auto text = attrs ? attrs.getAs<StringAttr>(name) : StringAttr();
  return text ? text.str() : std::string();
}

ArgumentPort argumentPort(func::FuncOp function, unsigned index) {
  DictionaryAttr attrs = function.getArgAttrDict(index);
  ArgumentPort port{textOf(attrs, nameAttr), {}, textOf(attrs, stateAttr), 0, textOf(attrs, stepScalarAttr)};
  if (auto dims = attrs ? attrs.getAs<ArrayAttr>(dimsAttr) : ArrayAttr())
    for (Attribute dim : dims)
      port.dims.push_back(isa<StringAttr>(dim) ? cast<StringAttr>(dim).str() : std::string());
  if (auto initial = attrs ? attrs.getAs<FloatAttr>(initialAttr) : FloatAttr())
    port.initial = initial.getValueAsDouble();
  return port;
}

ResultPort resultPort(func::FuncOp function, unsigned index) {
  DictionaryAttr attrs = function.getResultAttrDict(index);
  return {textOf(attrs, nameAttr), textOf(attrs, writesAttr)};
}

void setArgumentPort(func::FuncOp function, unsigned index, const ArgumentPort &port) {
  Builder builder(function.getContext());
  auto set = [&](StringRef name, bool isSaid, Attribute value) {
    if (isSaid)
      function.setArgAttr(index, name, value);
    else
      function.removeArgAttr(index, name);
  };
  SmallVector<StringRef> dims(port.dims.begin(), port.dims.end());
  set(nameAttr, !port.name.empty(), builder.getStringAttr(port.name));
  set(dimsAttr, !port.dims.empty(), builder.getStrArrayAttr(dims));
  set(stateAttr, port.isState(), builder.getStringAttr(port.state));
  set(initialAttr, port.isState(), builder.getF64FloatAttr(port.initial));
  set(stepScalarAttr, !port.stepScalar.empty(), builder.getStringAttr(port.stepScalar));
}

void setResultPort(func::FuncOp function, unsigned index, const ResultPort &port) {
  Builder builder(function.getContext());
  for (auto [name, text] : {std::pair(nameAttr, port.name), std::pair(writesAttr, port.writes)})
    if (text.empty())
      function.removeResultAttr(index, builder.getStringAttr(name));
    else
      function.setResultAttr(index, name, builder.getStringAttr(text));
}

std::map<std::string, unsigned> writtenBy(func::FuncOp function) {
  std::map<std::string, unsigned> written;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (std::string name = resultPort(function, index).writes; !name.empty())
      written.emplace(name, index);
  return written;
}

bool isWritten(Value value) {
  std::string name;
  func::FuncOp function;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    name = function ? argumentPort(function, argument.getArgNumber()).state : std::string();
  } else if (auto parameter = value.getDefiningOp<ParameterOp>()) {
    function = parameter->getParentOfType<func::FuncOp>();
    name = parameter.getName().str();
  }
  if (!function || name.empty())
    return false;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (resultPort(function, index).writes == name)
      return true;
  return false;
}

LogicalResult verifyPorts(func::FuncOp function) {
  std::map<std::string, Type> parameters, states;
  function.walk([&](ParameterOp op) { parameters.try_emplace(op.getName().str(), op.getType()); });
  for (BlockArgument argument : function.getArguments()) {
    ArgumentPort port = argumentPort(function, argument.getArgNumber());
    if (port.isState() && !states.try_emplace(port.state, argument.getType()).second)
      return userError(argument.getLoc(), ErrorKind::Model)
             << "state '" << port.state << "' is an argument twice; give each state a name of its own";
    if (port.isState() && parameters.count(port.state))
      return userError(argument.getLoc(), ErrorKind::Model)
             << "state '" << port.state << "' has the name of a parameter; rename it, as 'momentum/" << port.state
             << "'";
    if (!port.stepScalar.empty() && (port.isState() || !shapeOf(argument).empty()))
      return userError(argument.getLoc(), ErrorKind::Model)
             << "step scalar '" << port.stepScalar << "' of type " << argument.getType()
             << " must have rank 0 and be no state";
  }
  std::set<std::string> written;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    std::string name = resultPort(function, index).writes;
    if (name.empty())
      continue;
    Type target = parameters.count(name) ? parameters[name] : states[name];
    if (!target)
      return userError(function, ErrorKind::Model)
             << "result " << index << " writes '" << name << "', which is neither a parameter nor a state";
    if (target != function.getResultTypes()[index])
      return userError(function, ErrorKind::Model) << "result " << index << " of type "
                                                   << function.getResultTypes()[index] << " writes '" << name
                                                   << "' of type " << target << "; they must be equal";
    if (!written.insert(name).second)
      return userError(function, ErrorKind::Model) << "'" << name << "' is written twice, at last by result " << index;
  }
  return success();
}

} // namespace hpc::nn
