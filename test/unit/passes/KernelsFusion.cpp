// Fusion of values that are read at several indices, layer upon layer: the code made must grow with the layers, not double
// with each. Counted in ops, since time says nothing on a shared machine.
#include "test/unit/passes/KernelsHarness.h"

#include "passes/Kernels/Host/RegionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hpc::test {
namespace {

constexpr const char *type = "tensor<6x8xf32>";

/// One layer from %y<i> to %y<i+1>.
struct Layer {
  const char *name;
  std::string (*text)(std::string from, std::string to);
};
const Layer layers[] = {
    {"shift",
     [](std::string from, std::string to) {
       return to + "s = nn.slice " + from + " {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : " + type +
              " -> tensor<6x7xf32>\n" + to + "p = nn.pad " + to +
              "s {low = array<i64: 0, 1>, high = array<i64: 0, 0>, value = 0.0 : f32} : tensor<6x7xf32> -> " + type +
              "\n" + to + " = nn.add " + from + ", " + to + "p : " + type + ", " + type + " -> " + type + "\n";
     }},
    {"reverse",
     [](std::string from, std::string to) {
       return to + "s = nn.slice " + from + " {starts = array<i64: 0, 7>, steps = array<i64: 1, -1>} : " + type +
              " -> " + type + "\n" + to + " = nn.add " + from + ", " + to + "s : " + type + ", " + type + " -> " +
              type + "\n";
     }},
    {"transpose",
     [](std::string from, std::string to) {
       return to + "r = nn.reshape " + from + " : " + type + " -> tensor<8x6xf32>\n" + to + "t = nn.transpose " + to +
              "r {permutation = array<i64: 1, 0>} : tensor<8x6xf32> -> " + type + "\n" + to + " = nn.add " + from +
              ", " + to + "t : " + type + ", " + type + " -> " + type + "\n";
     }},
    {"rotate",
     [](std::string from, std::string to) {
       return to + "a = nn.slice " + from + " {starts = array<i64: 0, 3>, steps = array<i64: 1, 1>} : " + type +
              " -> tensor<6x5xf32>\n" + to + "b = nn.slice " + from +
              " {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : " + type + " -> tensor<6x3xf32>\n" + to +
              "c = nn.concat " + to + "a, " + to +
              "b {axis = 1 : i64} : tensor<6x5xf32>, tensor<6x3xf32> -> " + type + "\n" + to + " = nn.sub " + from +
              ", " + to + "c : " + type + ", " + type + " -> " + type + "\n";
     }},
    {"square", [](std::string from, std::string to) {
       return to + "h = nn.relu " + from + " : " + type + " -> " + type + "\n" + to + " = nn.sub " + to + "h, " + from +
              " : " + type + ", " + type + " -> " + type + "\n";
     }}};

struct Fusion : KernelTest, testing::WithParamInterface<Layer> {
  std::string chain(int count, const std::string &first) {
    std::string body = first;
    for (int i = 0; i < count; ++i)
      body += GetParam().text("%y" + std::to_string(i), "%y" + std::to_string(i + 1));
    return body + "%r = nn.neg %y" + std::to_string(count) + " : " + type + " -> " + type;
  }
  std::string function(int count, const std::string &first) {
    return std::string("func.func @main(%x: ") + type + ") -> " + type + " {\n" + chain(count, first) +
           "\n  return %r : " + type + "\n}";
  }
  /// Ops of generated code for a chain, before LLVM sees them.
  int64_t codeSize(int count, const std::string &first) {
    parse(function(count, first));
    PassManager manager(&context);
    manager.addPass(createFuseRegions());
    EXPECT_TRUE(succeeded(manager.run(*module)));
    context.loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect, LLVM::LLVMDialect>();
    int64_t size = 0;
    module->walk([&](nn::FusedOp region) {
      OwningOpRef<ModuleOp> code = ModuleOp::create(UnknownLoc::get(&context));
      EXPECT_TRUE(succeeded(kernels::emitRegion(region, *code, kernels::vectorUnitOf("host"))));
      code->walk([&](Operation *) { ++size; });
    });
    return size;
  }
};

const std::string ofInput = std::string("%y0 = nn.abs %x : ") + type + " -> " + type + "\n";
/// Nothing but constants: what fusion would clone into every reader.
const std::string ofNothing = std::string("%y0 = nn.iota {dim = 1 : i64, start = 1 : i64} : ") + type + "\n";

TEST_P(Fusion, CodeGrowsWithTheLayers) {
  for (const std::string &first : {ofInput, ofNothing}) {
    int64_t small = codeSize(8, first), large = codeSize(24, first);
    EXPECT_LE(large, 6 * small) << first;
    EXPECT_LE(large, 24 * 400) << first;
  }
}
TEST_P(Fusion, EqualsTheInterpreter) {
  toleranceScale = 10;
  parse(function(9, ofInput));
  check("main", {someFloats({6, 8})});
  EXPECT_GT(numKernelRuns, 0);
}
INSTANTIATE_TEST_SUITE_P(Layers, Fusion, testing::ValuesIn(layers),
                         [](const testing::TestParamInfo<Layer> &info) { return std::string(info.param.name); });

// An exponential that is read at two indices of one loop is computed once, in a kernel of its own.
TEST_F(KernelTest, ExpensiveIsNotRepeatedByViews) {
  checkBody("%x: tensor<6x8xf32>", R"(
    %0 = nn.exp %x : tensor<6x8xf32> -> tensor<6x8xf32>
    %1 = nn.slice %0 {starts = array<i64: 0, 7>, steps = array<i64: 1, -1>} : tensor<6x8xf32> -> tensor<6x8xf32>
    %r = nn.add %0, %1 : tensor<6x8xf32>, tensor<6x8xf32> -> tensor<6x8xf32>)",
            "tensor<6x8xf32>", {someFloats({6, 8})});
  EXPECT_EQ(numKernelRuns, 2);
}

} // namespace
} // namespace hpc::test
