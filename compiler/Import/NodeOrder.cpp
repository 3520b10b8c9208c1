// The nodes that the outputs need, in an order in which every value is made before it is read.
// ONNX asks for topological order; files that break it are sorted, stably.
#include "compiler/Import/OnnxModel.h"

#include <functional>
#include <queue>
#include <set>

namespace hpc::onnx {
namespace {

Status modelError(const std::string &message) { return Status::error(ErrorKind::Model, message); }

constexpr size_t source = size_t(-1); ///< the maker of inputs and initializers

} // namespace

Expected<std::vector<const Node *>> orderedNodes(const Model &model) {
  std::map<std::string, size_t> makers;
  for (const ValueInfo &input : model.inputs)
    if (!makers.emplace(input.name, source).second)
      return modelError("two inputs are named '" + input.name + "'");
  for (const StoredTensor &tensor : model.initializers)
    if (!makers.emplace(tensor.name, source).second)
      return modelError("'" + tensor.name + "' is an input and an initializer");
  for (size_t i = 0; i < model.nodes.size(); ++i)
    for (const std::string &output : model.nodes[i].outputs)
      if (!output.empty() && !makers.emplace(output, i).second)
        return modelError("node '" + model.nodes[i].name + "' makes '" + output + "', which exists already");

  // Needed nodes, from the outputs backwards.
  std::set<size_t> needed;
  std::vector<size_t> open;
  auto need = [&](const std::string &value, const std::string &reader) {
    auto maker = makers.find(value);
    if (maker == makers.end())
      return modelError(reader + " reads '" + value + "', which nothing makes");
    if (maker->second != source && needed.insert(maker->second).second)
      open.push_back(maker->second);
    return Status::success();
  };
  for (const ValueInfo &output : model.outputs)
    HPC_RETURN_IF_ERROR(need(output.name, "the model's list of outputs"));
  while (!open.empty()) {
    const Node &node = model.nodes[open.back()];
    open.pop_back();
    for (const std::string &input : node.inputs)
      if (!input.empty())
        HPC_RETURN_IF_ERROR(need(input, "node '" + node.name + "'"));
  }

  // Kahn's algorithm; of the nodes that are ready the first in the file goes next.
  std::map<size_t, size_t> waiting; // node -> inputs that are not there yet
  std::map<size_t, std::vector<size_t>> readers;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<size_t>> ready;
  for (size_t i : needed) {
    size_t count = 0;
    for (const std::string &input : model.nodes[i].inputs)
      if (size_t maker = input.empty() ? source : makers[input]; maker != source) {
        readers[maker].push_back(i);
        ++count;
      }
    waiting[i] = count;
    if (count == 0)
      ready.push(i);
  }
  std::vector<const Node *> ordered;
  while (!ready.empty()) {
    size_t node = ready.top();
    ready.pop();
    ordered.push_back(&model.nodes[node]);
    waiting.erase(node);
    for (size_t reader : readers[node])
      if (--waiting[reader] == 0)
        ready.push(reader);
  }
  if (waiting.empty())
    return ordered;
  return modelError("the graph has a cycle through node '" + model.nodes[waiting.begin()->first].name + "'");
}

} // namespace hpc::onnx
