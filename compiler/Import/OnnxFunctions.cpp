// Functions that a model defines itself, put in the place of the nodes that call them.
// Values inside get the call's name as a prefix, and a number where that is taken, so that nothing shares one.
#include "compiler/Import/OnnxModel.h"

#include <tuple>

namespace hpc::onnx {
namespace {

constexpr int maxDepth = 64;
constexpr size_t maxExpanded = 2'000'000;

/// By domain, name and overload.
using FunctionTable = std::map<std::tuple<std::string, std::string, std::string>, const Function *>;

/// An attribute of a body node: its own value, or that of the call, or the function's default. Nothing: left out.
const Attribute *resolve(const Attribute &attribute, const Node &call, const Function &function) {
  if (attribute.reference.empty())
    return &attribute;
  if (auto given = call.attributes.find(attribute.reference); given != call.attributes.end())
    return &given->second;
  auto fallback = function.defaults.find(attribute.reference);
  return fallback == function.defaults.end() ? nullptr : &fallback->second;
}

struct Expansion {
  FunctionTable functions;
  std::set<std::string> taken; ///< names of values
  size_t expanded = 0;         ///< nodes and calls: functions that call each other and nothing else grow as well
  std::vector<Node> nodes;
};

Status expand(const Node &node, int depth, Expansion &expansion);

/// Calls inside the node's subgraphs.
Status expandSubgraphs(Node &node, int depth, Expansion &expansion) {
  for (auto &[name, attribute] : node.attributes) {
    if (!attribute.graph)
      continue;
    auto copy = std::make_shared<Subgraph>(*attribute.graph);
    std::vector<Node> around = std::move(expansion.nodes);
    expansion.nodes.clear();
    for (const Node &inner : attribute.graph->nodes)
      HPC_RETURN_IF_ERROR(expand(inner, depth, expansion));
    copy->nodes = std::move(expansion.nodes);
    expansion.nodes = std::move(around);
    attribute.graph = std::move(copy);
  }
  return Status::success();
}

/// The names of a function's values in its caller.
struct Call {
  const Node &node;
  const Function &function;
  std::set<std::string> &taken;
  std::map<std::string, std::string> names; ///< inside, where each is one value (separateNames) -> outside

  std::string renamed(const std::string &name) {
    auto found = names.find(name);
    return found != names.end() ? found->second : names[name] = freeName(node.name + "/" + name, taken);
  }
  void takeIn(Node &body) {
    for (std::vector<std::string> *list : {&body.inputs, &body.outputs, &body.captured})
      for (std::string &each : *list)
        each = renamed(each);
    body.name = node.name + "/" + body.name;
    if (body.modulePath.empty())
      body.modulePath = node.modulePath;
    std::map<std::string, Attribute> attributes;
    for (const auto &[name, attribute] : body.attributes)
      if (const Attribute *value = resolve(attribute, node, function)) {
        Attribute &held = attributes[name] = *value;
        if (held.graph && !node.attributes.count(attribute.reference)) // the caller's has the caller's names
          held.graph = takenIn(*held.graph);
      }
    body.attributes = std::move(attributes);
    if (auto version = function.opsets.find(body.domain); version != function.opsets.end())
      body.version = version->second;
  }
  std::shared_ptr<const Subgraph> takenIn(const Subgraph &graph) {
    auto copy = std::make_shared<Subgraph>(graph);
    for (std::vector<ValueInfo> *list : {&copy->inputs, &copy->outputs})
      for (ValueInfo &each : *list)
        each.name = renamed(each.name);
    for (StoredTensor &tensor : copy->initializers)
      tensor.name = renamed(tensor.name);
    for (Node &inner : copy->nodes)
      takeIn(inner);
    return copy;
  }
};

Status expand(const Node &node, int depth, Expansion &expansion) {
  if (++expansion.expanded > maxExpanded)
    return Status::error(ErrorKind::Model, "its functions expand to over two million nodes");
  auto found = expansion.functions.find({node.domain, node.op, node.overload});
  if (found == expansion.functions.end()) {
    Node kept = node;
    HPC_RETURN_IF_ERROR(expandSubgraphs(kept, depth, expansion));
    expansion.nodes.push_back(std::move(kept));
    return Status::success();
  }
  const Function &function = *found->second;
  if (depth == maxDepth)
    return Status::error(ErrorKind::Model, "function '" + function.name + "' calls itself, or calls nest deeper than " +
                                               std::to_string(maxDepth));
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    return Status::error(ErrorKind::Model, "node '" + node.name + "' gives function '" + function.name +
                                               "' more inputs or outputs than it has");
  Call call{node, function, expansion.taken, {{"", ""}}};
  for (size_t i = 0; i < function.inputs.size(); ++i)
    call.names[function.inputs[i]] = i < node.inputs.size() ? node.inputs[i] : "";
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty())
      call.names[function.outputs[i]] = node.outputs[i];
  for (Node body : function.nodes) {
    call.takeIn(body);
    HPC_RETURN_IF_ERROR(expand(body, depth + 1, expansion));
  }
  return Status::success();
}

} // namespace

Status inlineFunctions(Model &model) {
  if (model.functions.empty())
    return Status::success();
  Expansion expansion;
  expansion.taken = allNames(model);
  for (Function &function : model.functions) {
    separateNames(function);
    if (!expansion.functions.try_emplace({function.domain, function.name, function.overload}, &function).second)
      return Status::error(ErrorKind::Model, "two functions are named '" + function.name + "'");
  }
  for (const Node &node : model.nodes)
    HPC_RETURN_IF_ERROR(expand(node, 0, expansion));
  model.nodes = std::move(expansion.nodes);
  return Status::success();
}

} // namespace hpc::onnx
