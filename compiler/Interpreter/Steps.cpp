// One step: states in as arguments, parameters as the last step left them, written results out.
// Everything is read before anything is kept, so a step that fails leaves what was there.
#include "compiler/Interpreter/Steps.h"

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "runtime/base/CountText.h"

namespace hpc {

/// The arguments in the function's order.
static Expected<std::vector<Tensor>> argumentsOf(func::FuncOp function, ArrayRef<Tensor> inputs,
                                                 const KeptTensors &kept) {
  std::vector<Tensor> arguments;
  size_t next = 0;
  for (BlockArgument argument : function.getArguments()) {
    nn::ArgumentPort port = nn::argumentPort(function, argument.getArgNumber());
    if (!port.isState()) {
      if (next == inputs.size())
        return Status::error(ErrorKind::Usage, "the step takes more inputs than the " + std::to_string(inputs.size()) +
                                                   " that are given");
      arguments.push_back(inputs[next++]);
      continue;
    }
    if (auto found = kept.find(port.state); found != kept.end()) {
      arguments.push_back(found->second);
      continue;
    }
    RankedTensorType global = dist::shardingAttrOf(argument) ? dist::globalType(nn::tensorType(argument))
                                                             : nn::tensorType(argument);
    Tensor initial(dtypeOf(global), global.getShape());
    for (int64_t i = 0; i < initial.size(); ++i)
      initial.setNumber(i, port.initial);
    round(initial);
    arguments.push_back(std::move(initial));
  }
  if (next != inputs.size())
    return Status::error(ErrorKind::Usage, "the step takes " + countText(next, "input") + ", " +
                                               std::to_string(inputs.size()) + " are given");
  return arguments;
}

Expected<std::vector<Tensor>> runStep(func::FuncOp function, ArrayRef<Tensor> inputs, KeptTensors &kept,
                                      const dist::Mesh *mesh, const RunOptions &options) {
  Expected<std::vector<Tensor>> arguments = argumentsOf(function, inputs, kept);
  if (!arguments.ok())
    return arguments.status();
  RunOptions withKept = options;
  withKept.parameters = [&](nn::ParameterOp op, ArrayRef<int64_t> shape) -> Expected<Tensor> {
    auto found = kept.find(op.getName().str());
    return found == kept.end() ? options.parameters(op, shape) : Expected<Tensor>(found->second);
  };
  Expected<std::vector<Tensor>> results = mesh ? runPartitioned(function, *arguments, *mesh, withKept)
                                               : runFunction(function, *arguments, withKept);
  if (!results.ok())
    return results.status();
  std::vector<Tensor> outputs;
  for (auto [index, result] : llvm::enumerate(*results))
    if (std::string name = nn::resultPort(function, unsigned(index)).writes; !name.empty())
      kept[name] = std::move(result);
    else
      outputs.push_back(std::move(result));
  return outputs;
}

} // namespace hpc
