// Several ops may carry one name: a Gemm becomes a product and an addition, raise puts reshapes round a product, and a
// gradient has the names of the op that it differentiates. The last op of the graph itself makes the value that is meant.
#include "compiler/Sidecar/TensorRules.h"

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/StepPart.h"
#include "compiler/ValueNames.h"

#include <numeric>

namespace hpc {

namespace {
/// All values that can be cut, and what they are called.
struct TensorNames {
  std::vector<Value> values; ///< program order
  DenseMap<Value, std::vector<std::string>> names;
  std::vector<std::string> all;

  explicit TensorNames(func::FuncOp function) {
    std::map<std::string, Value> meant;
    for (BlockArgument argument : function.getArguments()) {
      values.push_back(argument);
      meant[nn::argumentPort(function, argument.getArgNumber()).name] = argument;
    }
    for (Operation &op : function.front()) {
      if (op.getNumResults() != 1 || op.getNumOperands() == 0 || stepPartOf(op.getLoc()) != StepPart::Forward)
        continue;
      Value value = op.getResult(0);
      values.push_back(value);
      meant[nodeName(op.getLoc())] = value;
      meant[modulePath(op.getLoc())] = value;
    }
    for (Value value : values) // a value's own name counts more than a module's or a node's
      if (Operation *op = value.getDefiningOp())
        for (const std::string &name : valueNames(op->getLoc()))
          meant[name] = value;
    for (auto &[name, value] : meant)
      if (!name.empty()) {
        names[value].push_back(name);
        all.push_back(name);
      }
  }
};
} // namespace

llvm::DenseMap<Value, std::string> tensorNames(func::FuncOp function) {
  TensorNames tensors(function);
  llvm::DenseMap<Value, std::string> first;
  for (auto &[value, names] : tensors.names)
    if (!names.empty())
      first[value] = names.front();
  return first;
}

void noteTensors(ModuleOp module, const Sidecar &sidecar) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || sidecar.tensors.empty())
    return;
  Builder builder(module.getContext());
  NamedAttrList shapes;
  TensorNames tensors(function);
  for (Value value : tensors.values)
    for (const std::string &name : tensors.names[value])
      if (llvm::any_of(sidecar.tensors, [&](const TensorRule &rule) { return matchesName(rule.match, name); }))
        shapes.set(name, builder.getDenseI64ArrayAttr(nn::shapeOf(value)));
  module->setAttr(sidecarTensorsAttrName, shapes.getDictionary(module.getContext()));
}

static Status decidesNothing(const Sidecar &sidecar, const TensorRule &rule, const TensorDecision *before,
                             func::FuncOp function, DictionaryAttr noted, const TensorNames &tensors) {
  std::string text = "\"" + rule.match + "\" ";
  std::string nearest = nearestMatch(rule.match, tensors.all);
  std::string remedy = nearest.empty() ? "" : "; the nearest is '" + nearest + "'";
  auto parameters = function.getOps<nn::ParameterOp>();
  auto parameter = llvm::find_if(
      parameters, [&](nn::ParameterOp op) { return matchesName(rule.match, op.getName().str()); });
  auto absorbed = llvm::find_if(noted ? noted.getValue() : ArrayRef<NamedAttribute>(), [&](NamedAttribute entry) {
    return matchesName(rule.match, entry.getName().str());
  });
  if (before)
    text += "decides nothing: all that it matches is decided before it, first by \"" + before->rule->match +
            "\" in line " + std::to_string(before->rule->line) +
            ", and the first rule that matches wins; move this rule before that one, or take one out";
  else if (noted && absorbed != noted.end())
    text += "decides nothing: '" + absorbed->getName().str() +
            "' is computed inside another op by now (a norm, an activation, attention), or is not computed at all" + remedy;
  else if (parameter != parameters.end())
    text += "matches '" + (*parameter).getName().str() + "', a parameter; write the rule in \"params\"";
  else
    text += "matches no tensor" + remedy;
  return Status::error(ErrorKind::Sidecar, text).at(sidecar.place(rule));
}

Expected<std::vector<TensorDecision>> decideTensors(const Sidecar &sidecar, func::FuncOp function) {
  std::vector<TensorDecision> decisions;
  if (sidecar.tensors.empty())
    return decisions;
  auto noted = function->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(sidecarTensorsAttrName);
  TensorNames tensors(function);
  decisions.reserve(tensors.values.size()); // pointers into it stay good
  std::vector<bool> decides(sidecar.tensors.size(), false);
  std::vector<const TensorDecision *> cameTooLate(sidecar.tensors.size(), nullptr);
  for (Value value : tensors.values) {
    const TensorDecision *decided = nullptr;
    for (size_t number = 0; number < sidecar.tensors.size(); ++number) {
      const TensorRule &rule = sidecar.tensors[number];
      const std::vector<std::string> &names = tensors.names[value];
      auto name = llvm::find_if(names, [&](const std::string &each) { return matchesName(rule.match, each); });
      if (name == names.end())
        continue;
      if (decided) {
        if (!cameTooLate[number])
          cameTooLate[number] = decided;
        continue;
      }
      std::vector<int64_t> shape = nn::shapeOf(value).vec();
      if (auto before = noted ? noted.getAs<DenseI64ArrayAttr>(*name) : DenseI64ArrayAttr()) {
        std::vector<int64_t> own = before.asArrayRef().vec();
        auto count = [](const std::vector<int64_t> &sizes) {
          return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<int64_t>());
        };
        if (count(own) != count(shape)) // another value at the same place
          continue;
        shape = own;
      }
      decisions.push_back({value, &rule, shape});
      decided = &decisions.back();
      decides[number] = true;
    }
  }
  for (size_t number = 0; number < sidecar.tensors.size(); ++number)
    if (!decides[number] && !sidecar.tensors[number].optional)
      return decidesNothing(sidecar, sidecar.tensors[number], cameTooLate[number], function, noted, tensors);
  return decisions;
}

} // namespace hpc
