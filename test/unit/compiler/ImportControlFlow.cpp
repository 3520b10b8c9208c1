// Branches and loops become straight programs, inputs bound at compile time become constants; and what neither can do
// is refused with the place and the reason.
#include "test/unit/compiler/ImportGraphTest.h"

namespace hpc {
namespace {

using namespace onnxwriter;
using Numbers = ImportGraphTest::Numbers;

std::string boolTensor(const std::string &name, const std::vector<int64_t> &dims, const std::vector<uint8_t> &elements) {
  return tensor(name, onnxwriter::boolean, dims, elements);
}

struct ImportControlFlow : ImportGraphTest {};

Graph outer(std::vector<std::string> nodes, std::vector<std::string> initializers = {}) {
  Graph model;
  model.nodes = std::move(nodes);
  model.initializers = std::move(initializers);
  model.inputs = {value("x", f32, {"2", "3"})};
  model.outputs = {value("y", f32, {})};
  return model;
}

/// A branch of one op on what is around it.
Graph branch(const std::string &op, const std::vector<std::string> &reads) {
  Graph graph;
  graph.nodes = {node(op, reads, {"made"}, {}, op)};
  graph.outputs = {value("made", f32, {})};
  return graph;
}
std::string ifNode(const Graph &onTrue, const Graph &onFalse) {
  return node("If", {"c"}, {"y"}, {attribute("then_branch", onTrue), attribute("else_branch", onFalse)}, "choice");
}

// The branch that is not taken leaves no trace, even where no one could import it.
TEST_F(ImportControlFlow, KnownBranchesAreInlined) {
  Graph model = outer({ifNode(branch("Neg", {"x"}), branch("NoSuchOp", {"x"}))}, {boolTensor("c", {}, {1})});
  EXPECT_EQ(run(model), Numbers({-1, -2, -3, -4, -5, -6}));
  model.initializers = {boolTensor("c", {}, {0})};
  refuse(model, ErrorKind::Unsupported, "NoSuchOp: no such op in opset 18: node 'NoSuchOp'");
}

// A condition that is data: both are computed, one is taken.
TEST_F(ImportControlFlow, UnknownConditionsSelect) {
  Graph model = outer({ifNode(branch("Neg", {"x"}), branch("Abs", {"x"}))});
  model.inputs.push_back(value("c", onnxwriter::boolean, {}));
  Tensor condition(DType::Bool, {});
  EXPECT_EQ(run(model, {{"c", tensorToArray(condition)}}), Numbers({1, 2, 3, 4, 5, 6}));
  condition.ints[0] = 1;
  EXPECT_EQ(run(model, {{"c", tensorToArray(condition)}}), Numbers({-1, -2, -3, -4, -5, -6}));
  Graph flat = branch("Flatten", {"x"});
  flat.nodes = {node("Flatten", {"x"}, {"made"}, {attribute("axis", int64_t(0))}, "f")};
  model.nodes = {ifNode(branch("Neg", {"x"}), flat)};
  refuse(model, ErrorKind::Unsupported, "branches of different shapes, and its condition depends on the data, not on shapes alone: on input 'c'; bind what "
         "decides it with --const c=FILE");
}

/// s, i -> s + x, and s of each round; goes on while i < `last`.
Graph body(int64_t last) {
  Graph graph;
  graph.inputs = {value("i", i64, {}), value("on", onnxwriter::boolean, {}), value("s", f32, {"2", "3"})};
  graph.nodes = {node("Add", {"s", "x"}, {"t"}), node("Less", {"i", "last"}, {"goes"}),
                 node("ReduceMax", {"t"}, {"part"}, {attribute("keepdims", int64_t(0))})};
  graph.initializers = {ints("last", {}, {last})};
  graph.outputs = {value("goes", onnxwriter::boolean, {}), value("t", f32, {"2", "3"}), value("part", f32, {})};
  return graph;
}
std::string loopNode(const std::string &rounds, const Graph &body) {
  return node("Loop", {rounds, "", "x"}, {"y", "parts"}, {attribute("body", body)}, "loop");
}

// Rounds end by their number or by a condition that follows from it; names inside are those of one round.
TEST_F(ImportControlFlow, LoopsAreUnrolled) {
  Graph model = outer({loopNode("m", body(100))}, {ints("m", {}, {3})});
  EXPECT_EQ(run(model), Numbers({4, 8, 12, 16, 20, 24}));
  model.initializers = {ints("m", {}, {100})};
  model.nodes = {loopNode("m", body(1))}; // rounds 0 and 1
  EXPECT_EQ(run(model), Numbers({3, 6, 9, 12, 15, 18}));
  model.outputs = {value("parts", f32, {})};
  EXPECT_EQ(run(model), Numbers({12, 18}));
  model.initializers = {ints("m", {}, {0})};
  EXPECT_EQ(run(model), Numbers());
}

// What would never end, or nobody knows the end of.
TEST_F(ImportControlFlow, LoopsWithoutEnd) {
  Graph empty; // hands on what it gets, round after round
  empty.inputs = {value("i", i64, {}), value("on", onnxwriter::boolean, {}), value("s", f32, {"2", "3"})};
  empty.outputs = {value("on", onnxwriter::boolean, {}), value("s", f32, {"2", "3"})};
  refuse(outer({loopNode("m", empty)}, {ints("m", {}, {1'000'000'000'000})}), ErrorKind::Unsupported,
         "its loops unroll to more than 100000 nodes");
  Graph endless = body(0);
  endless.initializers = {ints("last", {}, {std::numeric_limits<int64_t>::max()})};
  refuse(outer({loopNode("", endless)}), ErrorKind::Unsupported, "its loops unroll to more than 100000 nodes");
  Graph model = outer({loopNode("m", body(1))});
  model.inputs.push_back(value("m", i64, {}));
  refuse(model, ErrorKind::Unsupported,
         "Loop: its number of rounds depends on the data, not on shapes alone: on input 'm'; bind what decides it with "
         "--const m=FILE: node 'loop'");
  Graph byData = body(1);
  byData.nodes[1] = node("Less", {"part", "limit"}, {"goes"});
  byData.initializers = {floats("limit", {}, {10})};
  refuse(outer({loopNode("", byData)}), ErrorKind::Unsupported, "its condition depends on the data, not on shapes alone: on input 'x'");
}

// A branch that cannot be computed is the condition's fault, which --const may take away.
TEST_F(ImportControlFlow, BranchesThatCannotBe) {
  Graph model = outer({node("Not", {"c"}, {"d"}), ifNode(branch("Neg", {"x"}), branch("NonZero", {"x"}))});
  model.nodes[1] = node("If", {"d"}, {"y"},
                        {attribute("then_branch", branch("Neg", {"x"})), attribute("else_branch", branch("NonZero", {"x"}))}, "choice");
  model.inputs.push_back(value("c", onnxwriter::boolean, {}));
  refuse(model, ErrorKind::Unsupported,
         "If: its else_branch cannot be computed, and its condition depends on the data, not on shapes alone: on input 'c'; "
         "bind what decides it with --const c=FILE: node 'NonZero' (NonZero): how many elements it gives depends on the data");
  refuse(model, ErrorKind::Unsupported, ": node 'choice'");
}

/// Two scan outputs of a body, one of them declared as `dims`; s is [3] of the model's [d].
Graph noRounds(const std::vector<std::string> &dims, bool isDeclared) {
  Graph body;
  body.inputs = {value("i", i64, {}), value("on", onnxwriter::boolean, {}), value("s", f32, {"d"})};
  body.nodes = {node("Identity", {"on"}, {"goes"}), node("Identity", {"s"}, {"t"}), node("Concat", {"s", "s"}, {"p"}, {attribute("axis", int64_t(0))}),
                node("Unsqueeze", {"s", "axes"}, {"q"})};
  body.initializers = {ints("axes", {1}, {0})};
  body.outputs = {value("goes", onnxwriter::boolean, {}), value("t", f32, {"d"}), isDeclared ? value("p", f32, dims) : bytes(1, "p"), bytes(1, "q")};
  Graph model;
  model.inputs = {value("s", f32, {"d"})};
  model.nodes = {node("Loop", {"m", "", "s"}, {"last", "ps", "qs"}, {attribute("body", body)}, "loop")};
  model.initializers = {ints("m", {}, {0})};
  model.outputs = {value("ps", f32, {}), value("qs", f32, {})};
  return model;
}

// After no round scan outputs have no elements, but the shape that a round would have given, declared or not.
TEST_F(ImportControlFlow, NoRounds) {
  options.dims = {{"d", 3}};
  auto shapes = [&](const Graph &model) {
    auto module = import(model);
    EXPECT_TRUE(module.ok()) << module.status().text();
    std::vector<std::vector<int64_t>> shapes;
    if (module.ok())
      for (Type type : mainOf(**module).getResultTypes())
        shapes.push_back(cast<RankedTensorType>(type).getShape().vec());
    return shapes;
  };
  using Shapes = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(shapes(noRounds({}, false)), Shapes({{0, 6}, {0, 1, 3}}));
  EXPECT_EQ(shapes(noRounds({"e"}, true)), Shapes({{0, 6}, {0, 1, 3}}));
  EXPECT_EQ(shapes(noRounds({"2*d"}, true)), Shapes({{0, 6}, {0, 1, 3}}));
  // A scan of nothing, whose parts are stacked along the last axis.
  Graph body;
  body.inputs = {value("s", f32, {"3"}), value("row", f32, {"2"})};
  body.nodes = {node("Identity", {"s"}, {"t"}), node("Concat", {"row", "s"}, {"p"}, {attribute("axis", int64_t(0))}), node("Shape", {"row"}, {"q"})};
  body.outputs = {value("t", f32, {"3"}), bytes(1, "p"), bytes(1, "q")};
  Graph model;
  model.inputs = {value("s", f32, {"3"}), value("rows", f32, {"0", "2"})};
  model.nodes = {node("Scan", {"s", "rows"}, {"last", "ps", "qs"},
                      {attribute("body", body), attribute("num_scan_inputs", int64_t(1)), attribute("scan_output_axes", std::vector<int64_t>{-1, 0})}, "scan")};
  model.outputs = {value("last", f32, {"3"}), value("ps", f32, {}), value("qs", i64, {})};
  options.dims.clear();
  EXPECT_EQ(shapes(model), Shapes({{3}, {5, 0}, {0, 1}}));
  // A round that cannot be computed says nothing; then the declared symbol does, or an error.
  body.nodes[1] = node("NonZero", {"row"}, {"p"});
  model.nodes[0] = node("Scan", {"s", "rows"}, {"last", "ps", "qs"}, {attribute("body", body), attribute("num_scan_inputs", int64_t(1))}, "scan");
  refuse(model, ErrorKind::Unsupported, "Scan: no rounds, and an output 'p' whose shape the body does not declare, nor can a round be computed: node 'p' (NonZero)");
}

// A body reads the graphs around it, not their later values and not names that nothing makes.
TEST_F(ImportControlFlow, CapturedNames) {
  refuse(outer({ifNode(branch("Neg", {"nowhere"}), branch("Abs", {"x"}))}, {boolTensor("c", {}, {1})}), ErrorKind::Model,
         "node 'choice' reads 'nowhere', which nothing makes");
  // The node that makes what the branch captures stands behind it in the file.
  Graph model = outer({ifNode(branch("Neg", {"z"}), branch("Abs", {"z"})), node("Add", {"x", "x"}, {"z"})},
                      {boolTensor("c", {}, {1})});
  EXPECT_EQ(run(model), Numbers({-2, -4, -6, -8, -10, -12}));
}

// Sums down the rows, rows scanned from the last.
TEST_F(ImportControlFlow, Scans) {
  Graph sum;
  sum.inputs = {value("s", f32, {"3"}), value("row", f32, {"3"})};
  sum.nodes = {node("Add", {"s", "row"}, {"t"}), node("Identity", {"t"}, {"u"})};
  sum.outputs = {value("t", f32, {"3"}), value("u", f32, {"3"})};
  auto scan = [&](std::vector<std::string> attributes) {
    attributes.push_back(attribute("body", sum));
    attributes.push_back(attribute("num_scan_inputs", int64_t(1)));
    return outer({node("Scan", {"zero", "x"}, {"last", "y"}, attributes, "scan")}, {floats("zero", {3}, {0, 0, 0})});
  };
  EXPECT_EQ(run(scan({})), Numbers({1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(run(scan({attribute("scan_input_directions", std::vector<int64_t>{1})})), Numbers({4, 5, 6, 5, 7, 9}));
  EXPECT_EQ(run(scan({attribute("scan_output_axes", std::vector<int64_t>{-1})})), Numbers({1, 5, 2, 7, 3, 9}));
  refuse(scan({attribute("scan_input_axes", std::vector<int64_t>{2})}), ErrorKind::Model,
         "axis 2 is out of range for rank 2");
}

// A function's body may hold a branch: its names become the caller's as well.
TEST_F(ImportControlFlow, BranchesInsideFunctions) {
  Graph model = outer({node("F", {"x"}, {"y"}, {}, "call", "local")}, {boolTensor("c", {}, {1})});
  std::string chosen =
      node("If", {"b"}, {"out"},
           {attribute("then_branch", branch("Neg", {"a"})), attribute("else_branch", branch("Abs", {"a"}))});
  std::string condition =
      node("Constant", {}, {"b"}, {bytes(1, "value") + bytes(5, boolTensor("", {}, {1})) + number(20, 4)});
  model.functions = {bytes(1, "F") + bytes(4, "a") + bytes(5, "out") + bytes(7, condition) + bytes(7, chosen) +
                     bytes(9, bytes(1, "") + number(2, 18)) + bytes(10, "local")};
  EXPECT_EQ(run(model), Numbers({-1, -2, -3, -4, -5, -6}));
}

// ---- --const ------------------------------------------------------------------------------------

struct BoundInputs : ImportControlFlow {
  Graph reshaped() {
    Graph model = outer({node("Reshape", {"x", "s"}, {"y"})});
    model.inputs.push_back(value("s", i64, {"n"}));
    return model;
  }
  std::string npy(const std::string &name, std::vector<int64_t> elements) {
    Tensor tensor(DType::I64, {int64_t(elements.size())});
    tensor.ints = std::move(elements);
    EXPECT_TRUE(writeNpy(folder.file(name), tensorToArray(tensor)).ok());
    return folder.file(name);
  }
};

// A shape that is an input decides nothing unless it is bound; bound, it is no input any more. All three kinds of file.
TEST_F(BoundInputs, DecideShapes) {
  options.dims = {{"n", 2}};
  refuse(reshaped(), ErrorKind::Unsupported, "its shape depends on the data");
  options.dims.clear();
  std::string content = number(1, 2) + number(2, i64) + bytes(9, raw<int64_t>({3, 2}));
  ASSERT_TRUE(writeFile(folder.file("s.pb"), content).ok());
  Tensor shape(DType::I64, {2});
  shape.ints = {3, 2};
  ASSERT_TRUE(writeNpz(folder.file("s.npz"), {{"other", tensorToArray(shape)}, {"s", tensorToArray(shape)}}).ok());
  for (const std::string &file : {npy("s.npy", {3, 2}), folder.file("s.pb"), folder.file("s.npz")}) {
    options.constants = {{"s", file}};
    Expected<OwningOpRef<ModuleOp>> module = import(reshaped());
    ASSERT_TRUE(module.ok()) << module.status().text();
    EXPECT_EQ(mainOf(**module).getNumArguments(), 1u);
    EXPECT_EQ(nn::shapeOf(mainOf(**module).getBody().front().getTerminator()->getOperand(0)),
              ArrayRef<int64_t>({3, 2}));
  }
}

TEST_F(BoundInputs, Errors) {
  auto fails = [&](const std::string &name, const std::string &file, ErrorKind kind, const std::string &text) {
    options.constants = {{name, file}};
    refuse(reshaped(), kind, text);
  };
  std::string good = npy("s.npy", {3, 2});
  fails("t", good, ErrorKind::Usage, "names no input of the model; it has x, s");
  fails("x", good, ErrorKind::Usage, "holds i64 2, but the input is f32 2x3");
  fails("s", folder.file("none.npy"), ErrorKind::Io, "none.npy");
  fails("s", folder.file("m.onnx"), ErrorKind::Usage, "a constant is read from a .npy, .npz or .pb file");
  ASSERT_TRUE(writeFile(folder.file("cut.pb"), std::string("\x08\x02\x10\x07\x4a\x7f", 6)).ok());
  fails("s", folder.file("cut.pb"), ErrorKind::Model, "not a tensor, or cut off");
  options.dims = {{"n", 5}};
  fails("s", good, ErrorKind::Usage, "makes n 2, but it is 5 elsewhere");
}

// A bound float is a constant, not a weight: nothing is left of it where it decides a size.
TEST_F(BoundInputs, FloatsAreKnown) {
  Graph model = outer({node("Cast", {"f"}, {"s"}, {attribute("to", int64_t(7))}), node("Reshape", {"x", "s"}, {"y"})});
  model.inputs.push_back(value("f", f32, {"2"}));
  Tensor shape(DType::F32, {2});
  shape.floats = {6, 1};
  ASSERT_TRUE(writeNpy(folder.file("f.npy"), tensorToArray(shape)).ok());
  options.constants = {{"f", folder.file("f.npy")}};
  EXPECT_EQ(run(model), Numbers({1, 2, 3, 4, 5, 6}));
}

} // namespace
} // namespace hpc
