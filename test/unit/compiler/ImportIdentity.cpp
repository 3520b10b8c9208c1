// A tensor is what its scope and node make it, not what it is called: names made again inside subgraphs and functions.
// Right values are worked out by hand.
#include "test/unit/compiler/ImportGraphTest.h"

namespace hpc {
namespace {

using namespace onnxwriter;
using Numbers = ImportGraphTest::Numbers;
using testing::HasSubstr;

std::string boolElement(const std::string &name, uint8_t element) {
  return tensor<uint8_t>(name, onnxwriter::boolean, {}, {element});
}

struct ImportIdentity : ImportGraphTest {
  /// x [2, 3] -> y, with the numbers that loops need.
  static Graph outer(std::vector<std::string> nodes) {
    Graph model;
    model.nodes = std::move(nodes);
    model.initializers = {ints("m", {}, {2}), boolElement("yes", 1)};
    model.inputs = {value("x", f32, {"2", "3"})};
    model.outputs = {value("y", f32, {})};
    return model;
  }
  std::string parametersOf(const Graph &model) {
    auto module = import(model);
    EXPECT_TRUE(module.ok()) << module.status().text();
    return module.ok() ? listParameters(**module) : "";
  }
};

/// s -> op(s, w), with a w of its own.
Graph body(const std::string &op, const std::vector<int64_t> &dims, const std::vector<float> &w) {
  Graph graph;
  graph.inputs = {value("i", i64, {}), value("on", onnxwriter::boolean, {}), value("s", f32, {"2", "3"})};
  graph.nodes = {node(op, {"s", "w"}, {"t"}), node("Identity", {"on"}, {"goes"})};
  graph.initializers = {floats("w", dims, w)};
  graph.outputs = {value("goes", onnxwriter::boolean, {}), value("t", f32, {"2", "3"})};
  return graph;
}
std::string loop(const std::string &name, const std::string &from, const std::string &to, const Graph &body) {
  return node("Loop", {"m", "yes", from}, {to}, {attribute("body", body)}, name);
}

// Two loops of two rounds, each with a w: one weight of both gave the first one's numbers twice. Of another shape, too.
TEST_F(ImportIdentity, SiblingLoops) {
  EXPECT_EQ(run(outer({loop("a", "x", "l", body("Mul", {3}, {10, 10, 11})), loop("b", "l", "y", body("Mul", {3}, {3, 3, 2}))})),
            Numbers({900, 1800, 3 * 484, 3600, 4500, 6 * 484}));
  EXPECT_EQ(run(outer({loop("a", "x", "l", body("Add", {3}, {1, 2, 3})),
                       loop("b", "l", "y", body("MatMul", {3, 3}, {0, 1, 0, 0, 0, 1, 1, 0, 0}))})),
            Numbers({6, 9, 3, 9, 12, 6})); // two rounds of columns turned: (a, b, c) -> (b, c, a)
}

// Parameters have names of their own, by the way to them; a name that nothing else has stays.
TEST_F(ImportIdentity, NamesOfParameters) {
  Graph model = outer({loop("a", "x", "l", body("Mul", {3}, {10, 10, 11})), loop("b", "l", "k", body("Mul", {3}, {3, 3, 2})),
                       node("Add", {"k", "v"}, {"y"})});
  model.initializers.push_back(floats("v", {3}, {1, 2, 3}));
  std::string list = parametersOf(model);
  for (const char *name : {"a/body/w\n", "b/body/w\n", "v\n", "3 parameters"})
    EXPECT_THAT(list, HasSubstr(name));
  model.nodes = {loop("a", "x", "y", body("Mul", {3}, {10, 10, 11}))};
  EXPECT_THAT(parametersOf(model), testing::StartsWith("w\n"));
  // One that is taken gets a number.
  model.nodes.push_back(loop("b", "y", "z", body("Mul", {3}, {3, 3, 2})));
  model.nodes.push_back(node("Mul", {"z", "b/body/w"}, {"q"}));
  model.outputs = {value("q", f32, {})};
  model.initializers.push_back(floats("b/body/w", {3}, {1, 2, 4}));
  list = parametersOf(model);
  for (const char *name : {"a/body/w\n", "b/body/w\n", "b/body/w_2\n", "3 parameters"})
    EXPECT_THAT(list, HasSubstr(name));
}

Graph branch(const std::vector<float> &w) {
  Graph graph;
  graph.nodes = {node("Mul", {"x", "w"}, {"made"})};
  graph.initializers = {floats("w", {3}, w)};
  graph.outputs = {value("made", f32, {})};
  return graph;
}
std::string choiceNode(const Graph &onTrue, const Graph &onFalse) {
  return node("If", {"c"}, {"z"}, {attribute("then_branch", onTrue), attribute("else_branch", onFalse)}, "choice");
}

// Either branch has a w, and so has the graph around them; the condition known and not.
TEST_F(ImportIdentity, Branches) {
  Graph model = outer({choiceNode(branch({2, 3, 4}), branch({7, 8, 9})), node("Add", {"z", "w"}, {"y"})});
  model.initializers = {floats("w", {3}, {100, 200, 300})};
  Graph known = model, byData = model;
  byData.inputs.push_back(value("c", onnxwriter::boolean, {}));
  for (uint8_t taken : {0, 1}) {
    Numbers right = taken ? Numbers({102, 206, 312, 108, 215, 324}) : Numbers({107, 216, 327, 128, 240, 354});
    known.initializers = {model.initializers[0], boolElement("c", taken)};
    EXPECT_EQ(run(known), right);
    Tensor condition(DType::Bool, {});
    condition.ints[0] = taken;
    EXPECT_EQ(run(byData, {{"c", tensorToArray(condition)}}), right);
  }
}

// A name inside hides one outside as long as the subgraph lasts, wherever the outer one is read first.
TEST_F(ImportIdentity, Shadows) {
  for (bool before : {true, false}) {
    Graph model = outer({before ? node("Mul", {"x", "w"}, {"x2"}) : node("Identity", {"x"}, {"x2"}),
                         loop("a", "x2", "l", body("Mul", {3}, {10, 10, 11})), node("Mul", {"l", "w"}, {"y"})});
    model.initializers.push_back(floats("w", {3}, {3, 3, 2}));
    EXPECT_EQ(run(model), before ? Numbers({900, 1800, 3 * 484, 3600, 4500, 6 * 484})
                                 : Numbers({300, 600, 3 * 242, 1200, 1500, 6 * 242}));
  }
  // An input of the body that is called as one of the model, which is read behind it.
  Graph named = body("Mul", {3}, {10, 10, 11});
  named.inputs[2] = value("x", f32, {"2", "3"});
  named.nodes[0] = node("Mul", {"x", "w"}, {"t"});
  EXPECT_EQ(run(outer({loop("a", "x", "l", named), node("Sub", {"l", "x"}, {"y"})})),
            Numbers({99, 198, 360, 396, 495, 720}));
}

// Scans, and a body's initializer that is also listed as its input, as IR version 3 does.
TEST_F(ImportIdentity, Scans) {
  auto scan = [&](const std::string &name, const std::string &to, std::vector<float> w, bool isListed) {
    Graph graph;
    graph.inputs = {value("row", f32, {"3"})};
    if (isListed)
      graph.inputs.push_back(value("w", f32, {"3"}));
    graph.nodes = {node("Mul", {"row", "w"}, {"part"})};
    graph.initializers = {floats("w", {3}, w)};
    graph.outputs = {value("part", f32, {"3"})};
    return node("Scan", {"x"}, {to}, {attribute("body", graph), attribute("num_scan_inputs", int64_t(1))}, name);
  };
  for (bool isListed : {false, true})
    EXPECT_EQ(run(outer({scan("a", "p", {1, 2, 3}, isListed), scan("b", "q", {5, 5, 6}, isListed), node("Sub", {"q", "p"}, {"y"})})),
              Numbers({4, 6, 9, 16, 15, 18}));
}

// The tensor of a Constant is that node's value, though exporters call all of them "value", or nothing.
TEST_F(ImportIdentity, LargeConstants) {
  constexpr int64_t columns = 30'000; // beyond what folds
  for (const std::string &name : {"", "value"}) {
    std::vector<float> first(3 * columns, 1), second(3 * columns, 3);
    first[0] = 2; // filled ones are kept apart
    second[0] = 5;
    auto constant = [&](const std::string &to, const std::vector<float> &numbers) {
      return node("Constant", {}, {to}, {bytes(1, "value") + bytes(5, floats(name, {3, columns}, numbers)) + number(20, 4)});
    };
    Graph model = outer({constant("a", first), constant("b", second), node("MatMul", {"x", "a"}, {"p"}),
                         node("MatMul", {"x", "b"}, {"q"}), node("Sub", {"q", "p"}, {"d"}),
                         node("Slice", {"d", "zero", "two", "one"}, {"y"})});
    model.initializers = {ints("zero", {1}, {0}), ints("two", {1}, {2}), ints("one", {1}, {1})};
    EXPECT_EQ(run(model), Numbers({13, 12, 34, 30}));
    EXPECT_THAT(parametersOf(model), testing::AllOf(testing::StartsWith("a\n"), HasSubstr("\nb\n")));
  }
}

std::string function(const std::string &name, const std::vector<std::string> &inputs, const std::vector<std::string> &nodes) {
  std::string proto = bytes(1, name);
  for (const std::string &each : inputs)
    proto += bytes(4, each);
  proto += bytes(5, "out");
  for (const std::string &each : nodes)
    proto += bytes(7, each);
  return proto + bytes(9, bytes(1, "") + number(2, 18)) + bytes(9, bytes(1, "local") + number(2, 1)) + bytes(10, "local");
}
std::string constant(const std::string &to, const std::string &tensor) {
  return node("Constant", {}, {to}, {bytes(1, "value") + bytes(5, tensor) + number(20, 4)});
}

// A function's inner name is the function's, whatever the model calls so, and however often it is called.
TEST_F(ImportIdentity, Functions) {
  Graph model = outer({node("F", {"x"}, {"a"}, {}, "n", "local"), node("F", {"a"}, {"b"}, {}, "n", "local"),
                       node("Mul", {"b", "n/w"}, {"y"})});
  model.initializers.push_back(floats("n/w", {3}, {5, 6, 7}));
  model.functions = {function("F", {"v"}, {constant("w", floats("", {3}, {10, 20, 30})), node("Add", {"v", "w"}, {"s"}),
                                           node("G", {"s"}, {"out"}, {}, "g", "local")}),
                     function("G", {"v"}, {constant("w", floats("", {3}, {1, 1, 2})), node("Sub", {"v", "w"}, {"out"})})};
  EXPECT_EQ(run(model), Numbers({95, 240, 413, 110, 258, 434})); // (x + 2 * (9, 19, 28)) * (5, 6, 7)
}

// Two inputs of a function may be one value of the caller; a branch inside hides the name of one of them.
TEST_F(ImportIdentity, FunctionsWithShadows) {
  Graph onTrue, onFalse;
  onTrue.nodes = {node("Mul", {"p", "q"}, {"o"})};
  onTrue.initializers = {floats("p", {3}, {5, 5, 6})};
  onTrue.outputs = {value("o", f32, {})};
  onFalse.nodes = {node("Mul", {"p", "q"}, {"o"})};
  onFalse.outputs = {value("o", f32, {})};
  Graph model = outer({node("F", {"x", "x"}, {"y"}, {}, "n", "local")});
  for (uint8_t taken : {1, 0}) {
    model.functions = {function("F", {"p", "q"}, {constant("c", boolElement("", taken)),
                                                  node("If", {"c"}, {"out"}, {attribute("then_branch", onTrue), attribute("else_branch", onFalse)})})};
    EXPECT_EQ(run(model), taken ? Numbers({5, 10, 18, 20, 25, 36}) : Numbers({1, 4, 9, 16, 25, 36}));
  }
}

// A loop in a function, called twice, with a branch in it: values are those of ((x + w) * v, per round) by hand.
TEST_F(ImportIdentity, LoopsInFunctions) {
  Graph onTrue = branch({2, 2, 3}), onFalse = branch({1, 0, 1}), inner;
  onTrue.nodes = {node("Mul", {"u", "w"}, {"made"})};
  onFalse.nodes = {node("Mul", {"u", "w"}, {"made"})};
  inner.inputs = {value("i", i64, {}), value("on", onnxwriter::boolean, {}), value("s", f32, {"2", "3"})};
  inner.nodes = {node("Add", {"s", "w"}, {"u"}), node("Identity", {"on"}, {"goes"}), node("Equal", {"i", "first"}, {"c"}),
                 node("If", {"c"}, {"t"}, {attribute("then_branch", onTrue), attribute("else_branch", onFalse)})};
  inner.initializers = {floats("w", {3}, {1, 2, 3}), ints("first", {}, {0})};
  inner.outputs = {value("goes", onnxwriter::boolean, {}), value("t", f32, {"2", "3"})};
  Graph model = outer({node("F", {"x"}, {"a"}, {}, "", "local"), node("F", {"a"}, {"y"}, {}, "", "local")});
  model.functions = {function("F", {"v"}, {constant("m", ints("", {}, {2})), constant("yes", boolElement("", 1)),
                                           loop("turns", "v", "out", inner)})};
  // Round 0: (s + w) * (2, 2, 3), round 1: (s + w) * (1, 0, 1).
  auto turns = [](double s, int column) {
    const double w[] = {1, 2, 3}, first[] = {2, 2, 3}, second[] = {1, 0, 1};
    return ((s + w[column]) * first[column] + w[column]) * second[column];
  };
  Numbers right;
  for (int i = 0; i < 6; ++i)
    right.push_back(turns(turns(i + 1, i % 3), i % 3));
  EXPECT_EQ(run(model), right);
}

// Two of one name in one graph are no shadow but a mistake; sparse ones are refused inside as well as outside.
TEST_F(ImportIdentity, Errors) {
  Graph twice = body("Mul", {3}, {1, 2, 3});
  twice.initializers.push_back(floats("w", {3}, {4, 5, 6}));
  refuse(outer({loop("a", "x", "y", twice)}), ErrorKind::Model, "two initializers are named 'w'");
}

} // namespace
} // namespace hpc
