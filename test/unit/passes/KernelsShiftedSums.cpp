// The largest element of a long row and the sum of exponentials below it, in one go (HostShiftedSums.cpp), as a cross
// entropy over a vocabulary has them: rows whose maximum rises late, in every group or never, and those without a
// number to begin with.
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

struct ShiftedSums : KernelTest {
  /// Of [rows, columns]: 1 / maximum (for the sign of a zero), the sum, its logarithm plus the maximum, and the shares.
  void checkRows(const Tensor &x) {
    std::string table = "tensor<", row = "tensor<" + std::to_string(x.shape[0]) + "x1xf32>";
    table += std::to_string(x.shape[0]) + "x" + std::to_string(x.shape[1]) + "xf32>";
    parse("func.func @main(%x: " + table + ") -> (" + row + ", " + row + ", " + row + ", " + table + ") {\n" +
          "%m = nn.reduce max %x {axes = array<i64: 1>} : " + table + " -> " + row + "\n%d = nn.sub %x, %m : " + table +
          ", " + row + " -> " + table + "\n%e = nn.exp %d : " + table + " -> " + table +
          "\n%s = nn.reduce sum %e {axes = array<i64: 1>} : " + table + " -> " + row + "\n%l = nn.log %s : " + row +
          " -> " + row + "\n%t = nn.add %l, %m : " + row + ", " + row + " -> " + row +
          "\n%i = nn.reciprocal %m : " + row + " -> " + row + "\n%r = nn.div %e, %s : " + table + ", " + row + " -> " +
          table + "\nreturn %i, %s, %t, %r : " + row + ", " + row + ", " + row + ", " + table + "\n}");
    check("main", {x});
  }
};

// 4,096 columns are whole groups, 4,351 end in lanes of a group and one that is not full, 4,200 in one that has a
// block.
TEST_F(ShiftedSums, HardRows) {
  for (int64_t columns : {4096, 4200, 4351, 9001}) {
    SCOPED_TRACE(columns);
    const int64_t rows = 12;
    Tensor x = someFloats({rows, columns}, unsigned(columns));
    auto at = [&](int64_t row, int64_t column) -> double & { return x.floats[size_t(row * columns + column)]; };
    for (int64_t j = 0; j < columns; ++j) {
      at(0, j) = -INFINITY;
      at(1, j) = j < 700 ? -INFINITY : at(1, j);
      at(2, j) = j == columns - 1 ? -3.0 : -INFINITY;
      at(6, j) = 0.015625 * double(j);
      at(7, j) = -0.015625 * double(j);
      at(8, j) = -0.0;
      at(9, j) = j == columns - 2 ? 0.0 : j % 2 ? -0.0 : -1e-20;
      at(10, j) = 1e30 * (j % 300 - 170);
      at(11, j) = j == 300 ? 50 : at(11, j) - 50;
    }
    at(3, columns / 2) = NAN;
    at(4, columns - 1) = INFINITY;
    at(5, 10) = NAN, at(5, 2000) = INFINITY;
    round(x);
    toleranceScale = 40; // thousands of terms
    checkRows(x);
    EXPECT_EQ(numKernelRuns, 1);
    numKernelRuns = 0;
  }
}

// A maximum that rises in every group costs a rounding each: no more than adding up does.
TEST_F(ShiftedSums, RisingRowsKeepTheirDigits) {
  const int64_t columns = 50257;
  Tensor x(DType::F32, {2, columns});
  double expected[2] = {0, 0};
  for (int64_t j = 0; j < columns; ++j) {
    x.floats[size_t(j)] = float(1e-4 * double(j));
    x.floats[size_t(columns + j)] = float(1e-4 * double(columns - 1 - j));
  }
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t j = 0; j < columns; ++j)
      expected[row] +=
          std::exp(x.floats[size_t(row * columns + j)] - x.floats[size_t(row == 0 ? columns - 1 : columns)]);
  std::string table = "tensor<2x50257xf32>", row = "tensor<2x1xf32>";
  parse("func.func @main(%x: " + table + ") {\n%r = nn.fused \"f\"(%x) : (" + table + ") -> " + row +
        " {\n^bb0(%a: " + table + "):\n%m = nn.reduce max %a {axes = array<i64: 1>} : " + table + " -> " + row +
        "\n%d = nn.sub %a, %m : " + table + ", " + row + " -> " + table + "\n%e = nn.exp %d : " + table + " -> " +
        table + "\n%s = nn.reduce sum %e {axes = array<i64: 1>} : " + table + " -> " + row + "\nnn.yield %s : " + row +
        "\n}\nreturn\n}");
  PassManager manager(&context);
  manager.addPass(createEmitKernels());
  ASSERT_TRUE(succeeded(manager.run(*module)));
  LoadedCode code(*module);
  module->walk([&](nn::FusedOp op) {
    std::vector<Tensor> sums = call(code, op, {&x}, dist::Mesh{}, 0);
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_NEAR(sums[0].floats[size_t(i)] / expected[i], 1, 4e-6);
  });
}

} // namespace
} // namespace hpc::test
