// nn.dropout in generated code, on the host and on the device: every element is dropped or kept as the interpreter says, bit
// for bit, whichever rank computes it and however its loops are made.
#include "test/unit/passes/KernelsHarness.h"

#include "runtime/base/Philox.h"

namespace hpc::test {
namespace {

struct DropoutKernelTest : KernelTest {
  /// Masks are compared as booleans, which have no tolerance.
  void checkMask(const std::string &x, double rate, int64_t site, const Tensor &input, double step, double seed) {
    std::string mask = x.substr(0, x.rfind('x') + 1) + "i1>", element = x.substr(x.rfind('x') + 1);
    element.pop_back();
    Tensor steps(DType::F64, {}), seeds(DType::F64, {});
    steps.floats[0] = step;
    seeds.floats[0] = seed;
    checkBody("%x: " + x + ", %step: tensor<f64>, %seed: tensor<f64>",
              "  %d = nn.dropout %x, %step, %seed {site = " + std::to_string(site) + " : i64, rate = " + std::to_string(rate) +
                  " : f64} : " + x + ", tensor<f64>, tensor<f64> -> " + x + "\n  %zero = nn.constant dense<0.0> : tensor<" + element +
                  "> : tensor<" + element + ">\n  %r = nn.compare ne %d, %zero : " + x + ", tensor<" + element + "> -> " + mask,
              mask, {input, steps, seeds});
  }
};

Tensor ones(DType dtype, ArrayRef<int64_t> shape) {
  Tensor tensor(dtype, shape);
  for (double &element : tensor.floats)
    element = 1;
  return tensor;
}

// A word that a vector, a scalar tail or a thread draws otherwise is another mask in backward than in forward, or on a GPU.
TEST_F(DropoutKernelTest, MasksAreThoseOfTheInterpreter) {
  for (auto [rate, site, step, seed] : {std::tuple(0.1, int64_t(0), 1.0, 0.0), std::tuple(0.5, int64_t(7), 4294967296.0, 4294967297.0),
                                        std::tuple(0.9, int64_t(UINT32_MAX), 1000.0, double((int64_t(1) << 53) - 1))}) {
    checkMask("tensor<5x7x33xf32>", rate, site, ones(DType::F32, {5, 7, 33}), step, seed);
    checkMask("tensor<3x64xf64>", rate, site, ones(DType::F64, {3, 64}), step, seed);
    checkMask("tensor<2x3x17xbf16>", rate, site, ones(DType::BF16, {2, 3, 17}), step, seed);
  }
  checkMask("tensor<0x4xf32>", 0.5, 1, ones(DType::F32, {0, 4}), 1, 1);
}

// What is kept is scaled so that the mean stays.
TEST_F(DropoutKernelTest, KeptElementsAreScaled) {
  checkBody("%x: tensor<4x9xf32>, %s: tensor<f64>",
            "  %r = nn.dropout %x, %s, %s {site = 2 : i64, rate = 5.0e-1 : f64} : tensor<4x9xf32>, tensor<f64>, tensor<f64> -> tensor<4x9xf32>",
            "tensor<4x9xf32>", {someFloats({4, 9}), ones(DType::F64, {})});
}

// A mask that is read at another index than it was made for: views, and sums along rows.
TEST_F(DropoutKernelTest, ThroughViewsAndSums) {
  checkBody("%x: tensor<6x8xf32>, %s: tensor<f64>", R"(
    %d = nn.dropout %x, %s, %s {site = 3 : i64, rate = 2.5e-1 : f64} : tensor<6x8xf32>, tensor<f64>, tensor<f64> -> tensor<6x8xf32>
    %t = nn.transpose %d {permutation = array<i64: 1, 0>} : tensor<6x8xf32> -> tensor<8x6xf32>
    %u = nn.reshape %t : tensor<8x6xf32> -> tensor<4x12xf32>
    %m = nn.softmax %u : tensor<4x12xf32> -> tensor<4x12xf32>
    %e = nn.dropout %m, %s, %s {site = 4 : i64, rate = 2.5e-1 : f64} : tensor<4x12xf32>, tensor<f64>, tensor<f64> -> tensor<4x12xf32>
    %n = nn.reduce sum %e {axes = array<i64: 1>} : tensor<4x12xf32> -> tensor<4x1xf32>
    %r = nn.mul %e, %n : tensor<4x12xf32>, tensor<4x1xf32> -> tensor<4x12xf32>)",
            "tensor<4x12xf32>", {someFloats({6, 8}), ones(DType::F64, {})});
}

// Rows in another order, whose positions are an operand, drop what they drop in theirs.
TEST_F(DropoutKernelTest, GivenPositions) {
  Tensor places = someInts({6}, {5, 0, 3, 1, 4, 2});
  places.dtype = DType::I32;
  checkBody("%x: tensor<3x6x9xf32>, %s: tensor<f64>, %p: tensor<6xi32>",
            "  %r = nn.dropout %x, %s, %s offsets %p : tensor<6xi32> {site = 2 : i64, rate = 5.0e-1 : f64, offset_dims = array<i64: 1>} : "
            "tensor<3x6x9xf32>, tensor<f64>, tensor<f64> -> tensor<3x6x9xf32>",
            "tensor<3x6x9xf32>", {someFloats({3, 6, 9}), ones(DType::F64, {}), places});
}

// A rank that counts from its own beginning drops what another drops too. Uneven cuts, and one of a dim within.
TEST_F(DropoutKernelTest, EveryRankHasItsPartOfTheMask) {
  const std::string x = "tensor<3x4x7xf32, #dist.sharding<\"[5@dp, 4, 13@tp]\">>", mask = "tensor<3x4x7xi1, #dist.sharding<\"[5@dp, 4, 13@tp]\">>";
  parse("module attributes {dist.mesh = #dist.mesh<\"dp=2:data, tp=2:tensor\">} {\nfunc.func @main(%x: " + x + ", %s: tensor<f64, #dist.sharding<\"[]\">>) -> " + mask + " {\n" + R"(
    %a = dist.offset {dim = #dist.sharding<"[5@dp]">} : tensor<i64, #dist.sharding<"[]">>
    %b = dist.offset {dim = #dist.sharding<"[13@tp]">} : tensor<i64, #dist.sharding<"[]">>
    %d = nn.dropout %x, %s, %s offsets %a, %b : tensor<i64, #dist.sharding<"[]">>, tensor<i64, #dist.sharding<"[]">> {site = 1 : i64, rate = 5.0e-1 : f64, global_shape = array<i64: 5, 4, 13>, offset_dims = array<i64: 0, 2>} : )" +
        x + ", tensor<f64, #dist.sharding<\"[]\">>, tensor<f64, #dist.sharding<\"[]\">> -> " + x + R"(
    %zero = nn.constant dense<0.0> : tensor<f32> : tensor<f32, #dist.sharding<"[]">>
    %r = nn.compare ne %d, %zero : )" + x + ", tensor<f32, #dist.sharding<\"[]\">> -> " + mask + "\n  return %r : " + mask + "\n}\n}");
  if (HasFatalFailure())
    return;
  check("main", {ones(DType::F32, {5, 4, 13}), ones(DType::F64, {})}, true);
  // And the whole is what the stream says.
  auto results = runPartitioned(module->lookupSymbol<func::FuncOp>("main"), {ones(DType::F32, {5, 4, 13}), ones(DType::F64, {})},
                                dist::meshOf(*module), {});
  ASSERT_TRUE(results.ok()) << results.status().text();
  const philox::DropoutStream stream{1, 1, 1};
  for (int64_t i = 0; i < 5 * 4 * 13; ++i)
    EXPECT_EQ((*results)[0].ints[size_t(i)], stream.word(uint64_t(i)) >= philox::dropoutThreshold(0.5)) << i;
}

} // namespace
} // namespace hpc::test
