// Convolutions, pools and resizes as files spell them: what a wrong file can say about windows, and the form that the
// right ones get in the program.
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include "compiler/Dialect/NN/NN.h"
#include "runtime/base/File.h"

#include <cmath>

#include <gmock/gmock.h>

namespace hpc {
namespace {

using namespace onnxwriter;
using testing::HasSubstr;

constexpr int64_t huge = int64_t(1) << 62;

class ImportImages : public testing::Test {
protected:
  Expected<OwningOpRef<ModuleOp>> import(const Graph &graph) {
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), graph.model()).ok());
    return importOnnx(folder.file("m.onnx"), {}, &context);
  }
  /// x [2, 4, 6, 6] and the op's other inputs -> y
  static Graph graph(const std::string &op, std::vector<std::string> inputs = {},
                     const std::vector<std::string> &attributes = {}) {
    Graph result;
    inputs.insert(inputs.begin(), "x");
    result.nodes = {node(op, inputs, {"y"}, attributes, "n")};
    result.inputs = {value("x", f32, {"2", "4", "6", "6"})};
    result.outputs = {value("y", f32, {})};
    return result;
  }
  void expectError(const Graph &graph, ErrorKind kind, const std::string &text) {
    auto module = import(graph);
    ASSERT_FALSE(module.ok()) << "expected: " << text;
    EXPECT_EQ(module.status().kind(), kind) << module.status().text();
    EXPECT_THAT(module.status().message(), HasSubstr(text));
  }
  /// How often the program has an op.
  static int64_t count(ModuleOp module, StringRef name) {
    int64_t number = 0;
    module.walk([&](Operation *op) { number += op->getName().getStringRef() == name; });
    return number;
  }
  static std::string kernel(const std::vector<int64_t> &dims) {
    int64_t size = 1;
    for (int64_t dim : dims)
      size *= dim;
    std::vector<float> numbers;
    for (int64_t i = 0; i < size; ++i)
      numbers.push_back(float(i));
    return floats("w", dims, numbers);
  }
  TemporaryFolder folder;
  MLIRContext context;
};

// A wrong weight would be read past its end, or silently mean another convolution.
TEST_F(ImportImages, ConvolutionsThatDoNotFit) {
  auto conv = [&](const std::vector<int64_t> &dims, const std::vector<std::string> &attributes = {}) {
    Graph model = graph("Conv", {"w"}, attributes);
    model.initializers = {kernel(dims)};
    return model;
  };
  EXPECT_TRUE(import(conv({3, 4, 2, 2})).ok());
  expectError(conv({3, 5, 2, 2}), ErrorKind::Model, "its group is 1, its input has 4 channels");
  expectError(conv({3, 2, 2, 2}, {attribute("group", 2)}), ErrorKind::Model, "its group is 2");
  expectError(conv({3, 4, 2, 2}, {attribute("group", 0)}), ErrorKind::Model, "its group is 0");
  expectError(conv({3, 4, 2, 2}, {attribute("group", huge)}), ErrorKind::Model, "its group is 4611686018427387904");
  expectError(conv({3, 4, 2}), ErrorKind::Model, "its input and weight have 4 and 3 dims");
  expectError(conv({3, 4, 2, 2}, {attribute("kernel_shape", {2, 3})}), ErrorKind::Model, "differs from its weight's");
  expectError(conv({3, 4, 2, 2}, {attribute("strides", std::vector<int64_t>{1})}), ErrorKind::Model,
              "its strides has 1 number");
  expectError(conv({3, 4, 2, 2}, {attribute("strides", {0, 1})}), ErrorKind::Model, "its strides has 0");
  expectError(conv({3, 4, 2, 2}, {attribute("dilations", {1, huge})}), ErrorKind::Model, "its dilations has 4611");
  expectError(conv({3, 4, 2, 2}, {attribute("pads", {0, 0, 0, -1})}), ErrorKind::Model, "its pads has -1");
  expectError(conv({3, 4, 2, 2}, {attribute("dilations", {1, 6})}), ErrorKind::Model,
              "its window of 2, dilated by 6, is longer than dim 3 of size 6 with pads of 0 and 0");
  expectError(conv({3, 4, 2, 2}, {textAttribute("auto_pad", "SOME")}), ErrorKind::Model, "its auto_pad is 'SOME'");
  Graph biased = conv({3, 4, 2, 2});
  biased.nodes = {node("Conv", {"x", "w", "b"}, {"y"}, {}, "n")};
  biased.initializers.push_back(floats("b", {2}, {1, 2}));
  expectError(biased, ErrorKind::Model, "its bias must have 3 elements in one dim");
}

// What cannot be done is said with the flag or the op that can.
TEST_F(ImportImages, WhatIsRefused) {
  Graph norm = graph("BatchNormalization", {"s", "b", "m", "v"}, {attribute("training_mode", 1)});
  for (const char *name : {"s", "b", "m", "v"})
    norm.initializers.push_back(floats(name, {4}, {1, 2, 3, 4}));
  expectError(norm, ErrorKind::Unsupported, "--inference");
  ImportOptions inference;
  inference.inference = true;
  EXPECT_TRUE(importOnnx(folder.file("m.onnx"), inference, &context).ok());
  Graph scaled = graph("Resize", {"", "scales"}, {textAttribute("mode", "linear")});
  scaled.inputs.push_back(value("scales", f32, {"4"}));
  expectError(scaled, ErrorKind::Unsupported, "its scales depends on the data");
  Graph whole = graph("Resize", {"", "scales"}, {textAttribute("mode", "linear")});
  whole.inputs = {value("x", i64, {"2", "4", "6", "6"})};
  whole.outputs = {value("y", i64, {})};
  whole.initializers = {floats("scales", {4}, {1, 1, 2, 2})};
  expectError(whole, ErrorKind::Unsupported, "interpolation of i64");
  Graph long_ = graph("Resize", {"", "", "sizes"}, {});
  long_.initializers = {ints("sizes", {4}, {2, 4, 6, huge})};
  expectError(long_, ErrorKind::Model, "its sizes have");
  long_.initializers = {ints("sizes", {4}, {2, 4, 6, int64_t(1) << 40})};
  expectError(long_, ErrorKind::Unsupported, "dim 3 resized to 1099511627776 elements");
  Graph grouped = graph("GroupNormalization", {"s", "s"}, {attribute("num_groups", 3)});
  grouped.initializers = {floats("s", {4}, {1, 2, 3, 4})};
  expectError(grouped, ErrorKind::Model, "its num_groups is 3, which does not divide 4 channels");
  Graph positions = graph("AffineGrid", {"s"}); // more points than can be counted
  positions.inputs = {value("x", f32, {"1", "2", "3"})};
  positions.opset = 20;
  positions.initializers = {ints("s", {4}, {1, 1, INT64_MAX / 2, 1})};
  expectError(positions, ErrorKind::Unsupported, "a constant of 9223372036854775807 elements");
}

// A patch embedding copies its input once, into rows of patches; a kernel of one element copies nothing.
TEST_F(ImportImages, WhatNeedsNoWindow) {
  Graph patches = graph("Conv", {"w"}, {attribute("strides", {3, 2})});
  patches.initializers = {kernel({5, 4, 3, 2})};
  auto module = import(patches);
  ASSERT_TRUE(module.ok()) << module.status().text();
  EXPECT_EQ(count(**module, "nn.window"), 0);
  EXPECT_EQ(count(**module, "nn.matmul"), 1);
  Graph points = graph("Conv", {"w"});
  points.initializers = {kernel({5, 4, 1, 1})};
  module = import(points);
  ASSERT_TRUE(module.ok()) << module.status().text();
  EXPECT_EQ(count(**module, "nn.window") + count(**module, "nn.transpose") + count(**module, "nn.slice"), 0);
}

// One channel a group is a sum over each window: as products of one row and a few columns it would cost the windows'
// memory and thousands of calls. Bytes become floats that hold their sums exactly, and f64 where f32 does not.
TEST_F(ImportImages, GroupsOfOneChannelAndBytes) {
  Graph depthwise = graph("Conv", {"w"}, {attribute("group", 4), attribute("pads", {1, 1, 1, 1})});
  depthwise.initializers = {kernel({8, 1, 3, 3})};
  auto module = import(depthwise);
  ASSERT_TRUE(module.ok()) << module.status().text();
  EXPECT_EQ(count(**module, "nn.matmul"), 0);
  EXPECT_EQ(count(**module, "nn.reduce"), 1);
  for (int64_t channels : {28, 29}) { // 28 * 9 products of 255 * 255 are below 2^24
    Graph bytes;
    bytes.nodes = {node("ConvInteger", {"x", "w"}, {"y"}, {}, "n")};
    bytes.inputs = {value("x", 2, {"1", std::to_string(channels), "3", "3"})};
    bytes.initializers = {
        tensor<uint8_t>("w", 2, {1, channels, 3, 3}, std::vector<uint8_t>(size_t(channels * 9), 255))};
    bytes.outputs = {value("y", 6, {})};
    module = import(bytes);
    ASSERT_TRUE(module.ok()) << module.status().text();
    Array x = Array::zeros(DType::U8, {1, channels, 3, 3});
    std::fill(x.as<uint8_t>(), x.as<uint8_t>() + channels * 9, uint8_t(255));
    auto results = runImported(**module, {{"x", x}}, false);
    ASSERT_TRUE(results.ok()) << results.status().text();
    EXPECT_EQ(results->front().ints, std::vector<int64_t>({channels * 9 * 255 * 255}));
  }
}

// Twice the size by nearest neighbours is a broadcast, every second element a slice: neither reads a table of indices.
TEST_F(ImportImages, ResizesThatAreViews) {
  for (std::vector<float> scales : {std::vector<float>{1, 1, 2, 3}, std::vector<float>{1, 1, 0.5, 1}}) {
    Graph model =
        graph("Resize", {"", "scales"},
              {textAttribute("coordinate_transformation_mode", "asymmetric"), textAttribute("nearest_mode", "floor")});
    model.initializers = {floats("scales", {4}, scales)};
    auto module = import(model);
    ASSERT_TRUE(module.ok()) << module.status().text();
    EXPECT_EQ(count(**module, "nn.gather"), 0);
    EXPECT_EQ(count(**module, "nn.parameter") + count(**module, "nn.constant"), 0);
  }
}

// Against ONNX Runtime. A count that is rounded up may leave one window, which reaches over the end: without it the
// pool has no result. A position within half a pixel of the border is not clamped before its neighbours are weighed.
TEST_F(ImportImages, AtTheBorder) {
  Array x = Array::zeros(DType::F32, {1, 1, 6, 6});
  for (int i = 0; i < 36; ++i)
    x.as<float>()[i] = float(i * i) / 100;
  auto run = [&](Graph model) {
    model.inputs = {value("x", f32, {"1", "1", "6", "6"})};
    model.opset = 20;
    auto module = import(model);
    EXPECT_TRUE(module.ok()) << module.status().text();
    auto results = module.ok() ? runImported(**module, {{"x", x}}, false) : module.status();
    EXPECT_TRUE(results.ok());
    return results.ok() ? results->front().floats : std::vector<double>();
  };
  Graph pool = graph("MaxPool", {},
                     {attribute("kernel_shape", {8, 1}), attribute("strides", {3, 5}), attribute("ceil_mode", 1)});
  EXPECT_THAT(run(pool), testing::ElementsAre(9.0, 12.25));
  Graph grid = graph("GridSample", {"g"}, {textAttribute("mode", "cubic"), textAttribute("padding_mode", "border")});
  grid.initializers = {floats("g", {1, 1, 2, 2}, {-1.0f, 0.0f, 0.97f, -0.95f})};
  EXPECT_THAT(run(grid),
              testing::ElementsAre(testing::DoubleNear(2.1759374, 1e-6), testing::DoubleNear(0.15173954, 1e-6)));
}

// A response over more channels than there are sums over those there are: it takes no longer, and all of them count.
TEST_F(ImportImages, MoreNeighboursThanChannels) {
  Array x = Array::zeros(DType::F32, {1, 5, 1});
  for (int i = 0; i < 5; ++i)
    x.as<float>()[i] = float(10 * i);
  for (int64_t size : {int64_t(20), int64_t(1) << 40, INT64_MAX}) {
    Graph model = graph("LRN", {}, {attribute("size", size)});
    model.inputs = {value("x", f32, {"1", "5", "1"})};
    auto module = import(model);
    ASSERT_TRUE(module.ok()) << module.status().text();
    auto results = runImported(**module, {{"x", x}}, false);
    ASSERT_TRUE(results.ok()) << results.status().text();
    for (int i = 0; i < 5; ++i)
      EXPECT_NEAR(results->front().floats[size_t(i)], 10 * i / std::pow(1 + 1e-4f / double(size) * 3000, 0.75), 1e-5);
  }
}

// Any numbers in the attributes give a program or one clear error: no crash, no overflow, no internal error, no hang.
TEST_F(ImportImages, AnyAttributes) {
  const int64_t numbers[] = {0, 1, 2, 3, 4, 7, -1, 1 << 20, int64_t(1) << 53, huge, INT64_MAX, INT64_MIN};
  uint64_t state = 99;
  auto below = [&](uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  auto number = [&] { return numbers[below(below(3) ? 4 : std::size(numbers))]; }; // mostly sensible
  auto list = [&](size_t size) {
    std::vector<int64_t> values(below(12) ? size : below(6));
    for (int64_t &value : values)
      value = number();
    return values;
  };
  int64_t accepted = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<std::string> attributes;
    auto maybe = [&](const std::string &attribute) {
      if (below(2))
        attributes.push_back(attribute);
    };
    maybe(attribute("kernel_shape", list(2)));
    maybe(attribute("strides", list(2)));
    maybe(attribute("dilations", list(2)));
    maybe(attribute("pads", list(4)));
    maybe(attribute("output_padding", list(2)));
    maybe(attribute("output_shape", list(2)));
    maybe(attribute("ceil_mode", 1));
    maybe(attribute("group", number()));
    maybe(attribute("blocksize", number()));
    maybe(attribute("size", number()));
    maybe(attribute("num_groups", number()));
    maybe(textAttribute("auto_pad", below(2) ? "SAME_UPPER" : "SAME_LOWER"));
    const char *ops[] = {"Conv",   "ConvTranspose", "MaxPool",      "AveragePool",   "LpPool", "Col2Im",
                         "Resize", "DepthToSpace",  "SpaceToDepth", "CenterCropPad", "LRN"};
    std::string op = ops[below(std::size(ops))];
    Graph model = graph(op,
                        op == "Conv" || op == "ConvTranspose" ? std::vector<std::string>{"w"}
                        : op == "Col2Im"                      ? std::vector<std::string>{"s", "s"}
                        : op == "CenterCropPad"               ? std::vector<std::string>{"s"}
                        : op == "Resize"                      ? std::vector<std::string>{"", "", "s"}
                                                              : std::vector<std::string>{},
                        attributes);
    if (op == "Col2Im")
      model.inputs = {value("x", f32, {"2", "4", "36"})};
    if (op == "MaxPool" && below(2))
      model.nodes = {node(op, {"x"}, {"y", "indices"}, attributes, "n")};
    std::vector<int64_t> sizes = list(op == "Col2Im" ? 2 : 4);
    model.initializers = {kernel({4, 4, int64_t(1 + below(3)), 2}), ints("s", {int64_t(sizes.size())}, sizes)};
    auto module = import(model);
    accepted += module.ok();
    EXPECT_TRUE(module.ok() || module.status().kind() != ErrorKind::Internal) << op << ": " << module.status().text();
  }
  EXPECT_GT(accepted, 60);
  EXPECT_LT(accepted, 540);
}

} // namespace
} // namespace hpc
