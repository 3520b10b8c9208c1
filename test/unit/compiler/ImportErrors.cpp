// What a file or a flag can do wrong, and damaged files: an error that names the place, never a crash.
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/OnnxModel.h"
#include "runtime/base/File.h"

#include <gmock/gmock.h>

namespace hpc {
namespace {

using namespace onnxwriter;
using testing::HasSubstr;

class ImportErrors : public testing::Test {
protected:
  Expected<OwningOpRef<ModuleOp>> import(const std::string &bytes, const std::map<std::string, int64_t> &dims = {}) {
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), bytes).ok());
    ImportOptions options;
    options.dims = dims;
    return importOnnx(folder.file("m.onnx"), options, &context);
  }
  void expectError(const std::string &bytes, ErrorKind kind, const std::string &text,
                   const std::map<std::string, int64_t> &dims = {}) {
    auto module = import(bytes, dims);
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(module.status().kind(), kind) << module.status().text();
    EXPECT_THAT(module.status().message(), HasSubstr(text));
  }
  /// x [2, 3] -> nodes -> y
  static Graph graph(std::vector<std::string> nodes) {
    Graph result;
    result.nodes = std::move(nodes);
    result.inputs = {value("x", f32, {"2", "3"})};
    result.outputs = {value("y", f32, {})};
    return result;
  }
  TemporaryFolder folder;
  MLIRContext context;
};

TEST_F(ImportErrors, MissingFile) {
  auto module = importOnnx(folder.file("none.onnx"), {}, &context);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().kind(), ErrorKind::Io);
}

/// All open sizes at once, each with where it occurs and the flag that binds it.
TEST_F(ImportErrors, OpenSizes) {
  Graph model = graph({node("Add", {"x", "z"}, {"y"})});
  model.inputs = {value("x", f32, {"rows", "n"}), value("z", f32, {"n"})};
  expectError(model.model(), ErrorKind::Usage,
              "rows (input 'x' dim 0); n (input 'x' dim 1, input 'z' dim 0); give --dim rows=N --dim n=N");
  expectError(model.model(), ErrorKind::Usage, "--dim k=3 names no open size of the model; it has rows, n", {{"k", 3}});
  expectError(model.model(), ErrorKind::Usage, "--dim n=-1 is negative", {{"n", -1}, {"rows", 2}});
  EXPECT_TRUE(import(model.model(), {{"n", 2}, {"rows", 3}}).ok());
}

/// A size that is an expression needs its names only; one without a name is called input.dim.
TEST_F(ImportErrors, ExpressionsAndNamelessSizes) {
  Graph model = graph({node("Identity", {"x"}, {"y"})});
  model.inputs = {value("x", f32, {"past + 2*(n - 1)", ""})};
  expectError(model.model(), ErrorKind::Usage, "give --dim past=N --dim n=N --dim x.1=N");
  auto module = import(model.model(), {{"past", 3}, {"n", 5}, {"x.1", 7}});
  ASSERT_TRUE(module.ok()) << module.status().text();
  EXPECT_EQ(nn::shapeOf(mainOf(**module).getArgument(0)), ArrayRef<int64_t>({11, 7}));
}

/// Two dims without a name, which exporters write as ?, or as -1, are two sizes; every dim may be bound by its place, which goes
/// before its name.
TEST_F(ImportErrors, SizesByPlace) {
  Graph model = graph({node("Identity", {"x"}, {"y"})});
  std::string minusOne = bytes(1, number(1, -1));
  for (const std::string &dim : {bytes(1, bytes(2, "?")), minusOne, bytes(1, "")}) {
    model.inputs = {bytes(1, "x") + bytes(2, bytes(1, number(1, f32) + bytes(2, dim + bytes(1, number(1, 3)) + dim)))};
    expectError(model.model(), ErrorKind::Usage, "the model leaves sizes open: x.0 (input 'x' dim 0); x.2 (input 'x' dim 2); give --dim x.0=N --dim x.2=N");
    auto module = import(model.model(), {{"x.0", 2}, {"x.2", 5}, {"x.1", 3}});
    ASSERT_TRUE(module.ok()) << module.status().text();
    EXPECT_EQ(nn::shapeOf(mainOf(**module).getArgument(0)), ArrayRef<int64_t>({2, 3, 5}));
    expectError(model.model(), ErrorKind::Usage, "--dim x.1=4: the model says that it is 3", {{"x.0", 2}, {"x.2", 5}, {"x.1", 4}});
  }
  model.inputs = {value("x", f32, {"batch", "n"}), value("z", f32, {"batch", "n"})};
  auto module = import(model.model(), {{"batch", 2}, {"x.1", 7}, {"z.1", 5}});
  ASSERT_TRUE(module.ok()) << module.status().text();
  EXPECT_EQ(nn::shapeOf(mainOf(**module).getArgument(0)), ArrayRef<int64_t>({2, 7}));
  EXPECT_EQ(nn::shapeOf(mainOf(**module).getArgument(1)), ArrayRef<int64_t>({2, 5}));
  // n is no size any more: neither dim has the name.
  EXPECT_EQ(nn::argumentPort(mainOf(**module), 0).dims, std::vector<std::string>({"batch", "x.1"}));
  EXPECT_EQ(nn::argumentPort(mainOf(**module), 1).dims, std::vector<std::string>({"batch", "z.1"}));
  expectError(model.model(), ErrorKind::Usage, "n (input 'z' dim 1); give --dim n=N", {{"batch", 2}, {"x.1", 7}});
  expectError(model.model(), ErrorKind::Usage, "--dim y.1=5 names no open size of the model; it has batch, n", {{"batch", 2}, {"n", 3}, {"y.1", 5}});
}

/// What a size is too large for names the table, its limit and the sizes that were given.
TEST_F(ImportErrors, SizesBeyondATable) {
  Graph model = graph({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "one"}, {"n"}), node("Range", {"zero", "n", "step"}, {"r"}),
                       node("Gather", {"positions", "r"}, {"p"}), node("Add", {"x", "p"}, {"y"})});
  model.inputs = {value("x", f32, {"2", "n"})};
  model.initializers = {floats("positions", {4}, {1, 2, 3, 5}), ints("one", {}, {1}), ints("zero", {}, {0}), ints("step", {}, {1})};
  EXPECT_TRUE(import(model.model(), {{"n", 4}}).ok());
  expectError(model.model(), ErrorKind::Model,
              "(Gather): index 4 is out of range for a dim of 4 elements, dim 0 of 'positions' 4; the sizes are those of --dim n=5", {{"n", 5}});
}

/// What follows from a tensor that was not read names it and its file, however far behind it.
TEST_F(ImportErrors, TensorsThatWereNotRead) {
  Graph model = graph({node("Cast", {"sizes"}, {"s"}, {attribute("to", int64_t(7))}), node("Reshape", {"x", "s"}, {"y"}, {}, "r")});
  model.initializers = {externalTensor("sizes", {2}, {{"location", "none.bin"}})};
  expectError(model.model(), ErrorKind::Unsupported,
              "Reshape: its shape is computed from 'sizes' in " + folder.file("none.bin") + ", which was not read; compile with that file");
  Graph branch;
  branch.nodes = {node("NonZero", {"x"}, {"o"})};
  branch.outputs = {value("o", i64, {})};
  model.nodes = {node("Less", {"limit", "one"}, {"c"}),
                 node("If", {"c"}, {"y"}, {attribute("then_branch", branch), attribute("else_branch", branch)}, "choice")};
  model.initializers = {externalTensor("limit", {}, {{"location", "none.bin"}}), floats("one", {}, {1})};
  expectError(model.model(), ErrorKind::Unsupported,
              "If: its then_branch cannot be computed, and its condition is computed from 'limit' in " + folder.file("none.bin"));
}

/// Everything unsupported in one message, with its nodes.
TEST_F(ImportErrors, UnsupportedOps) {
  Graph model = graph({node("Foo", {"x"}, {"a"}, {}, "n1"), node("Bar", {"a"}, {"b"}, {}, "n2", "vendor"),
                       node("Foo", {"b"}, {"y"}, {}, "n3"), node("Dead", {"x"}, {"unused"}, {}, "n4")});
  expectError(model.model(), ErrorKind::Unsupported,
              "Foo (opset 18): nodes 'n1', 'n3'\n  vendor.Bar (no opset imported for its domain): node 'n2'");
}

TEST_F(ImportErrors, UnsupportedUses) {
  Graph model = graph({node("Reshape", {"x", "s"}, {"a"}, {}, "r"),
                       node("Cast", {"x"}, {"b"}, {attribute("to", int64_t(8))}, "c"), node("Add", {"a", "b"}, {"y"})});
  model.inputs.push_back(value("s", i64, {"1"}));
  auto module = import(model.model());
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().kind(), ErrorKind::Unsupported);
  EXPECT_THAT(module.status().message(),
              HasSubstr("Reshape: its shape depends on the data, not on shapes alone: on input 's'; bind what decides it with --const s=FILE: node 'r'"));
  EXPECT_THAT(module.status().message(), HasSubstr("Cast: a cast to string: node 'c'"));
}

TEST_F(ImportErrors, GraphsThatDoNotHold) {
  using Nodes = std::vector<std::string>;
  auto expect = [&](Nodes nodes, const std::string &text) {
    expectError(graph(std::move(nodes)).model(), ErrorKind::Model, text);
  };
  expect({node("Relu", {"z"}, {"y"}, {}, "n")}, "node 'n' reads 'z', which nothing makes");
  expect({node("Relu", {"x"}, {"y"}, {}, "n"), node("Neg", {"x"}, {"y"}, {}, "k")},
         "node 'k' makes 'y', which exists already");
  expect({node("Relu", {"x"}, {"x"}, {}, "n")}, "node 'n' makes 'x', which exists already");
  expect({node("Add", {"x", "b"}, {"a"}, {}, "n"), node("Relu", {"a"}, {"b"}), node("Relu", {"b"}, {"y"})},
         "a cycle through node 'n'");
  expect({node("Relu", {}, {"y"}, {}, "n")}, "node 'n' (Relu): input 0 is missing");
  expect({node("Transpose", {"x"}, {"y"}, {attribute("perm", std::vector<int64_t>{0, 0})}, "n")},
         "node 'n' (Transpose): its permutation");
  expect({node("Transpose", {"x"}, {"y"}, {attribute("perm", int64_t(1))}, "n")},
         "attribute 'perm' has the wrong kind");
  expect({node("MatMul", {"x", "x"}, {"y"}, {}, "n")}, "node 'n' (MatMul): a product of 2x3 by 2x3, whose 3 columns and 2 rows must be as many; check the shape");
  expect({node("Concat", {"x", "x"}, {"y"}, {attribute("axis", int64_t(2))}, "n")},
         "node 'n' (Concat): axis 2 is out of range for rank 2");
  expect({node("Flatten", {"x"}, {"y"}, {attribute("axis", int64_t(-3))}, "n")}, "axis -3 is out of range for rank 2");
  expect({node("Relu", {"x"}, {"y", "z"}, {}, "n")}, "node 'n' (Relu): it has output 1, 'z', and Relu of opset 18 gives 1 output");
  // An input that nobody reads would be a number that is silently not what the model says.
  expect({node("Relu", {"x", "x"}, {"y"}, {}, "n")}, "node 'n' (Relu): it has input 1, 'x', which Relu of opset 18 does not take");
  expect({node("Split", {"x"}, {"y", "z"}, {attribute("axis", int64_t(1))}, "n")},
         "size 3 of dim 1 does not split into 2 equal parts; give sizes");
  expect({node("Split", {"x"}, {"y"}, {attribute("num_outputs", int64_t(1) << 62)}, "n")},
         "its num_outputs is 4611686018427387904, but it has 1 output");
}

/// What attentions are refused for, in words that say how it would be right.
TEST_F(ImportErrors, Attentions) {
  auto expect = [&](std::vector<std::string> inputs, std::vector<std::string> attributes, const std::string &domain,
                    ErrorKind kind, const std::string &text) {
    Graph model = graph({node(domain == "rotary" ? "RotaryEmbedding" : "Attention", inputs, {"y"}, attributes, "n",
                              domain == "rotary" ? "" : domain)});
    model.opset = 24;
    model.inputs = {value("x", f32, {"2", "3", "8"}), value("h", f32, {"2", "2", "3", "4"}), value("i", i64, {"2"}),
                    value("w", f32, {"8", "24"})};
    expectError(model.model(), kind, text);
  };
  expect({"x", "x", "x"}, {}, "", ErrorKind::Model, "must be [batch, heads, length, size] or [batch, length, heads * size]; here are 2x3x8 and 0 heads");
  expect({"h", "h", "h", "", "h"}, {}, "", ErrorKind::Model, "past_key and past_value must be given together");
  expect({"h", "h", "h", "", "h", "h", "i"}, {}, "", ErrorKind::Model, "it cannot come with past_key");
  expect({"h", "h", "h"}, {attribute("qk_matmul_output_mode", int64_t(4))}, "", ErrorKind::Model, "qk_matmul_output_mode 4 is none of 0 to 3");
  expect({"x", "w"}, {attribute("num_heads", int64_t(2)), attribute("do_rotary", int64_t(1))}, "com.microsoft",
         ErrorKind::Unsupported, "attribute 'do_rotary'");
  // What says something and is not known would be left out in silence.
  expect({"x", "w"}, {attribute("num_heads", int64_t(2)), attribute("sliding_window_cache", int64_t(1))}, "com.microsoft",
         ErrorKind::Unsupported, "it has attribute 'sliding_window_cache', which is not known here");
  expect({"x", "w", "", "i"}, {attribute("num_heads", int64_t(2)), attribute("qkv_hidden_sizes", std::vector<int64_t>{8, 8, 4})},
         "com.microsoft", ErrorKind::Model, "do not add up to the 24 columns of its weights");
  expect({"x", "x", "x"}, {}, "rotary", ErrorKind::Model, "[batch, length, heads * size] with num_heads");
  expect({"h", "x", "x"}, {}, "rotary", ErrorKind::Model, "rotates 4 of 4 elements by 8 angles; the angles must be half as many as the elements that they rotate");
}

/// A weight that the plan itself would hold: what a run is given in its place would be passed over in silence.
TEST_F(ImportErrors, WeightsThatNoOthersCanReplace) {
  constexpr int f16 = 10;
  Graph model = graph({node("Add", {"h", "w"}, {"y"}, {}, "n")});
  model.inputs = {value("h", f16, {"2"})};
  model.outputs = {value("y", f16, {})};
  model.initializers = {tensorHead("w", f16, {2}) + bytes(5, "\x01\x02")}; // int32_data
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  ImportOptions options;
  Status withWeights = importOnnx(folder.file("m.onnx"), options, &context).status();
  EXPECT_TRUE(withWeights.ok()) << withWeights.text();
  options.withoutWeights = true;
  Status status = importOnnx(folder.file("m.onnx"), options, &context).status();
  EXPECT_EQ(status.kind(), ErrorKind::Unsupported);
  EXPECT_THAT(status.message(), HasSubstr("weight 'w' is not stored as bytes of its own, so the plan would hold its numbers"));
}

TEST_F(ImportErrors, ShapesThatDoNotGoTogether) {
  Graph model = graph({node("Add", {"x", "w"}, {"y"}, {}, "n")});
  model.initializers = {floats("w", {2}, {1, 2})};
  expectError(model.model(), ErrorKind::Model,
              "node 'n' (Add): the shapes of 2x3xf32, 2xf32 do not broadcast");
  model.initializers = {ints("w", {3}, {1, 2, 3})};
  expectError(model.model(), ErrorKind::Model, "must have one element type");
  model.nodes = {node("Reshape", {"x", "w"}, {"y"}, {}, "n")};
  model.initializers = {ints("w", {2}, {4, -1})};
  expectError(model.model(), ErrorKind::Model, "its 6 elements cannot be divided by the 4 of its other sizes");
}

TEST_F(ImportErrors, DamagedTensors) {
  Graph model = graph({node("Add", {"x", "w"}, {"y"}, {}, "n")});
  model.initializers = {tensor<float>("w", f32, {3}, {1, 2})};
  expectError(model.model(), ErrorKind::Model, "tensor 'w' holds 8 bytes, but f32 3 needs 12");
  model.initializers = {tensor<float>("w", f32, {-3}, {})};
  expectError(model.model(), ErrorKind::Model, "tensor 'w' has the impossible shape");
  model.initializers = {tensor<float>("w", f32, {int64_t(1) << 40, int64_t(1) << 40}, {})};
  expectError(model.model(), ErrorKind::Model, "impossible shape");
  model.initializers = {floats("w", {1}, {1}), floats("w", {1}, {1})};
  expectError(model.model(), ErrorKind::Model, "two initializers are named 'w'");
  model.initializers = {tensorHead("w", 14, {3})};
  expectError(model.model(), ErrorKind::Unsupported, "weight 'w' has type complex64");
}

/// External data stays in the model's folder, in a regular file that is long enough.
TEST_F(ImportErrors, ExternalData) {
  Graph model = graph({node("Add", {"x", "w"}, {"y"}, {}, "n")});
  auto with = [&](std::vector<std::pair<std::string, std::string>> entries) {
    model.initializers = {externalTensor("w", {3}, entries)};
    return model.model();
  };
  ASSERT_TRUE(writeFile(folder.file("w.bin"), raw<float>({9, 1, 2, 3})).ok());
  ASSERT_EQ(symlink(folder.file("w.bin").c_str(), folder.file("link.bin").c_str()), 0);
  expectError(with({{"location", "../w.bin"}}), ErrorKind::Io, "tensor 'w'");
  expectError(with({{"location", "/etc/passwd"}}), ErrorKind::Io, "tensor 'w'");
  expectError(with({{"location", "link.bin"}}), ErrorKind::Io, "tensor 'w'");
  expectError(with({{"location", "w.bin"}, {"offset", "8"}}), ErrorKind::Model, "tensor 'w'");
  expectError(with({{"location", "w.bin"}, {"offset", "-4"}}), ErrorKind::Model, "offset '-4'");
  expectError(with({{"location", "w.bin"}, {"offset", "4x"}}), ErrorKind::Model, "offset '4x'");
  expectError(with({{"location", "w.bin"}, {"length", "8"}}), ErrorKind::Model,
              "8 bytes, but its type and shape need 12");
  expectError(with({}), ErrorKind::Model, "external data without a location");

  auto module = import(with({{"location", "w.bin"}, {"offset", "4"}, {"length", "12"}}));
  ASSERT_TRUE(module.ok()) << module.status().text();
  NamedArrays inputs = {{"x", Array::zeros(DType::F32, {2, 3})}};
  auto result = runImported(**module, inputs, true);
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ(result->front().floats, std::vector<double>({1, 2, 3, 1, 2, 3}));
}

/// Shapes and contents near the end of 64 bits: whatever makes such a tensor is refused with its node before anything
/// is allocated or multiplied.
TEST_F(ImportErrors, SizesThatCannotBe) {
  constexpr int64_t huge = int64_t(1) << 62, wide = int64_t(1) << 43, lowest = std::numeric_limits<int64_t>::min();
  auto expect = [&](std::vector<std::string> nodes, std::vector<std::string> initializers, ErrorKind kind,
                    const std::string &text) {
    Graph model = graph(std::move(nodes));
    model.initializers = std::move(initializers);
    expectError(model.model(), kind, text);
  };
  auto filled = [](const std::string &from, const std::string &to) {
    return node("ConstantOfShape", {from}, {to}, {}, "fill");
  };
  const std::string cannot = "cannot be; sizes are 0 or more, and at most 2^46 bytes in all";
  expect({filled("s", "f"), node("CumSum", {"f", "a"}, {"y"})}, {ints("s", {2}, {huge, 4}), ints("a", {}, {0})},
         ErrorKind::Model, "node 'fill' (ConstantOfShape): a tensor of shape 4611686018427387904x4 " + cannot);
  expect({filled("s", "f"), node("CumSum", {"f", "a"}, {"y"})}, {ints("s", {3}, {huge, 0, 4}), ints("a", {}, {0})},
         ErrorKind::Model, cannot);
  expect({node("Tile", {"x", "s"}, {"y"}, {}, "n")}, {ints("s", {2}, {huge, 1})}, ErrorKind::Model, cannot);
  expect({node("Tile", {"x", "s"}, {"y"}, {}, "n")}, {ints("s", {2}, {1, huge})}, ErrorKind::Model, cannot);
  expect({node("Expand", {"x", "s"}, {"y"}, {}, "n")}, {ints("s", {4}, {huge, huge, 2, 3})}, ErrorKind::Model, cannot);
  expect({node("Pad", {"x", "s"}, {"y"}, {}, "n")}, {ints("s", {4}, {wide, wide, 0, 0})}, ErrorKind::Model, cannot);
  expect({node("Pad", {"x", "s"}, {"y"}, {}, "n")}, {ints("s", {4}, {0, 0, huge, 0})}, ErrorKind::Model,
         "its pads have 4611686018427387904 for dim 0; at most 2^53 are possible");
  expect({node("Pad", {"x", "s"}, {"y"}, {}, "n")}, {ints("s", {4}, {lowest, 0, lowest, 0})}, ErrorKind::Model,
         "pads that take more from dim 0 than it has");
  expect({filled("s", "f"), node("Concat", {"f", "f", "f", "f", "f"}, {"y"}, {attribute("axis", int64_t(0))}, "n")},
         {ints("s", {1}, {wide})}, ErrorKind::Model, "node 'n' (Concat): a tensor of shape 43980465111040 " + cannot);
  expect({node("Range", {"a", "s", "b"}, {"y"}, {}, "n")},
         {ints("a", {}, {-huge}), ints("s", {}, {huge}), ints("b", {}, {1})}, ErrorKind::Unsupported,
         "a range of more than");
  expect({filled("s", "f"), node("EyeLike", {"f"}, {"y"}, {}, "n")}, {ints("s", {2}, {1 << 20, 1 << 20})},
         ErrorKind::Unsupported, "EyeLike: a constant of 1099511627776 elements");
  expect({filled("s", "f"), node("Trilu", {"f"}, {"y"}, {}, "n")}, {ints("s", {2}, {1 << 20, 1 << 20})},
         ErrorKind::Unsupported, "Trilu: a constant of 1099511627776 elements");
  // Known as a row and as a column, their sum is a matrix.
  expect({node("Range", {"a", "s", "b"}, {"r"}), node("Unsqueeze", {"r", "b"}, {"c"}),
          node("Mul", {"c", "r"}, {"y"}, {}, "n")},
         {ints("a", {}, {0}), ints("s", {}, {1 << 20}), ints("b", {}, {1})}, ErrorKind::Unsupported,
         "Mul: a constant of 1099511627776 elements");
  expect({node("Split", {"x", "s"}, {"y", "z"}, {}, "n")}, {ints("s", {2}, {huge, lowest})}, ErrorKind::Model,
         "its sizes do not add up");
}

/// More dims than a plan can describe are refused at their first tensor, wherever it comes from.
TEST_F(ImportErrors, TooManyDims) {
  Graph model = graph({node("Reshape", {"x", "s"}, {"y"}, {}, "n")});
  std::vector<int64_t> shape(33, 1);
  shape[0] = 6;
  model.initializers = {ints("s", {33}, shape)};
  expectError(model.model(), ErrorKind::Unsupported, "a tensor of 33 dims; at most 24 are possible");
  model = graph({node("Add", {"x", "w"}, {"y"}, {}, "n")});
  model.initializers = {floats("w", std::vector<int64_t>(33, 1), {1})};
  expectError(model.model(), ErrorKind::Unsupported, "a tensor of 33 dims");
  model = graph({node("Neg", {"x"}, {"y"}, {}, "n")});
  model.inputs = {value("x", f32, std::vector<std::string>(33, "1"))};
  expectError(model.model(), ErrorKind::Unsupported, "input 'x': a tensor of 33 dims");
}

/// After its first error an op's import goes on with values that stand for nothing; they must have the rank it counts
/// on.
TEST_F(ImportErrors, TheFirstErrorIsTheOneReported) {
  for (const char *op : {"LogSoftmax", "LayerNormalization", "ReduceLogSumExp"}) {
    Graph model = graph({node(op, {"b"}, {"y"}, {}, "n")}); // of booleans, that is
    model.inputs = {value("b", boolean, {"2", "3"})};
    auto module = import(model.model());
    ASSERT_FALSE(module.ok()) << op;
    EXPECT_NE(module.status().kind(), ErrorKind::Internal) << module.status().text();
  }
}

/// A graph must name what it takes and gives: without a name nobody could be told which array is meant.
TEST_F(ImportErrors, NamelessInputsAndOutputs) {
  Graph model = graph({node("Neg", {"x"}, {""}, {}, "n")});
  model.outputs = {value("", f32, {})};
  expectError(model.model(), ErrorKind::Model, "an output of the graph has no name");
  model = graph({node("Neg", {"x"}, {"y"})});
  model.inputs.push_back(value("", f32, {"2"}));
  expectError(model.model(), ErrorKind::Model, "an input of the graph has no name");
}

/// What is exported in training mode is not silently something else.
TEST_F(ImportErrors, DropoutInTrainingMode) {
  Graph model = graph({node("Dropout", {"x", "r", "t"}, {"y"}, {}, "drop")});
  auto with = [&](float ratio, char training) {
    model.initializers = {floats("r", {}, {ratio}), tensor<char>("t", boolean, {}, {training})};
    return model.model();
  };
  expectError(with(0.5f, 1), ErrorKind::Unsupported,
              "with --inference it passes its input, and hpc-opt --train takes it as it is: node 'drop'");
  ImportOptions training;
  training.training = true;
  for (float ratio : {-0.5f, 1.0f}) {
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), with(ratio, 1)).ok());
    Status status = importOnnx(folder.file("m.onnx"), training, &context).status();
    EXPECT_EQ(status.kind(), ErrorKind::Model);
    EXPECT_THAT(status.message(), HasSubstr("must be at least 0 and less than 1"));
  }
  EXPECT_TRUE(import(with(0.5f, 0)).ok());
  EXPECT_TRUE(import(with(0, 1)).ok());
  EXPECT_TRUE(writeFile(folder.file("m.onnx"), with(0.5f, 1)).ok());
  ImportOptions options;
  options.inference = true;
  std::string remark;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { remark = diagnostic.str(); });
  EXPECT_TRUE(importOnnx(folder.file("m.onnx"), options, &context).ok());
  EXPECT_THAT(remark, HasSubstr("the first is 'drop'"));
}

/// Ten levels of ten calls are 10^10 nodes, or as many calls of nothing: either is refused in no time.
TEST_F(ImportErrors, FunctionsThatGrow) {
  for (bool empty : {false, true}) {
    Graph model = graph({node("F9", {"x"}, {"y"}, {}, "call", "local")});
    for (int level = 0; level < 10; ++level) {
      std::string name = "F" + std::to_string(level), body;
      for (int i = 0; i < 10; ++i)
        if (level || !empty)
          body += bytes(7, node(level ? "F" + std::to_string(level - 1) : "Neg", {i ? "t" + std::to_string(i) : "a"},
                                {i == 9 ? "b" : "t" + std::to_string(i + 1)}, {}, "", level ? "local" : ""));
      model.functions.push_back(bytes(1, name) + bytes(4, "a") + bytes(5, "b") + body +
                                bytes(9, bytes(1, "") + number(2, 18)) + bytes(10, "local"));
    }
    expectError(model.model(), ErrorKind::Model, "expand to over two million nodes");
  }
}

TEST_F(ImportErrors, NotAModel) {
  expectError("", ErrorKind::Model, "no graph in it");
  expectError("hello, this is text", ErrorKind::Model, "m.onnx");
  expectError(number(1, 8), ErrorKind::Model, "no graph in it");
}

/// A file cut off anywhere, or with any byte changed, gives an error or a module; under the address sanitizer it shows
/// more.
TEST_F(ImportErrors, DamageIsFoundOrHarmless) {
  auto file = MappedFile::open(sourcePath("models/mlp/dynamo-op18.onnx"));
  ASSERT_TRUE(file.ok());
  const std::string whole(file->text());
  int64_t refused = 0;
  for (size_t length = 0; length < whole.size(); length += 193) {
    auto module = import(whole.substr(0, length), {{"batch", 2}});
    refused += !module.ok();
    EXPECT_TRUE(module.ok() || module.status().kind() != ErrorKind::Internal)
        << length << ": " << module.status().text();
  }
  EXPECT_GT(refused, 75); // nearly every prefix
  uint64_t state = 12345;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    for (int flips = 0; flips < 1 + round % 3; ++flips) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      // Mostly where the structure is: the weights are most of the file, and any weight will do.
      size_t at = (state >> 33) % (flips % 2 ? damaged.size() : 2700);
      damaged[at] = char(damaged[at] ^ (1 << ((state >> 20) % 8)));
    }
    auto module = import(damaged, {{"batch", 2}});
    EXPECT_TRUE(module.ok() || module.status().kind() != ErrorKind::Internal) << module.status().text();
  }
}

} // namespace
} // namespace hpc
