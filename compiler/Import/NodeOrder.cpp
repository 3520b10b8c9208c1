// The nodes that the outputs need, in an order in which every value is made before it is read.
// ONNX requires topological order; files that break it are sorted, stably.
#include "compiler/Import/OnnxModel.h"

#include <functional>
#include <queue>
#include <set>

namespace hpc::onnx {
namespace {

Status orderError(const std::string &message) { return Status::error(ErrorKind::Model, message); }

constexpr size_t source = size_t(-1); ///< the maker of inputs and initializers

/// Calls visit(name) for each value that a node reads, itself or in its subgraphs; the first error ends the walk.
template <typename Visit> Status eachRead(const Node &node, Visit visit) {
  for (const std::string &input : node.inputs)
    if (!input.empty())
      HPC_RETURN_IF_ERROR(visit(input));
  for (const std::string &name : node.captured)
    HPC_RETURN_IF_ERROR(visit(name));
  return Status::success();
}

/// `graph`: a Model or a Subgraph; `outer`: values from outside; `place`: the graph's name in errors.
template <typename Graph>
Expected<std::vector<const Node *>> ordered(const Graph &model, const std::set<std::string> &outer,
                                            const std::string &place) {
  std::map<std::string, size_t> makers;
  for (const std::string &name : outer)
    makers.emplace(name, source);
  for (const ValueInfo &input : model.inputs)
    if (!makers.emplace(input.name, source).second)
      return orderError("two inputs are named '" + input.name + "'");
  for (const StoredTensor &tensor : model.initializers)
    if (!makers.emplace(tensor.name, source).second)
      return orderError("'" + tensor.name + "' is an input and an initializer");
  for (size_t i = 0; i < model.nodes.size(); ++i)
    for (const std::string &output : model.nodes[i].outputs)
      if (!output.empty() && !makers.emplace(output, i).second)
        return orderError("node '" + model.nodes[i].name + "' makes '" + output + "', which exists already");

  // Needed nodes, from the outputs backwards.
  std::set<size_t> needed;
  std::vector<size_t> open;
  auto need = [&](const std::string &value, const std::string &reader) {
    auto maker = makers.find(value);
    if (maker == makers.end())
      return orderError(reader + " reads '" + value + "', which nothing makes");
    if (maker->second != source && needed.insert(maker->second).second)
      open.push_back(maker->second);
    return Status::success();
  };
  for (const ValueInfo &output : model.outputs)
    HPC_RETURN_IF_ERROR(need(output.name, place + "'s list of outputs"));
  while (!open.empty()) {
    const Node &node = model.nodes[open.back()];
    open.pop_back();
    HPC_RETURN_IF_ERROR(
        eachRead(node, [&](const std::string &name) { return need(name, "node '" + node.name + "'"); }));
  }

  // Kahn's algorithm; among ready nodes the first in the file goes next.
  std::map<size_t, size_t> waiting; // node -> inputs that are not made yet
  std::map<size_t, std::vector<size_t>> readers;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
  for (size_t i : needed) {
    size_t count = 0;
    HPC_RETURN_IF_ERROR(eachRead(model.nodes[i], [&](const std::string &name) {
      if (size_t maker = makers[name]; maker != source) {
        readers[maker].push_back(i);
        ++count;
      }
      return Status::success();
    }));
    waiting[i] = count;
    if (count == 0)
      ready.push(i);
  }
  std::vector<const Node *> result;
  while (!ready.empty()) {
    size_t node = ready.top();
    ready.pop();
    result.push_back(&model.nodes[node]);
    waiting.erase(node);
    for (size_t reader : readers[node])
      if (--waiting[reader] == 0)
        ready.push(reader);
  }
  if (waiting.empty())
    return result;
  return orderError("the graph has a cycle through node '" + model.nodes[waiting.begin()->first].name + "'");
}

/// Names that the graph makes, and names that its nodes read.
void namesOf(const Subgraph &graph, std::set<std::string> &made, std::vector<std::string> &read) {
  for (const ValueInfo &input : graph.inputs)
    made.insert(input.name);
  for (const StoredTensor &tensor : graph.initializers)
    made.insert(tensor.name);
  for (const Node &node : graph.nodes) {
    made.insert(node.outputs.begin(), node.outputs.end());
    read.insert(read.end(), node.inputs.begin(), node.inputs.end());
    read.insert(read.end(), node.captured.begin(), node.captured.end());
  }
  for (const ValueInfo &output : graph.outputs)
    read.push_back(output.name);
}

} // namespace

std::vector<std::string> capturedNames(const Node &node) {
  std::vector<std::string> captured;
  std::set<std::string> seen = {""};
  for (const auto &[name, attribute] : node.attributes) {
    if (!attribute.graph)
      continue;
    std::set<std::string> made;
    std::vector<std::string> read;
    namesOf(*attribute.graph, made, read);
    for (const std::string &each : read)
      if (!made.count(each) && seen.insert(each).second)
        captured.push_back(each);
  }
  return captured;
}

Expected<std::vector<const Node *>> orderedNodes(const Model &model) { return ordered(model, {}, "the model"); }

Expected<std::vector<const Node *>> orderedNodes(const Subgraph &graph, const std::string &place) {
  std::set<std::string> made;
  std::vector<std::string> read;
  namesOf(graph, made, read);
  std::set<std::string> outer;
  for (const std::string &each : read)
    if (!each.empty() && !made.count(each))
      outer.insert(each);
  return ordered(graph, outer, place);
}

} // namespace hpc::onnx
