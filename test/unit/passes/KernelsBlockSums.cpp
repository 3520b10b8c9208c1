// Sums of blocks of rows, taken in where the rows are computed: gradients of norms and biases, as the passes split and
// fuse them, and regions by hand. Host and device against the interpreter.
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

struct BlockSums : KernelTest {
  /// The regions that give a result of rows and at least one sum of them.
  int countFused() {
    int count = 0;
    module->walk([&](nn::FusedOp region) {
      bool hasSum = false, hasRows = false;
      for (Value result : region.getBody().front().getTerminator()->getOperands()) {
        auto reduce = result.getDefiningOp<nn::ReduceOp>();
        bool isSum = reduce && reduce.getAxes().back() + 1 < nn::tensorType(reduce.getOperand()).getRank();
        (isSum ? hasSum : hasRows) = true;
      }
      count += hasSum && hasRows;
    });
    return count;
  }
};

std::string tensorOf(ArrayRef<int64_t> shape) {
  std::string type = "tensor<";
  for (int64_t size : shape)
    type += std::to_string(size) + "x";
  return type + "f32>";
}

// What a norm's gradient is made of: a result of rows from sums along them, sums down columns of what only it knows
// (gamma's) and of what it reads (beta's), which stands before it. One region, whatever the rank; tails of vectors, of
// a device's teams, of one warp and more.
TEST_F(BlockSums, BesideSumsAlongRows) {
  for (SmallVector<int64_t> shape :
       {SmallVector<int64_t>{64, 40}, {4, 40, 33}, {2, 3, 48, 20}, {512, 130}, {189, 70}, {96, 2050}}) {
    SmallVector<int64_t> one(shape), leading;
    for (size_t dim = 0; dim + 1 < shape.size(); ++dim) {
      one[dim] = 1;
      leading.push_back(int64_t(dim));
    }
    SmallVector<int64_t> rowShape(shape);
    rowShape.back() = 1;
    std::string table = tensorOf(shape), sums = tensorOf(one), rows = tensorOf(rowShape), axes;
    for (int64_t dim : leading)
      axes += (dim ? ", " : "") + std::to_string(dim);
    std::string last = std::to_string(shape.size() - 1), text = "func.func @main(%x: " + table + ", %g: " + table +
                                                                ") -> (" + table + ", " + sums + ", " + sums +
                                                                ") {\n"
                                                                "%beta = nn.reduce sum %g {axes = array<i64: " +
                                                                axes + ">} : " + table + " -> " + sums +
                                                                "\n"
                                                                "%n = nn.constant dense<" +
                                                                std::to_string(double(shape.back())) +
                                                                "> : tensor<f32> : tensor<f32>\n"
                                                                "%s = nn.reduce sum %x {axes = array<i64: " +
                                                                last + ">} : " + table + " -> " + rows +
                                                                "\n"
                                                                "%m = nn.div %s, %n : " +
                                                                rows + ", tensor<f32> -> " + rows +
                                                                "\n"
                                                                "%c = nn.sub %x, %m : " +
                                                                table + ", " + rows + " -> " + table +
                                                                "\n"
                                                                "%p = nn.mul %c, %g : " +
                                                                table + ", " + table + " -> " + table +
                                                                "\n"
                                                                "%gamma = nn.reduce sum %p {axes = array<i64: " +
                                                                axes + ">} : " + table + " -> " + sums +
                                                                "\n"
                                                                "%t = nn.reduce sum %p {axes = array<i64: " +
                                                                last + ">} : " + table + " -> " + rows +
                                                                "\n"
                                                                "%u = nn.div %t, %n : " +
                                                                rows + ", tensor<f32> -> " + rows +
                                                                "\n"
                                                                "%d = nn.mul %p, %u : " +
                                                                table + ", " + rows + " -> " + table +
                                                                "\n"
                                                                "return %d, %beta, %gamma : " +
                                                                table + ", " + sums + ", " + sums + "\n}";
    SCOPED_TRACE(text);
    toleranceScale = 100; // sums of up to 512 terms of either sign
    parse(text);
    check("main", {someFloats(shape), someFloats(shape, 2)});
    EXPECT_EQ(countFused(), 1);
  }
}

// The gradient of a bias beside what it is the gradient of, which products read.
TEST_F(BlockSums, BesideElements) {
  toleranceScale = 100;
  parse(R"(
    func.func @main(%h: tensor<64x50xf32>, %g: tensor<64x50xf32>, %w: tensor<50x8xf32>) -> (tensor<64x8xf32>, tensor<1x50xf32>) {
      %0 = nn.tanh %h : tensor<64x50xf32> -> tensor<64x50xf32>
      %1 = nn.mul %0, %g : tensor<64x50xf32>, tensor<64x50xf32> -> tensor<64x50xf32>
      %2 = nn.matmul %1, %w : tensor<64x50xf32>, tensor<50x8xf32> -> tensor<64x8xf32>
      %3 = nn.reduce sum %1 {axes = array<i64: 0>} : tensor<64x50xf32> -> tensor<1x50xf32>
      return %2, %3 : tensor<64x8xf32>, tensor<1x50xf32>
    })");
  check("main", {someFloats({64, 50}), someFloats({64, 50}, 2), someFloats({50, 8}, 3)});
  EXPECT_EQ(countFused(), 1);
}

// Rows that are put together of parts, as the gradient of fused queries, keys and values is, and padded: each part is a
// loop of its own on the host, and the sums below must have all of their columns, each once. Parts of few elements are
// not.
TEST_F(BlockSums, OfRowsInParts) {
  toleranceScale = 100;
  for (int64_t last : {40, 3}) {
    std::string part = tensorOf({64, last}), all = tensorOf({64, 90 + last}), sum = tensorOf({1, 90 + last});
    std::string text = "func.func @main(%a: tensor<64x50xf32>, %b: tensor<64x30xf32>, %c: " + part + ") -> (" + all +
                       ", " + sum +
                       ") {\n%p = nn.pad %b {low = array<i64: 0, 10>, high = array<i64: 0, 0>, value = 2.0 : f64} : "
                       "tensor<64x30xf32> -> tensor<64x40xf32>\n"
                       "%0 = nn.concat %a, %p, %c {axis = 1 : i64} : tensor<64x50xf32>, tensor<64x40xf32>, " +
                       part + " -> " + all + "\n%1 = nn.mul %0, %0 : " + all + ", " + all + " -> " + all +
                       "\n%2 = nn.reduce sum %1 {axes = array<i64: 0>} : " + all + " -> " + sum +
                       "\nreturn %1, %2 : " + all + ", " + sum + "\n}";
    SCOPED_TRACE(text);
    parse(text);
    check("main", {someFloats({64, 50}), someFloats({64, 30}, 2), someFloats({64, last}, 3)});
    EXPECT_EQ(countFused(), 1);
  }
}

// A sum that the rows themselves need, few blocks (one thread would do all of them) and a prime number of rows stay
// apart.
TEST_F(BlockSums, ApartWhereOneLoopCannot) {
  for (int64_t rows : {64, 24, 1021}) {
    std::string table = tensorOf({rows, 40}), sum = tensorOf({1, 40});
    bool isNeeded = rows == 64;
    std::string text = "func.func @main(%x: " + table + ") -> (" + table + ", " + sum +
                       ") {\n%0 = nn.mul %x, %x : " + table + ", " + table + " -> " + table +
                       "\n%1 = nn.reduce sum %0 {axes = array<i64: 0>} : " + table + " -> " + sum +
                       "\n%2 = nn.sub %0, " + (isNeeded ? "%1" : "%x") + " : " + table + ", " +
                       (isNeeded ? sum : table) + " -> " + table + "\nreturn %2, %1 : " + table + ", " + sum + "\n}";
    SCOPED_TRACE(text);
    toleranceScale = 4000;
    parse(text);
    check("main", {someFloats({rows, 40})});
    // Where the sum is needed, blocks of the square may be added up beside it.
    EXPECT_EQ(countFused(), isNeeded ? 1 : 0);
  }
}

// By hand: in place, two sums, one of them of the operand that is written over; kept dims; whole numbers; rows of one
// warp and of a block.
TEST_F(BlockSums, InPlaceAndWhatIsKept) {
  for (int64_t columns : {5, 300}) {
    std::string c = std::to_string(columns), table = "tensor<2x24x" + c + "xf32>",
                blocks = "tensor<2x3x8x" + c + "xf32>", sums = "tensor<2x3x1x" + c + "xf32>", text = R"(
      func.func @main(%x: TABLE, %y: TABLE) -> (TABLE, SUMS, SUMS) {
        %r:3 = nn.fused "f_0" (%x, %y) {in_place = array<i64: 0, -1, -1>} : (TABLE, TABLE) -> (TABLE, SUMS, SUMS) {
        ^bb0(%a: TABLE, %b: TABLE):
          %0 = nn.mul %a, %b : TABLE, TABLE -> TABLE
          %1 = nn.reshape %a : TABLE -> BLOCKS
          %2 = nn.reduce sum %1 {axes = array<i64: 2>} : BLOCKS -> SUMS
          %3 = nn.reshape %0 : TABLE -> BLOCKS
          %4 = nn.reduce sum %3 {axes = array<i64: 2>} : BLOCKS -> SUMS
          nn.yield %0, %2, %4 : TABLE, SUMS, SUMS
        }
        return %r#0, %r#1, %r#2 : TABLE, SUMS, SUMS
      })";
    for (const auto &[from, to] :
         {std::pair<std::string, std::string>("TABLE", table), std::pair<std::string, std::string>("BLOCKS", blocks),
          std::pair<std::string, std::string>("SUMS", sums)})
      for (size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
    toleranceScale = 20;
    parse(text);
    check("main", {someFloats({2, 24, columns}), someFloats({2, 24, columns}, 2)});
    module->walk([&](nn::FusedOp region) { EXPECT_EQ(*region.getRows(), 6u); });
  }
}

} // namespace
} // namespace hpc::test
