// Types that are only stored: their codes, rounding into them, moving them, and refusing to compute with them.
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include "compiler/Import/NarrowTypes.h"
#include "runtime/base/File.h"

#include <gmock/gmock.h>

namespace hpc {
namespace {

using namespace onnxwriter;
using onnx::NarrowType;
using testing::HasSubstr;

// Numbers of the formats' definitions (OCP 8-bit floating point, table 2; microscaling formats; ONNX's float8 page).
TEST(NarrowTypes, CodesAsDefined) {
  auto number = [](int64_t type, int code) { return onnx::decoded(*onnx::narrowTypeOfCode(type), code); };
  EXPECT_EQ(number(17, 0x7e), 448);
  EXPECT_EQ(number(17, 0x08), 0x1p-6);
  EXPECT_EQ(number(17, 0x81), -0x1p-9);
  EXPECT_TRUE(std::isnan(number(17, 0x7f)) && std::isnan(number(17, 0xff)));
  EXPECT_EQ(number(18, 0x7f), 240);
  EXPECT_TRUE(std::isnan(number(18, 0x80)));
  EXPECT_EQ(number(19, 0x7b), 57344);
  EXPECT_EQ(number(19, 0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(number(19, 0x7d)));
  EXPECT_EQ(number(20, 0x7f), 57344);
  EXPECT_EQ(number(20, 0x01), 0x1p-17);
  EXPECT_EQ(number(24, 0), 0x1p-127);
  EXPECT_EQ(number(24, 254), 0x1p127);
  for (auto [code, value] : {std::pair(1, 0.5), {2, 1.0}, {3, 1.5}, {5, 3.0}, {7, 6.0}, {15, -6.0}})
    EXPECT_EQ(number(23, code), value);
}

struct ImportNarrow : testing::Test {
  TemporaryFolder folder;
  MLIRContext context;

  /// y of x through Cast to the type and back.
  std::vector<double> throughType(int64_t type, const std::vector<double> &x, bool saturate = true) {
    Graph model;
    std::string count = std::to_string(x.size());
    model.nodes = {node("Cast", {"x"}, {"t"}, {attribute("to", type), attribute("saturate", int64_t(saturate))}),
                   node("Reshape", {"t", "s"}, {"m"}), node("Transpose", {"m"}, {"u"}),
                   node("Cast", {"u"}, {"y"}, {attribute("to", int64_t(1))})};
    model.initializers = {ints("s", {2}, {1, -1})};
    model.inputs = {value("x", f32, {count})};
    model.outputs = {value("y", f32, {})};
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
    auto module = importOnnx(folder.file("m.onnx"), {}, &context);
    EXPECT_TRUE(module.ok()) << module.status().text();
    Tensor input(DType::F32, {int64_t(x.size())});
    input.floats = x;
    auto results = module.ok() ? runImported(**module, {{"x", tensorToArray(input)}}, false)
                               : Expected<std::vector<Tensor>>(module.status());
    EXPECT_TRUE(results.ok()) << results.status().text();
    return results.ok() ? results->front().floats : std::vector<double>();
  }
};

// Every number of every float type stands for itself, and half way between two neighbours the even code wins.
TEST_F(ImportNarrow, RoundToNearestEven) {
  for (int64_t code : {17, 18, 19, 20, 23}) {
    const NarrowType &type = *onnx::narrowTypeOfCode(code);
    std::vector<double> x, expected;
    for (int i = 0; i <= type.largest; ++i)
      for (double sign : {1.0, -1.0}) {
        double own = onnx::decoded(type, i), next = onnx::decoded(type, i + 1);
        x.push_back(sign * own);
        expected.push_back(sign * own);
        if (i == type.largest)
          continue;
        x.push_back(sign * (own + next) / 2);
        expected.push_back(sign * (i % 2 ? next : own));
        x.push_back(sign * (own + 0.75 * (next - own)));
        expected.push_back(sign * next);
      }
    SCOPED_TRACE(type.name);
    EXPECT_EQ(throughType(code, x), expected);
  }
}

// Beyond the largest number: that number, or what the type has for it.
TEST_F(ImportNarrow, WhatIsTooLarge) {
  auto isNan = testing::NanSensitiveDoubleEq(NAN);
  std::vector<double> x = {1e6, -INFINITY, NAN};
  EXPECT_THAT(throughType(17, x), testing::ElementsAre(448, -448, isNan));
  EXPECT_THAT(throughType(17, x, false), testing::ElementsAre(isNan, isNan, isNan));
  EXPECT_THAT(throughType(19, x, false), testing::ElementsAre(INFINITY, -INFINITY, isNan));
  EXPECT_THAT(throughType(20, x, false), testing::ElementsAre(isNan, isNan, isNan));
  EXPECT_THAT(throughType(23, {9, -9}), testing::ElementsAre(6, -6));
  // 464 is half way to 480, which is no number of float8e4m3fn.
  EXPECT_THAT(throughType(17, {464, 465}, false), testing::ElementsAre(448, isNan));
}

// Integers keep their low bits, with the sign that they then have.
TEST_F(ImportNarrow, IntegersWrap) {
  EXPECT_THAT(throughType(22, {7, 8, -8, -9, 15}), testing::ElementsAre(7, -8, -8, 7, -1));
  EXPECT_THAT(throughType(21, {15, 16, -1}), testing::ElementsAre(15, 0, 15));
  EXPECT_THAT(throughType(26, {1, 2, -2}), testing::ElementsAre(1, -2, -2));
}

// Two elements to a byte in the file, the first one low; an odd number of them; a sign; and one byte too few.
TEST_F(ImportNarrow, PackedTensors) {
  Graph model;
  model.nodes = {node("Cast", {"w"}, {"f"}, {attribute("to", int64_t(1))}), node("Add", {"x", "f"}, {"y"})};
  model.inputs = {value("x", f32, {"3"})};
  model.outputs = {value("y", f32, {})};
  model.initializers = {tensor<uint8_t>("w", 22, {3}, {0xf1, 0x08})};
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  auto module = importOnnx(folder.file("m.onnx"), {}, &context);
  ASSERT_TRUE(module.ok()) << module.status().text();
  auto results = runImported(**module, {{"x", Array::zeros(DType::F32, {3})}}, false);
  ASSERT_TRUE(results.ok());
  EXPECT_THAT(results->front().floats, testing::ElementsAre(1, -1, -8));
  model.initializers = {tensor<uint8_t>("w", 22, {3}, {0xf1})};
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  Status status = importOnnx(folder.file("m.onnx"), {}, &context).status();
  EXPECT_EQ(status.kind(), ErrorKind::Model);
  EXPECT_THAT(status.message(), HasSubstr("holds 1 byte, but int4 3 needs 2"));
}

// A large one is read where it lies in the file, as the bytes of other weights are: protobuf's copy of them is left out.
TEST_F(ImportNarrow, LargePackedTensors) {
  Graph model;
  model.nodes = {node("Cast", {"w"}, {"f"}, {attribute("to", int64_t(1))}), node("Add", {"x", "f"}, {"y"})};
  model.inputs = {value("x", f32, {"4096"})};
  model.outputs = {value("y", f32, {})};
  std::vector<uint8_t> bytes(2048);
  std::vector<double> expected;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = uint8_t(i * 37);
    for (int code : {bytes[i] & 15, bytes[i] >> 4})
      expected.push_back(code < 8 ? code : code - 16);
  }
  model.initializers = {tensor<uint8_t>("w", 22, {4096}, bytes)};
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  auto module = importOnnx(folder.file("m.onnx"), {}, &context);
  ASSERT_TRUE(module.ok()) << module.status().text();
  auto results = runImported(**module, {{"x", Array::zeros(DType::F32, {4096})}}, false);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->front().floats, expected);
  bytes.pop_back();
  model.initializers = {tensor<uint8_t>("w", 22, {4096}, bytes)};
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  EXPECT_THAT(importOnnx(folder.file("m.onnx"), {}, &context).status().message(),
              HasSubstr("holds 2047 bytes, but int4 4096 needs 2048"));
}

// Bits that were added as if they were bytes would be a wrong number without a word.
TEST_F(ImportNarrow, NothingComputesWithThem) {
  Graph model;
  model.nodes = {node("Add", {"x", "x"}, {"y"}, {}, "sum")};
  model.inputs = {value("x", 17, {"3"})};
  model.outputs = {value("y", 17, {})};
  ASSERT_TRUE(writeFile(folder.file("m.onnx"), model.model()).ok());
  Status status = importOnnx(folder.file("m.onnx"), {}, &context).status();
  EXPECT_EQ(status.kind(), ErrorKind::Unsupported);
  EXPECT_THAT(status.message(),
              HasSubstr("Add: numbers of type float8e4m3fn, which are stored, moved and cast, but not "
                        "computed with; cast them to a float first: node 'sum'"));
}

} // namespace
} // namespace hpc
