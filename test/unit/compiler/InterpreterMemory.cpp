// How much memory a run is said to need: --verify refuses by it.
#include "test/unit/compiler/InterpreterFixture.h"

using namespace hpc;

namespace {

constexpr int64_t one = 1000 * 8; // bytes of tensor<1000xf32> in the interpreter

/// A chain holds two values at a time, however long it is: counting all of them would refuse models that fit.
TEST_F(InterpreterTest, peakOfAChainIsTwoValues) {
  for (int length : {1, 2, 7}) {
    std::string body = "func.func @main(%v0: tensor<1000xf32>) -> tensor<1000xf32> {\n";
    for (int i = 0; i < length; ++i)
      body += "  %v" + std::to_string(i + 1) + " = nn.tanh %v" + std::to_string(i) +
              " : tensor<1000xf32> -> tensor<1000xf32>\n";
    func::FuncOp main = parse(body + "  return %v" + std::to_string(length) + " : tensor<1000xf32>\n}");
    EXPECT_EQ(peakBytesOfRun(main), 2 * one) << length;
  }
}

/// What is read later is held until then; a parameter is held from its first use to its last.
TEST_F(InterpreterTest, peakHoldsWhatIsReadLater) {
  func::FuncOp main = parse(R"(func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %w = nn.parameter "w" {value = dense<1.0> : tensor<1000xf32>} : tensor<1000xf32>
    %a = nn.tanh %x : tensor<1000xf32> -> tensor<1000xf32>
    %b = nn.exp %a : tensor<1000xf32> -> tensor<1000xf32>
    %c = nn.mul %b, %w : tensor<1000xf32>, tensor<1000xf32> -> tensor<1000xf32>
    %d = nn.add %c, %x : tensor<1000xf32>, tensor<1000xf32> -> tensor<1000xf32>
    return %d : tensor<1000xf32>
  })");
  EXPECT_EQ(peakBytesOfRun(main), 4 * one); // at the product: x, b, w and the result
}

/// Every coordinate holds its own box, and the whole parameter is there while it is cut.
TEST_F(InterpreterTest, peakCountsCoordinates) {
  func::FuncOp main = parse(R"(module attributes {dist.mesh = #dist.mesh<"dp=2:data, tp=2:tensor">} {
    func.func @main(%x: tensor<4x500xf32, #dist.sharding<"[4, 1000@tp]">>) -> tensor<4x500xf32, #dist.sharding<"[4, 1000@tp]">> {
      %w = nn.parameter "w" {value = dense<1.0> : tensor<1000xf32>} : tensor<500xf32, #dist.sharding<"[1000@tp]">>
      %y = nn.mul %x, %w : tensor<4x500xf32, #dist.sharding<"[4, 1000@tp]">>, tensor<500xf32, #dist.sharding<"[1000@tp]">> -> tensor<4x500xf32, #dist.sharding<"[4, 1000@tp]">>
      return %y : tensor<4x500xf32, #dist.sharding<"[4, 1000@tp]">>
    }
  })");
  dist::Mesh mesh = dist::meshOf(main->getParentOfType<ModuleOp>());
  int64_t x = 4 * 500 * 8 * 4, w = 500 * 8 * 2;
  EXPECT_EQ(peakBytesOfRun(main, &mesh), x + w + x);
}

} // namespace
