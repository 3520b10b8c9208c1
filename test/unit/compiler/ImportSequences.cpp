// Sequences of tensors exist while a model is imported, and a program has their tensors alone; where one is not a list
// that is known then, or is read as a tensor, the model is refused with the place and the way out.
#include "test/unit/compiler/ImportGraphTest.h"

namespace hpc {
namespace {

using namespace onnxwriter;
using Numbers = ImportGraphTest::Numbers;

struct ImportSequences : ImportGraphTest {};

/// Of x [2, 3] as the file's nodes; constants one = 1, two = 2, last = -1, far = 3.
Graph graph(std::vector<std::string> nodes) {
  Graph model;
  model.nodes = std::move(nodes);
  model.initializers = {ints("one", {}, {1}), ints("two", {}, {2}), ints("last", {}, {-1}), ints("far", {}, {3})};
  model.inputs = {value("x", f32, {"2", "3"})};
  model.outputs = {value("y", f32, {})};
  return model;
}
std::string columns(const std::string &split, int64_t axis = 1) {
  return node("SplitToSequence", {"x", split}, {"s"}, {attribute("axis", axis)}, "split");
}
std::string taken(const std::string &position) { return node("SequenceAt", {"s", position}, {"y"}, {}, "take"); }

// PyTorch's exporter without its optimizer writes every chunk() and split() like this; parts are of a size, the last
// may be smaller.
TEST_F(ImportSequences, PartsAreSlices) {
  EXPECT_EQ(run(graph({columns("two"), taken("last")})), Numbers({3, 6}));
  EXPECT_EQ(run(graph({columns("two"), node("Identity", {"s"}, {"t"}), node("SequenceAt", {"t", "one"}, {"y"})})),
            Numbers({3, 6}));
  Expected<OwningOpRef<ModuleOp>> module = import(graph({columns("one"), taken("one")}));
  ASSERT_TRUE(module.ok()) << module.status().text();
  EXPECT_EQ(countOps(**module, "nn.slice"), 1); // of three: the others have no reader
}

// Loops of scripted models collect a sequence round by round and put it together behind them.
TEST_F(ImportSequences, LoopsCollectThem) {
  Graph body;
  body.inputs = {value("i", i64, {}), value("on", onnxwriter::boolean, {}), value("t", f32, {})};
  body.nodes = {node("Gather", {"x", "i"}, {"row"}, {attribute("axis", int64_t(1))}),
                node("SequenceInsert", {"t", "row"}, {"u"})};
  body.outputs = {value("on", onnxwriter::boolean, {}), value("u", f32, {})};
  Graph model = graph(
      {node("SequenceEmpty", {}, {"none"}), node("Loop", {"far", "", "none"}, {"s"}, {attribute("body", body)}, "loop"),
       node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", int64_t(0)), attribute("new_axis", int64_t(1))})});
  EXPECT_EQ(run(model), Numbers({1, 4, 2, 5, 3, 6}));
  body.outputs.push_back(value("u", f32, {}));
  model.nodes[1] = node("Loop", {"far", "", "none"}, {"s", "all"}, {attribute("body", body)}, "loop");
  model.nodes.push_back(node("Identity", {"all"}, {"z"}));
  model.outputs.push_back(value("z", f32, {}));
  refuse(model, ErrorKind::Unsupported,
         "Loop: a scan output that is a sequence of tensors; let the body give it as a state: node 'loop'");
}

// A constant that only a sequence holds is there for what reads the sequence later, also where it was taken out once
// before.
TEST_F(ImportSequences, ConstantsStay) {
  std::string twice = node("Add", {"one", "two"}, {"three"});
  EXPECT_EQ(
      run(graph({twice, node("SequenceConstruct", {"three", "one"}, {"s"}), node("SequenceAt", {"s", "last"}, {"a"}),
                 node("SequenceErase", {"s"}, {"t"}), node("SequenceAt", {"t", "last"}, {"b"}),
                 node("Add", {"a", "b"}, {"four"}), node("SequenceAt", {"s", "last"}, {"c"}),
                 node("Sub", {"four", "c"}, {"three2"}), node("Cast", {"three2"}, {"f"}, {attribute("to", int64_t(1))}),
                 node("Mul", {"x", "f"}, {"y"})})),
      Numbers({3, 6, 9, 12, 15, 18}));
}

// One constant that a branch gives twice, and a reader of one of them.
TEST_F(ImportSequences, ConstantsUnderTwoNamesStay) {
  Graph branch;
  branch.nodes = {node("Add", {"one", "two"}, {"a"}), node("Identity", {"a"}, {"b"})};
  branch.outputs = {value("a", i64, {}), value("b", i64, {})};
  Graph model =
      graph({node("If", {"c"}, {"p", "q"}, {attribute("then_branch", branch), attribute("else_branch", branch)}),
             node("Neg", {"p"}, {"minus"}), node("Add", {"q", "minus"}, {"zero"}),
             node("Cast", {"zero"}, {"f"}, {attribute("to", int64_t(1))}), node("Add", {"x", "f"}, {"y"})});
  model.initializers.push_back(tensor("c", onnxwriter::boolean, {}, std::vector<uint8_t>{1}));
  EXPECT_EQ(run(model), Numbers({1, 2, 3, 4, 5, 6}));
}

// What a list cannot be, each with its place.
TEST_F(ImportSequences, Errors) {
  refuse(graph({columns("two"), taken("two")}), ErrorKind::Model,
         "node 'take' (SequenceAt): position 2 is out of range in a sequence of 2 tensors");
  refuse(graph({columns("last"), taken("one")}), ErrorKind::Model,
         "node 'split' (SplitToSequence): its split must be one size of 1 or more");
  refuse(graph({columns("two"), node("Neg", {"s"}, {"y"}, {}, "negate")}), ErrorKind::Unsupported,
         "Neg: input 0 is a sequence of tensors, and it takes a tensor: node 'negate'");
  refuse(graph({node("SequenceLength", {"x"}, {"y"}, {}, "length")}), ErrorKind::Model,
         "node 'length' (SequenceLength): input 0 is a tensor, and it takes a sequence of them");
  refuse(graph({node("SequenceEmpty", {}, {"s"}), node("SequenceErase", {"s"}, {"t"}, {}, "erase"),
                node("SequenceLength", {"t"}, {"y"})}),
         ErrorKind::Model, "node 'erase' (SequenceErase): nothing can be taken out of an empty sequence");
  refuse(graph({node("SequenceEmpty", {}, {"s"}),
                node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", int64_t(0))}, "join")}),
         ErrorKind::Model, "node 'join' (ConcatFromSequence): nothing to concatenate: its sequence is empty");
  refuse(graph({columns("two"), node("ConcatFromSequence", {"s"}, {"y"},
                                     {attribute("axis", int64_t(0)), attribute("new_axis", int64_t(1))}, "join")}),
         ErrorKind::Model, "its tensors have the shapes 2x2 and 2x1; along a new axis they must be the same");
  refuse(graph({node("SplitToSequence", {"x", "one"}, {"y"})}), ErrorKind::Unsupported,
         "output 'y' is a sequence of 2 tensors; export the model with an output for each");
  Graph byData = graph({columns("two"), taken("where")});
  byData.inputs.push_back(value("where", i64, {}));
  refuse(byData, ErrorKind::Unsupported,
         "SequenceAt: its position depends on the data, not on shapes alone: on input 'where'; bind what decides it with --const "
         "where=FILE: node 'take'");
  Graph branch = graph({columns("two")});
  branch.inputs.clear();
  branch.initializers.clear();
  branch.outputs = {value("s", f32, {})};
  Graph chosen =
      graph({node("If", {"c"}, {"z"}, {attribute("then_branch", branch), attribute("else_branch", branch)}, "choice"),
             node("SequenceAt", {"z", "one"}, {"y"})});
  chosen.inputs.push_back(value("c", onnxwriter::boolean, {}));
  refuse(chosen, ErrorKind::Unsupported,
         "If: branches that give sequences of tensors, and its condition depends on the data");
}

// A small file must not make a list that fills the memory.
TEST_F(ImportSequences, LengthsEnd) {
  Graph model = graph({node("ConstantOfShape", {"long"}, {"zeros"}),
                       node("SplitToSequence", {"zeros", "one"}, {"s"}, {}, "split"), taken("one")});
  model.initializers.push_back(ints("long", {1}, {1'000'000'000}));
  refuse(model, ErrorKind::Unsupported,
         "SplitToSequence: its sequence has 1000000000 tensors; all of a model may have 1000000");
}

} // namespace
} // namespace hpc
