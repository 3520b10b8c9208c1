// Oddities of graphs that are right, weights, functions, and the forms that folded constants take.
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Import/Folding.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Import/OnnxModel.h"
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "compiler/Import/SymbolicDims.h"
#include "runtime/base/File.h"

namespace hpc {
namespace {

using namespace onnxwriter;

class ImportGraphs : public testing::Test {
protected:
  OwningOpRef<ModuleOp> import(const Graph &graph) {
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), graph.model()).ok());
    auto module = importOnnx(folder.file("m.onnx"), {}, &context);
    if (module.ok())
      return std::move(*module);
    ADD_FAILURE() << module.status().text();
    return {};
  }
  std::vector<double> run(ModuleOp module, std::vector<float> x = {1, 2, 3, 4, 5, 6}) {
    Array array = Array::zeros(DType::F32, {2, 3});
    std::copy(x.begin(), x.end(), array.as<float>());
    auto results = runImported(module, {{"x", array}}, false);
    if (results.ok())
      return results->front().isFloat()
                 ? results->front().floats
                 : std::vector<double>(results->front().ints.begin(), results->front().ints.end());
    ADD_FAILURE() << results.status().text();
    return {};
  }
  static Graph graph(std::vector<std::string> nodes, int type = f32) {
    Graph result;
    result.nodes = std::move(nodes);
    result.inputs = {value("x", f32, {"2", "3"})};
    result.outputs = {value("y", type, {})};
    return result;
  }
  TemporaryFolder folder;
  MLIRContext context;
};

using Numbers = std::vector<double>;

/// One value under two names is two outputs; one name listed twice is one array.
TEST_F(ImportGraphs, OutputsMayBeInputsOrConstantsOrTwice) {
  Graph model = graph({node("Shape", {"x"}, {"s"}), node("Neg", {"x"}, {"n"}), node("Identity", {"n"}, {"m"})});
  model.outputs = {value("x", f32, {}), value("s", i64, {}), value("n", f32, {}), value("n", f32, {}),
                   value("m", f32, {})};
  auto module = import(model);
  ASSERT_TRUE(module);
  auto results = runImported(*module, {{"x", Array::zeros(DType::F32, {2, 3})}}, false);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ((*results)[1].ints, std::vector<int64_t>({2, 3}));
  EXPECT_EQ(results->size(), 4u);
}

TEST_F(ImportGraphs, NodesInAnyOrderAndUnusedOnes) {
  Graph model = graph({node("Neg", {"a"}, {"y"}), node("Nonsense", {"x"}, {"dead"}), node("Abs", {"x"}, {"a"})});
  model.initializers = {floats("unused", {2}, {1, 2})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module), Numbers({-1, -2, -3, -4, -5, -6}));
  EXPECT_EQ(countOps(*module, "nn.parameter"), 0);
}

/// Before IR version 4 weights are listed among the inputs.
TEST_F(ImportGraphs, InitializersThatAreInputs) {
  Graph model = graph({node("Add", {"x", "w"}, {"y"})});
  model.inputs.push_back(value("w", f32, {"3"}));
  model.initializers = {floats("w", {3}, {10, 20, 30})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(mainOf(*module).getNumArguments(), 1u);
  EXPECT_EQ(run(*module), Numbers({11, 22, 33, 14, 25, 36}));
}

/// Floats in float_data instead of raw_data: one packed run can be mapped, single values cannot.
TEST_F(ImportGraphs, FloatData) {
  Graph model = graph({node("Add", {"x", "w"}, {"y"})});
  model.initializers = {tensorHead("w", f32, {3}) + bytes(4, raw<float>({10, 20, 30}))};
  auto packed = import(model);
  ASSERT_TRUE(packed);
  EXPECT_EQ(run(*packed), Numbers({11, 22, 33, 14, 25, 36}));
  packed->walk([](nn::ParameterOp op) { EXPECT_FALSE(op.getFile().empty()); });
  auto single = [](float value) { return varint(4 << 3 | 5) + raw<float>({value}); };
  model.initializers = {tensorHead("w", f32, {3}) + single(10) + single(20) + single(30)};
  auto scattered = import(model);
  ASSERT_TRUE(scattered);
  EXPECT_EQ(run(*scattered), Numbers({11, 22, 33, 14, 25, 36}));
  scattered->walk([](nn::ParameterOp op) { EXPECT_TRUE(op.getFile().empty()); });
}

/// The same weight stored twice is one parameter; zeros stored twice are two.
TEST_F(ImportGraphs, TiedWeights) {
  Graph model = graph({node("Add", {"x", "w"}, {"a"}), node("Mul", {"a", "v"}, {"b"}), node("Add", {"b", "z"}, {"c"}),
                       node("Add", {"c", "o"}, {"y"})});
  model.initializers = {floats("w", {3}, {1, 2, 3}), floats("v", {3}, {1, 2, 3}), floats("z", {3}, {0, 0, 0}),
                        floats("o", {3}, {0, 0, 0})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.parameter"), 3);
  module->walk([&](nn::ParameterOp op) {
    if (op.getName() == "w") {
      ASSERT_TRUE(op.getAliases());
      EXPECT_EQ((*op.getAliases())[0], StringAttr::get(&context, "v"));
    }
  });
  EXPECT_EQ(run(*module), Numbers({2, 8, 18, 5, 14, 27}));
}

/// Parameters that begin alike are trained apart: PyTorch's exporter writes one that is used twice once. What its
/// optimizer makes of one of them counts as that one; of what it says nothing equal content stays a tie.
TEST_F(ImportGraphs, EqualParametersAreNotTied) {
  Graph model = graph({node("Mul", {"x", "w"}, {"a"}), node("Mul", {"a", "v"}, {"b"}), node("Mul", {"b", "f"}, {"c"}),
                       node("Mul", {"c", "g"}, {"d"}), node("Mul", {"d", "u"}, {"y"})});
  const std::string key = "pkg.onnxscript.optimizer.folded_from";
  for (const char *name : {"w", "v", "f", "g", "u"})
    model.initializers.push_back(floats(name, {3}, {1, 2, 3}));
  auto kept = [&](const std::vector<std::string> &values) {
    model.values = values;
    auto module = import(model);
    std::vector<std::string> names;
    if (module)
      module->walk([&](nn::ParameterOp op) { names.push_back(op.getName().str()); });
    return names;
  };
  std::string f = saidOf("f", key, "['v']"), g = saidOf("g", key, "['gone']");
  EXPECT_EQ(kept({kindOf("w", "PARAMETER"), kindOf("v", "PARAMETER"), f, g}),
            (std::vector<std::string>{"w", "v", "g"}));
  EXPECT_EQ(kept({kindOf("w", "PARAMETER")}), std::vector<std::string>{"w"});
}

/// What the exporter calls a buffer, no optimizer may move, nor what is equal to it be tied to it; what it calls a
/// parameter is one whatever its size.
TEST_F(ImportGraphs, KindsOfWeights) {
  Graph model = graph({node("Add", {"x", "w"}, {"a"}), node("Mul", {"a", "b"}, {"c"}), node("Mul", {"c", "k"}, {"d"}),
                       node("Add", {"d", "p"}, {"e"}), node("Mul", {"e", "s"}, {"f"}), node("Add", {"f", "o"}, {"g"}),
                       node("Mul", {"g", "u"}, {"y"})});
  model.initializers = {floats("w", {3}, {1, 2, 3}), floats("b", {3}, {1, 2, 3}), floats("k", {3}, {2, 3, 4}),
                        floats("p", {3}, {5, 6, 7}), floats("s", {}, {2}),        floats("o", {1}, {3}),
                        floats("u", {1}, {4})};
  model.values = {kindOf("b", "BUFFER"), kindOf("k", "CONSTANT_TENSOR"), kindOf("p", "PARAMETER"),
                  kindOf("s", "PARAMETER"), kindOf("o", "PARAMETER")};
  auto module = import(model);
  ASSERT_TRUE(module);
  std::map<std::string, bool> isStatistic;
  module->walk([&](nn::ParameterOp op) { isStatistic[op.getName().str()] = op.getIsStatistic(); });
  EXPECT_EQ(isStatistic, (std::map<std::string, bool>{
                             {"w", false}, {"b", true}, {"k", true}, {"p", false}, {"s", false}, {"o", false}}));
}

/// Training asks what the exporter has computed from several values; from one it is that one, transposed.
TEST_F(ImportGraphs, WeightsThatTheExporterComputed) {
  Graph model = graph({node("Add", {"x", "t"}, {"a"}), node("Mul", {"a", "w"}, {"b"}), node("Mul", {"b", "o"}, {"y"})});
  model.initializers = {floats("t", {3}, {1, 2, 3}), floats("w", {3}, {2, 3, 4}), floats("o", {3}, {5, 6, 7})};
  const std::string key = "pkg.onnxscript.optimizer.folded_from";
  model.values = {saidOf("t", key, "['cos', 'rotary.inv_freq']"), saidOf("w", key, "['w.weight']"),
                  saidOf("o", key, "['cut', 'short")};
  auto module = import(model);
  ASSERT_TRUE(module);
  std::map<std::string, std::string> madeOf;
  module->walk([&](nn::ParameterOp op) {
    for (const std::string &name : nn::namesIn(op.getMadeOf()))
      madeOf[op.getName().str()] += name + " ";
  });
  EXPECT_EQ(madeOf, (std::map<std::string, std::string>{{"t", "cos rotary.inv_freq "}}));
}

/// A bias inside a partial contraction would count once per rank, so Gemm comes apart: product, scale, sum.
TEST_F(ImportGraphs, GemmComesApart) {
  Graph model = graph({node(
      "Gemm", {"x", "w", "b"}, {"y"},
      {attribute("transB", int64_t(1)), bytes(1, "alpha") + varint(2 << 3 | 5) + raw<float>({2}) + number(20, 1)})});
  model.initializers = {floats("w", {2, 3}, {1, 0, 0, 0, 1, 0}), floats("b", {2}, {10, 20})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.matmul"), 1);
  EXPECT_EQ(countOps(*module, "nn.mul"), 1);
  EXPECT_EQ(countOps(*module, "nn.add"), 1);
  EXPECT_EQ(run(*module), Numbers({12, 24, 18, 30}));
}

/// A function of the model stands for its nodes; attributes come from the call.
TEST_F(ImportGraphs, Functions) {
  Graph model = graph({node("Twice", {"x"}, {"y"}, {attribute("k", int64_t(1))}, "call", "local")});
  model.functions = {bytes(1, "Twice") + bytes(4, "a") + bytes(5, "b") + bytes(6, "k") +
                     bytes(7, node("Add", {"a", "a"}, {"t"})) +
                     bytes(7, node("Flatten", {"t"}, {"b"}, {attributeFrom("axis", "k")})) +
                     bytes(9, bytes(1, "") + number(2, 18)) + bytes(10, "local")};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module), Numbers({2, 4, 6, 8, 10, 12}));
}

/// A function of the model comes before the op of that name: ONNX lets a model define its own Relu. Overloads differ.
TEST_F(ImportGraphs, FunctionsShadowOps) {
  auto function = [](const std::string &name, const std::string &domain, const std::string &op,
                     const std::string &overload) {
    return bytes(1, name) + bytes(4, "a") + bytes(5, "b") + bytes(7, node(op, {"a"}, {"b"})) +
           bytes(9, bytes(1, "") + number(2, 18)) + bytes(10, domain) + (overload.empty() ? "" : bytes(13, overload));
  };
  for (const char *domain : {"", "ai.onnx"}) {
    Graph model = graph({node("Relu", {"x"}, {"y"}, {}, "call", domain)});
    model.functions = {function("Relu", "", "Neg", "")};
    auto module = import(model);
    ASSERT_TRUE(module);
    EXPECT_EQ(run(*module), Numbers({-1, -2, -3, -4, -5, -6}));
  }
  Graph model = graph({node("F", {"x"}, {"t"}, {}, "one", "local") + bytes(8, "negative"),
                       node("F", {"t"}, {"y"}, {}, "two", "local") + bytes(8, "positive")});
  model.functions = {function("F", "local", "Neg", "negative"), function("F", "local", "Abs", "positive")};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.neg"), 1);
  EXPECT_EQ(run(*module), Numbers({1, 2, 3, 4, 5, 6}));
}

/// A function's nodes follow the opset that the function imports: Softmax of opset 12 takes all dims from its axis on.
TEST_F(ImportGraphs, FunctionsImportTheirOwnOpset) {
  Graph model = graph({node("F", {"x"}, {"y"}, {}, "call", "local")});
  model.functions = {bytes(1, "F") + bytes(4, "a") + bytes(5, "b") +
                     bytes(7, node("Softmax", {"a"}, {"b"}, {attribute("axis", int64_t(0))})) +
                     bytes(9, bytes(1, "") + number(2, 12)) + bytes(10, "local")};
  auto module = import(model);
  ASSERT_TRUE(module);
  Numbers result = run(*module, {1, 1, 1, 1, 1, 1});
  EXPECT_NEAR(result.at(0), 1.0 / 6, 1e-6);
}

/// Where folding leaves a weight without users, it leaves no trace: only its shape or type was asked for.
TEST_F(ImportGraphs, WeightsThatOnlyFoldedOpsRead) {
  Graph model = graph(
      {node("Shape", {"w"}, {"s"}), node("Reshape", {"x", "s"}, {"a"}), node("CastLike", {"a", "v"}, {"b"}),
       node("Gemm", {"b", "m", "z"}, {"c"}, {bytes(1, "beta") + varint(2 << 3 | 5) + raw<float>({0}) + number(20, 1)}),
       node("Reshape", {"c", "t"}, {"y"})});
  model.initializers = {floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}), floats("v", {2}, {1, 2}),
                        floats("m", {2, 2}, {1, 0, 0, 2}), floats("z", {2}, {7, 8}), ints("t", {2}, {2, 3})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.parameter"), 1);
  EXPECT_EQ(run(*module), Numbers({1, 4, 3, 8, 5, 12}));
}

/// A constant that is written out may not take the name of a stored tensor: a plan knows tensors by their names.
TEST_F(ImportGraphs, WrittenOutConstantsHaveNamesOfTheirOwn) {
  std::vector<float> many(70000);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = float(i * i % 1000);
  Graph model =
      graph({node("Constant", {}, {"k"}, {bytes(1, "value") + bytes(5, floats("", {70000}, many)) + number(20, 4)}),
             node("ReduceSum", {"x"}, {"s"}, {attribute("keepdims", int64_t(0))}), node("Add", {"k", "s"}, {"a"}),
             node("Mul", {"a", "constant_0"}, {"y"})});
  model.initializers = {floats("constant_0", {70000}, std::vector<float>(70000, 3))};
  auto module = import(model);
  ASSERT_TRUE(module);
  std::set<std::string> names;
  module->walk([&](nn::ParameterOp op) { EXPECT_TRUE(names.insert(op.getName().str()).second) << op.getName().str(); });
  EXPECT_EQ(names.size(), 2u);
}

/// Reversing nothing is nothing; the bounds of a dim of 0 have no place to be clamped to.
TEST_F(ImportGraphs, SlicesOfEmptyDims) {
  Graph model = graph({node("Slice", {"x", "z", "z"}, {"e"}), // [0, 3]
                       node("Slice", {"e", "a", "b", "z", "m"}, {"r"}),
                       node("Concat", {"r", "x"}, {"y"}, {attribute("axis", int64_t(0))})});
  model.initializers = {ints("z", {1}, {0}), ints("m", {1}, {-1}),
                        ints("a", {1}, {std::numeric_limits<int64_t>::max()}),
                        ints("b", {1}, {std::numeric_limits<int64_t>::min()})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module), Numbers({1, 2, 3, 4, 5, 6}));
}

/// Weights that are not there: parameters that say where they belong, without hashes; two names of one place are one.
TEST_F(ImportGraphs, AbsentWeights) {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  Graph model = graph({node("Add", {"x", "w"}, {"a"}), node("Mul", {"a", "v"}, {"b"}), node("Sub", {"b", "u"}, {"y"})});
  Entries first = {{"location", "w.bin"}, {"offset", "4"}}, second = {{"location", "w.bin"}, {"offset", "16"}};
  model.initializers = {externalTensor("w", {3}, first), externalTensor("v", {3}, second),
                        externalTensor("u", {3}, first)};
  std::vector<std::string> remarks;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { remarks.push_back(diagnostic.str()); });
  auto module = import(model);
  ASSERT_TRUE(module);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("w.bin' is not there: compiling without the content of 3 tensors (36 bytes)"),
            std::string::npos)
      << remarks[0];
  std::map<std::string, int64_t> offsets;
  module->walk([&](nn::ParameterOp op) {
    EXPECT_TRUE(op.isAbsent());
    offsets[op.getName().str()] = int64_t(op.getOffset());
    if (op.getName() == "w")
      EXPECT_EQ((*op.getAliases())[0], StringAttr::get(&context, "u"));
  });
  EXPECT_EQ(offsets, (std::map<std::string, int64_t>{{"w", 4}, {"v", 16}}));

  // There, they are hashed; with --no-weights nobody looks, and nobody remarks on it.
  remarks.clear();
  ASSERT_TRUE(writeFile(folder.file("w.bin"), raw<float>({0, 1, 2, 3, 4, 5, 6})).ok());
  auto read = import(model);
  ASSERT_TRUE(read);
  read->walk([](nn::ParameterOp op) { EXPECT_FALSE(op.isAbsent()); });
  EXPECT_EQ(run(*read), Numbers({7, 18, 33, 19, 33, 51}));
  ImportOptions options;
  options.withoutWeights = true;
  auto unread = importOnnx(folder.file("m.onnx"), options, &context);
  ASSERT_TRUE(unread.ok()) << unread.status().text();
  (*unread)->walk([](nn::ParameterOp op) { EXPECT_TRUE(op.isAbsent()); });
  EXPECT_TRUE(remarks.empty());
}

/// What shapes depend on must be known; the error says which file it would have been in.
TEST_F(ImportGraphs, AbsentShapes) {
  Graph model = graph({node("Tile", {"x", "s"}, {"y"}, {}, "n")});
  model.initializers = {tensorHead("s", i64, {2}) + number(14, 1) +
                        bytes(13, bytes(1, "location") + bytes(2, "s.bin"))};
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  auto module = importOnnx(folder.file("m.onnx"), {}, &context);
  ASSERT_FALSE(module.ok());
  EXPECT_NE(module.status().message().find("its repeats is 's' in"), std::string::npos) << module.status().text();
}

/// As deep as the program is long: nothing on the way may recurse, or take quadratic time.
TEST_F(ImportGraphs, LongChainsAndWideSums) {
  constexpr int length = 100000;
  std::vector<std::string> nodes, terms;
  for (int i = 0; i < length; ++i)
    nodes.push_back(
        node("Neg", {i ? "v" + std::to_string(i) : "x"}, {i + 1 == length ? "y" : "v" + std::to_string(i + 1)}));
  auto module = import(graph(std::move(nodes)));
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.neg"), length);
  auto sum = import(graph({node("Sum", std::vector<std::string>(length, "x"), {"y"})}));
  ASSERT_TRUE(sum);
  EXPECT_EQ(countOps(*sum, "nn.add"), length - 1);
}

/// Users of a weight are found behind any number of views, without a stack frame for each.
TEST_F(ImportGraphs, UsersBehindManyViews) {
  std::vector<std::string> nodes = {node("Add", {"x", "v100000"}, {"y"}, {}, "sum")};
  for (int i = 0; i < 100000; ++i)
    nodes.push_back(node("Transpose", {i ? "v" + std::to_string(i) : "w"}, {"v" + std::to_string(i + 1)}));
  Graph model = graph(std::move(nodes));
  model.initializers = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_NE(listParameters(*module).find("used by sum (nn.add)"), std::string::npos);
}

/// Shapes with zeros: a 0 copies a dim of the input or, with allowzero, is a size; whatever holds nothing still has a
/// shape.
TEST_F(ImportGraphs, ReshapesOfNothing) {
  struct Case {
    std::vector<int64_t> from, to, result;
    bool allowZero;
  };
  for (const Case &each : std::vector<Case>{{{1, 1, 5, 0}, {1, 1, 5, 0}, {1, 1, 5, 0}, true},
                                            {{1, 1, 5, 0}, {0, 0, 0, 0}, {1, 1, 5, 0}, false},
                                            {{1, 5, 0}, {1, 1, 5, 0}, {1, 1, 5, 0}, true},
                                            {{4, 0, 8}, {0, 0, 8}, {4, 0, 8}, false},
                                            {{4, 0, 8}, {0, 8}, {0, 8}, true},
                                            {{4, 0, 8}, {4, 0, -1}, {4, 0, 8}, false},
                                            {{0, 8}, {4, 0, 8}, {4, 0, 8}, true},
                                            {{0, 3}, {-1, 3}, {0, 3}, false}}) {
    for (bool isKnown : {false, true}) {
      std::vector<std::string> dims;
      for (int64_t size : each.from)
        dims.push_back(std::to_string(size));
      Graph model =
          graph({node("Reshape", {isKnown ? "k" : "x", "s"}, {"t"}, {attribute("allowzero", int64_t(each.allowZero))}),
                 node("Neg", {"t"}, {"y"})});
      model.inputs = {value("x", f32, dims)};
      model.initializers = {ints("s", {int64_t(each.to.size())}, each.to), floats("k", each.from, {})};
      if (llvm::is_contained(each.to, -1) && each.to.front() != -1) { // 0 elements in rows of 0: nothing says how many
        ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
        EXPECT_EQ(importOnnx(folder.file("m.onnx"), {}, &context).status().kind(), ErrorKind::Model);
        continue;
      }
      auto module = import(model);
      ASSERT_TRUE(module);
      auto results = runImported(*module, {{"x", Array::zeros(DType::F32, each.from)}}, false);
      ASSERT_TRUE(results.ok()) << results.status().text();
      EXPECT_EQ(results->front().shape, each.result);
    }
  }
}

/// With noop_with_empty_axes nothing is summed, but a sum of squares still squares.
TEST_F(ImportGraphs, ReductionsOfNothing) {
  auto with = [&](const std::string &op) {
    auto module = import(graph({node(op, {"x"}, {"y"}, {attribute("noop_with_empty_axes", int64_t(1))})}));
    return module ? run(*module, {-2, 0, 1, 2, 3, -4}) : Numbers();
  };
  EXPECT_EQ(with("ReduceSumSquare"), Numbers({4, 0, 1, 4, 9, 16}));
  EXPECT_EQ(with("ReduceL1"), Numbers({2, 0, 1, 2, 3, 4}));
  EXPECT_EQ(with("ReduceL2"), Numbers({2, 0, 1, 2, 3, 4}));
  for (const char *op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd", "ReduceLogSumExp"})
    EXPECT_EQ(with(op), Numbers({-2, 0, 1, 2, 3, -4})) << op;
}

/// -1 names the last element of each dim, whatever their sizes; equal indices are held once and must come apart for it.
TEST_F(ImportGraphs, EqualIndicesIntoDifferentDims) {
  Graph model = graph({node("GatherND", {"x", "i"}, {"a"}), node("Add", {"x", "a"}, {"y"})});
  model.initializers = {ints("i", {2}, {-1, -1})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(run(*module), Numbers({7, 8, 9, 10, 11, 12}));
}

// Dims of an ellipsis are 1 until another operand brings their size, also where that one comes after a product.
TEST_F(ImportGraphs, EinsumEllipsesThatBroadcastLate) {
  Graph model = graph({node("Slice", {"x", "zero", "one", "zero"}, {"row"}), node("Einsum", {"row", "square", "late"}, {"y"},
                      {textAttribute("equation", "...k,kj,...j->...")}, "e")});
  model.initializers = {ints("zero", {1}, {0}), ints("one", {1}, {1}), floats("square", {3, 2}, {1, 0, 0, 1, 1, 1}),
                        floats("late", {4, 2}, {1, 0, 0, 1, 1, 1, 2, -1})};
  // x's first row is 1 2 3, times the square 4 5.
  EXPECT_EQ(run(*import(model)), (std::vector<double>{4, 5, 9, 3}));
}

/// Attention scores times Trilu: the triangle is a comparison of row and column numbers, not a matrix.
TEST_F(ImportGraphs, TriangleOfData) {
  Graph model = graph({node("Trilu", {"x", "k"}, {"y"}, {attribute("upper", int64_t(0))})});
  model.initializers = {ints("k", {}, {1})};
  auto module = import(model);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.iota"), 2);
  EXPECT_EQ(run(*module), Numbers({1, 2, 0, 4, 5, 6}));
}

/// Known indices in an affine order become views, whatever gathers.
TEST_F(ImportGraphs, GathersBecomeViews) {
  Graph gather = graph({node("Gather", {"x", "i"}, {"y"}, {attribute("axis", int64_t(1))})});
  gather.initializers = {ints("i", {2}, {-1, 1})};
  auto module = import(gather);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.gather"), 0);
  EXPECT_EQ(run(*module), Numbers({3, 2, 6, 5}));

  Graph gatherNd = graph({node("GatherND", {"x", "i"}, {"y"})}); // indices [j, i] for i, j: the transpose
  gatherNd.initializers = {ints("i", {3, 2, 2}, {0, 0, 1, 0, 0, 1, 1, 1, 0, 2, 1, 2})};
  module = import(gatherNd);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.gather_nd"), 0);
  EXPECT_EQ(countOps(*module, "nn.transpose"), 1);
  EXPECT_EQ(run(*module), Numbers({1, 4, 2, 5, 3, 6}));

  // A mask that is read flat, at row * 3 + column, is itself, however little of it; steps that do not nest stay a gather.
  struct Flat {
    std::vector<int64_t> shape, indices;
    Numbers expected;
    int gathers;
  };
  for (const Flat &flat : {Flat{{2, 1, 3}, {0, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}, 0},
                           Flat{{3, 2}, {0, 3, 1, 4, 2, 5}, {1, 4, 2, 5, 3, 6}, 0},      // its transpose
                           Flat{{2, 2}, {1, 2, 4, 5}, {2, 3, 5, 6}, 0},                  // the last columns
                           Flat{{2, 2}, {1, 3, 3, 5}, {2, 4, 4, 6}, 1},                  // overlapping windows
                           Flat{{2, 2}, {2, 3, 5, 6 - 6}, {3, 4, 6, 1}, 1},              // not affine
                           Flat{{2, 2}, {2, 3, 4, 5}, {3, 4, 5, 6}, 0}}) {               // rows of two
    Graph model = graph({node("Reshape", {"x", "s"}, {"r"}), node("Gather", {"r", "i"}, {"y"})});
    model.initializers = {ints("s", {1}, {6}), ints("i", flat.shape, flat.indices)};
    module = import(model);
    ASSERT_TRUE(module);
    EXPECT_EQ(countOps(*module, "nn.gather"), flat.gathers);
    EXPECT_EQ(run(*module), flat.expected);
  }

  gather.initializers = {ints("i", {4}, {0, 1, 1, 2})}; // not affine
  module = import(gather);
  ASSERT_TRUE(module);
  EXPECT_EQ(countOps(*module, "nn.gather"), 1);
  EXPECT_EQ(run(*module), Numbers({1, 2, 2, 3, 4, 5, 5, 6}));
}

// ---- the forms of folded constants --------------------------------------------------------------

class FoldedConstant : public ImportGraphs {
protected:
  /// Builds the constant and checks that it evaluates to what it stands for.
  std::string build(DType type, std::vector<int64_t> shape, std::function<double(ArrayRef<int64_t>)> element) {
    context.loadDialect<nn::NNDialect, func::FuncDialect>();
    Tensor tensor(type, shape);
    SmallVector<int64_t> strides = stridesOf(shape);
    for (int64_t at = 0; at < tensor.size(); ++at) {
      SmallVector<int64_t> index;
      for (size_t dim = 0; dim < shape.size(); ++dim)
        index.push_back(at / strides[dim] % shape[dim]);
      tensor.setNumber(at, element(index));
    }
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    auto function = func::FuncOp::create(builder, module->getLoc(), "main", builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    Value value = onnx::buildConstant(builder, module->getLoc(), onnx::KnownTensor(tensor), "folded");
    if (nn::shapeOf(value) != ArrayRef<int64_t>(shape))
      value = nn::BroadcastOp::create(builder, module->getLoc(),
                                      RankedTensorType::get(shape, nn::tensorType(value).getElementType()), value);
    func::ReturnOp::create(builder, module->getLoc(), value);
    function.setType(builder.getFunctionType({}, value.getType()));
    auto results = runFunction(function, {});
    EXPECT_TRUE(results.ok() && results->front().floats == tensor.floats && results->front().ints == tensor.ints);
    std::string ops;
    for (Operation &op : function.getBody().front().without_terminator())
      if (!isa<nn::BroadcastOp>(op))
        ops += (ops.empty() ? "" : " ") + op.getName().stripDialect().str();
    return ops;
  }
};

TEST_F(FoldedConstant, TakesTheSimplestForm) {
  using Index = ArrayRef<int64_t>;
  EXPECT_EQ(build(DType::F32, {3, 4}, [](Index) { return 0.5; }), "constant");
  EXPECT_EQ(build(DType::I64, {3, 4}, [](Index i) { return 7 - 2 * i[1]; }), "iota");
  EXPECT_EQ(build(DType::I64, {3, 4}, [](Index i) { return 10 * i[0] + i[1] + 5; }), "iota iota add");
  EXPECT_EQ(build(DType::F32, {1, 5}, [](Index i) { return i[1]; }), "iota cast");
  EXPECT_EQ(build(DType::F32, {1, 5}, [](Index i) { return 0.5 * i[1]; }), "constant");
  EXPECT_EQ(build(DType::I64, {2, 3}, [](Index i) { return i[0] * i[1]; }), "constant");
  EXPECT_EQ(build(DType::Bool, {6}, [](Index i) { return i[0] < 4; }), "iota constant compare");
  EXPECT_EQ(build(DType::Bool, {6}, [](Index i) { return i[0] != 4; }), "constant");
}

/// Bands of every width and offset in small rectangles; what is no band stays a constant.
TEST_F(FoldedConstant, FindsBands) {
  using Index = ArrayRef<int64_t>;
  const std::string upper = "iota iota compare";
  for (int64_t rows = 2; rows <= 4; ++rows)
    for (int64_t columns = 2; columns <= 4; ++columns)
      for (int64_t low = -4; low <= 4; ++low)
        for (int64_t high = low; high <= 4; ++high) {
          std::string form =
              build(DType::Bool, {rows, columns}, [=](Index i) { return i[1] - i[0] >= low && i[1] - i[0] <= high; });
          EXPECT_TRUE(form.find("compare") != std::string::npos || form == "constant");
        }
  EXPECT_EQ(build(DType::Bool, {2, 1, 5, 5}, [](Index i) { return i[3] <= i[2]; }), upper);
  EXPECT_EQ(build(DType::Bool, {5, 5}, [](Index i) { return i[1] > i[0]; }), upper);
  EXPECT_EQ(build(DType::Bool, {5, 9}, [](Index i) { return i[1] <= i[0] + 4; }), upper);
  EXPECT_EQ(build(DType::Bool, {9, 9}, [](Index i) { return i[1] <= i[0] && i[1] > i[0] - 3; }),
            "iota iota compare iota compare and");
  EXPECT_EQ(build(DType::Bool, {4, 4}, [](Index i) { return i[1] <= i[0] || i[1] == 3; }), "constant");
  EXPECT_EQ(build(DType::F32, {5, 5}, [](Index i) { return i[1] <= i[0] ? 0 : -INFINITY; }),
            upper + " constant constant select");
  EXPECT_EQ(build(DType::F32, {5, 5}, [](Index i) { return i[1] <= i[0] ? 0
                                                           : i[1] == 4  ? -INFINITY
                                                                        : -1; }),
            "constant");
}

TEST(DimExpression, Evaluates) {
  std::map<std::string, int64_t> dims = {{"batch_size", 4}, {"n", 33}};
  EXPECT_EQ(*onnx::evaluateDim("((batch_size*Min(48, n))//n)", dims), 4);
  EXPECT_EQ(*onnx::evaluateDim("n + 2*batch_size - 1", dims), 40);
  EXPECT_EQ(*onnx::evaluateDim("Max(n, 100) % 7", dims), 2);
  EXPECT_FALSE(onnx::evaluateDim("n // 0", dims).ok());
  EXPECT_FALSE(onnx::evaluateDim("n +", dims).ok());
  EXPECT_FALSE(onnx::evaluateDim("m", dims).ok());
  EXPECT_EQ(onnx::namesIn("a + b*a"), std::vector<std::string>({"a", "b"}));
  EXPECT_EQ(onnx::namesIn("one name"), std::vector<std::string>({"one name"}));
}

TEST(ModulePath, FromMetadataOrName) {
  EXPECT_EQ(onnx::modulePathOf("view_1", {{"pkg.torch.onnx.name_scopes", "['', 'model', 'model.h.0', 'view_1']"}}),
            "model.h.0");
  EXPECT_EQ(onnx::modulePathOf("view_1", {{"namespace", ": Net/model: Model/model.h.0: Block/view_1: aten.view"}}),
            "model.h.0");
  EXPECT_EQ(onnx::modulePathOf("/model/h.0/attn/MatMul", {}), "model.h.0.attn");
  EXPECT_EQ(onnx::modulePathOf("MatMul_12", {}), "");
}

/// An op listed twice for the same opset would hide one of the two.
TEST(OnnxOpTables, HaveNoDuplicates) {
  std::set<std::tuple<std::string, std::string, int64_t>> seen;
  for (const onnx::OnnxOp &op : onnx::allOnnxOps())
    EXPECT_TRUE(seen.insert({op.domain, op.name, op.since}).second) << op.name;
  EXPECT_EQ(onnx::findOnnxOp("", "Softmax", 12)->since, 1);
  EXPECT_EQ(onnx::findOnnxOp("", "Softmax", 18)->since, 13);
  EXPECT_EQ(onnx::findOnnxOp("", "Gelu", 19), nullptr);
}

} // namespace
} // namespace hpc
