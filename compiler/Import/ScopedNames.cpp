// One name for one value in the whole model: subgraphs have scopes, and the tables of the import have none.
// Names of the outermost graph stay, and so does a name inside that nothing else has.
#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

std::string freeName(const std::string &wanted, std::set<std::string> &taken) {
  std::string name = wanted;
  for (int64_t number = 2; !taken.insert(name).second; ++number)
    name = wanted + "_" + std::to_string(number);
  return name;
}

namespace {

const std::string &nameOf(const std::string &name) { return name; }
template <typename Named> const std::string &nameOf(const Named &each) { return each.name; }

template <typename Graph> std::set<std::string> madeBy(const Graph &graph) {
  std::set<std::string> made;
  for (const auto &input : graph.inputs)
    made.insert(nameOf(input));
  if constexpr (!std::is_same_v<Graph, Function>)
    for (const StoredTensor &tensor : graph.initializers)
      made.insert(tensor.name);
  for (const Node &node : graph.nodes)
    made.insert(node.outputs.begin(), node.outputs.end());
  made.erase("");
  return made;
}

template <typename Visit> void eachSubgraph(const std::vector<Node> &nodes, Visit visit) {
  for (const Node &node : nodes)
    for (const auto &[name, attribute] : node.attributes)
      if (attribute.graph)
        visit(*attribute.graph);
}

void collectInside(const std::vector<Node> &nodes, std::set<std::string> &names) {
  eachSubgraph(nodes, [&](const Subgraph &graph) {
    names.merge(madeBy(graph));
    collectInside(graph.nodes, names);
  });
}

template <typename Graph> void collectStored(const Graph &graph, std::vector<const StoredTensor *> &tensors) {
  for (const StoredTensor &tensor : graph.initializers)
    tensors.push_back(&tensor);
  eachSubgraph(graph.nodes, [&](const Subgraph &inner) { collectStored(inner, tensors); });
}

class Separation {
public:
  template <typename Graph> void run(Graph &graph) {
    Scope outermost;
    bool hasSubgraphs = false;
    eachSubgraph(graph.nodes, [&](const Subgraph &) { hasSubgraphs = true; });
    if (hasSubgraphs) {
      for (const std::string &name : madeBy(graph))
        outermost.names[name] = name;
      count(graph);
    }
    for (const auto &[name, count] : makers)
      taken.insert(name);
    for (const auto &[name, count] : nodes)
      takenByNodes.insert(name);
    for (Node &node : graph.nodes)
      renameInside(node, outermost, "");
  }

private:
  struct Scope {
    const Scope *around = nullptr;
    std::map<std::string, std::string> names; ///< of values that the graph makes -> new names
  };

  template <typename Graph> void count(const Graph &graph) {
    for (const std::string &name : madeBy(graph))
      ++makers[name];
    for (const Node &node : graph.nodes)
      ++nodes[node.name];
    eachSubgraph(graph.nodes, [&](const Subgraph &inner) { count(inner); });
  }

  static std::string find(const Scope &innermost, const std::string &name) {
    for (const Scope *scope = &innermost; scope; scope = scope->around)
      if (auto found = scope->names.find(name); found != scope->names.end())
        return found->second;
    return name;
  }

  /// `place`: the node's graph, "" or "loop/body/".
  void renameInside(Node &node, const Scope &scope, const std::string &place) {
    bool hasSubgraphs = false;
    for (auto &[name, attribute] : node.attributes) {
      if (attribute.graph) {
        attribute.graph = renamed(*attribute.graph, scope, place + node.name + "/" + name + "/");
        hasSubgraphs = true;
      }
      // The tensor of a Constant is that value, whatever its own name is.
      if (attribute.tensor && node.op == "Constant" && !node.outputs.empty()) {
        auto tensor = std::make_shared<StoredTensor>(*attribute.tensor);
        tensor->name = node.outputs.front();
        attribute.tensor = std::move(tensor);
      }
    }
    if (hasSubgraphs)
      node.captured = capturedNames(node);
  }

  std::shared_ptr<const Subgraph> renamed(const Subgraph &graph, const Scope &around, const std::string &place) {
    auto copy = std::make_shared<Subgraph>(graph);
    Scope scope{&around, {}};
    for (const std::string &name : madeBy(graph))
      scope.names[name] = makers[name] > 1 ? freeName(place + name, taken) : name;
    for (std::vector<ValueInfo> *list : {&copy->inputs, &copy->outputs})
      for (ValueInfo &each : *list)
        each.name = find(scope, each.name);
    for (StoredTensor &tensor : copy->initializers)
      tensor.name = find(scope, tensor.name);
    for (Node &node : copy->nodes) {
      for (std::vector<std::string> *list : {&node.inputs, &node.outputs})
        for (std::string &each : *list)
          each = find(scope, each);
      renameInside(node, scope, place);
      if (!node.name.empty() && nodes[node.name] > 1)
        node.name = freeName(place + node.name, takenByNodes);
    }
    return copy;
  }

  std::map<std::string, int64_t> makers, nodes; ///< how many graphs make a value of that name; how many nodes have it
  std::set<std::string> taken, takenByNodes;
};

} // namespace

std::set<std::string> allNames(const Model &model) {
  std::set<std::string> names = madeBy(model);
  collectInside(model.nodes, names);
  return names;
}

std::vector<const StoredTensor *> storedTensors(const Model &model) {
  std::vector<const StoredTensor *> tensors;
  collectStored(model, tensors);
  return tensors;
}

void separateNames(Model &model) { Separation().run(model); }
void separateNames(Function &function) { Separation().run(function); }

} // namespace hpc::onnx
