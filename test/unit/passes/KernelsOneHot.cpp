// Sums that pick one element of a row (OneHotSum.h), and softmax written out, which knows that its exponents end at 0.
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

constexpr int64_t numRows = 8, numColumns = 37;

/// Labels before, on and behind what a row of positions from `start` on has, the ends of 64 bits among them.
Tensor labels(int64_t start, std::vector<int64_t> shape) {
  Tensor tensor(DType::I64, shape);
  tensor.ints = {start, start + numColumns - 1, start - 1, start + numColumns, start + 5, -3, INT64_MIN, INT64_MAX};
  return tensor;
}

/// Every row has a NaN and an infinity in places that no label names, and a -0 that one does.
Tensor logits(std::vector<int64_t> shape, DType dtype) {
  Tensor x = someFloats(shape);
  x.dtype = dtype;
  bool byRow = shape[1] == numColumns;
  for (int64_t row = 0; row < numRows; ++row) {
    auto at = [&](int64_t column) -> double & {
      return x.floats[size_t(byRow ? row * numColumns + column : column * numRows + row)];
    };
    at(9) = NAN;
    at(10) = INFINITY;
    at(5) = -0.0;
  }
  round(x);
  return x;
}

// A label's logit would be another's, or a label of another rank's rows would read outside.
TEST_F(KernelTest, OneHotSumsAlongRows) {
  for (const char *element : {"f32", "f64", "bf16"})
    for (int64_t start : {0, 20})
      for (const char *sides : {"%i, %l : tensor<37xi64>, tensor<8x1xi64>", "%l, %i : tensor<8x1xi64>, tensor<37xi64>"}) {
        SCOPED_TRACE(std::string(element) + " from " + std::to_string(start) + ", " + sides);
        std::string row = "tensor<8x37x" + std::string(element) + ">", sum = "tensor<8x1x" + std::string(element) + ">",
                    zero = "tensor<" + std::string(element) + ">";
        DType dtype = element == std::string("f32") ? DType::F32 : element == std::string("f64") ? DType::F64 : DType::BF16;
        checkBody("%x: " + row + ", %l: tensor<8x1xi64>",
                  "%i = nn.iota {dim = 0 : i64, start = " + std::to_string(start) + " : i64} : tensor<37xi64>\n" +
                      "%c = nn.compare eq " + sides + " -> tensor<8x37xi1>\n%z = nn.constant dense<0.0> : " + zero + " : " +
                      zero + "\n%s = nn.select %c, %x, %z : tensor<8x37xi1>, " + row + ", " + zero + " -> " + row +
                      "\n%r = nn.reduce sum %s {axes = array<i64: 1>} : " + row + " -> " + sum,
                  sum, {logits({numRows, numColumns}, dtype), labels(start, {numRows, 1})});
      }
}

// The same down columns, of a value that is computed, with a branch that is not the zero of a one-hot sum beside it.
TEST_F(KernelTest, OneHotSumsDownColumnsAndWhatOnlyLooksLikeOne) {
  for (const char *other : {"0.0", "-0.0", "1.0"})
    checkBody("%x: tensor<37x8xf32>, %l: tensor<8xi64>", std::string(R"(
    %i = nn.iota {dim = 0 : i64} : tensor<37x1xi64>
    %c = nn.compare eq %i, %l : tensor<37x1xi64>, tensor<8xi64> -> tensor<37x8xi1>
    %z = nn.constant dense<)") + other + R"(> : tensor<f32> : tensor<f32>
    %y = nn.mul %x, %x : tensor<37x8xf32>, tensor<37x8xf32> -> tensor<37x8xf32>
    %s = nn.select %c, %y, %z : tensor<37x8xi1>, tensor<37x8xf32>, tensor<f32> -> tensor<37x8xf32>
    %r = nn.reduce sum %s {axes = array<i64: 0>} : tensor<37x8xf32> -> tensor<1x8xf32>)",
              "tensor<1x8xf32>", {logits({numColumns, numRows}, DType::F32), labels(0, {numRows})});
}

// Each differs from a one-hot sum along rows in one thing, and is computed as what it is.
TEST_F(KernelTest, OneHotSumsOfNothingElse) {
  struct Case {
    const char *what, *positions, *number, *compare, *other, *sum;
  };
  const char *const row = "%i = nn.iota {dim = 0 : i64} : tensor<37xi64>", *const label = "%n = nn.reshape %l : tensor<8x1xi64> -> tensor<8x1xi64>";
  const char *const equal = "nn.compare eq %i, %n : tensor<37xi64>, tensor<8x1xi64>", *const rows = "nn.reduce sum %s {axes = array<i64: 1>}";
  for (const Case &one : {
           Case{"no sum", row, label, equal, "0.0", "nn.reduce max %s {axes = array<i64: 1>}"},
           Case{"another number beside it", row, label, equal, "1.0", rows},
           Case{"all but one", row, label, "nn.compare lt %i, %n : tensor<37xi64>, tensor<8x1xi64>", "0.0", rows},
           Case{"every other position", "%i = nn.iota {dim = 0 : i64, step = 2 : i64} : tensor<37xi64>", label, equal, "0.0", rows},
           Case{"positions of rows", "%i = nn.iota {dim = 0 : i64} : tensor<8x1xi64>", label, "nn.compare eq %i, %n : tensor<8x1xi64>, tensor<8x1xi64>", "0.0", rows},
           Case{"one position", "%i = nn.iota {dim = 0 : i64} : tensor<1xi64>", label, "nn.compare eq %i, %n : tensor<1xi64>, tensor<8x1xi64>", "0.0", rows},
           Case{"a label for each position", row, "%j = nn.iota {dim = 0 : i64} : tensor<37xi64>\n%n = nn.add %l, %j : tensor<8x1xi64>, tensor<37xi64> -> tensor<8x37xi64>",
                "nn.compare eq %i, %n : tensor<37xi64>, tensor<8x37xi64>", "0.0", rows},
       }) {
    SCOPED_TRACE(one.what);
    const bool isNarrow = std::string(one.compare).find("37") == std::string::npos;
    const std::string mask = isNarrow ? "tensor<8x1xi1>" : "tensor<8x37xi1>";
    Tensor small = labels(0, {numRows, 1});
    small.ints = {0, 1, 2, 3, 4, 20, 35, 36};
    Tensor x = someFloats({numRows, numColumns});
    checkBody("%x: tensor<8x37xf32>, %l: tensor<8x1xi64>",
              std::string(one.positions) + "\n" + one.number + "\n%c = " + one.compare + " -> " + mask + "\n%z = nn.constant dense<" + one.other +
                  "> : tensor<f32> : tensor<f32>\n%s = nn.select %c, %x, %z : " + mask + ", tensor<8x37xf32>, tensor<f32> -> tensor<8x37xf32>\n%r = " + one.sum +
                  " : tensor<8x37xf32> -> tensor<8x1xf32>",
              "tensor<8x1xf32>", {x, small});
  }
}

// These are computed as they are written: a sum over two dims, positions along another dim, positions of 32 bits, elements of a softmax.
TEST_F(KernelTest, OneHotSumsOfOtherDimsAndOfRows) {
  const std::string zero = "%z = nn.constant dense<0.0> : tensor<f32> : tensor<f32>\n";
  checkBody("%x: tensor<37x8xf32>, %l: tensor<8xi64>", zero + R"(
    %i = nn.iota {dim = 0 : i64} : tensor<37x1xi64>
    %c = nn.compare eq %i, %l : tensor<37x1xi64>, tensor<8xi64> -> tensor<37x8xi1>
    %s = nn.select %c, %x, %z : tensor<37x8xi1>, tensor<37x8xf32>, tensor<f32> -> tensor<37x8xf32>
    %r = nn.reduce sum %s {axes = array<i64: 0, 1>} : tensor<37x8xf32> -> tensor<1x1xf32>)",
            "tensor<1x1xf32>", {someFloats({numColumns, numRows}), labels(0, {numRows})});
  Tensor small = labels(0, {numRows, 1});
  small.ints = {0, 1, 2, 2, 4, 3, 6, 7};
  checkBody("%x: tensor<8x8xf32>, %l: tensor<8x1xi64>", zero + R"(
    %i = nn.iota {dim = 0 : i64} : tensor<8x1xi64>
    %c = nn.compare eq %i, %l : tensor<8x1xi64>, tensor<8x1xi64> -> tensor<8x1xi1>
    %s = nn.select %c, %x, %z : tensor<8x1xi1>, tensor<8x8xf32>, tensor<f32> -> tensor<8x8xf32>
    %r = nn.reduce sum %s {axes = array<i64: 1>} : tensor<8x8xf32> -> tensor<8x1xf32>)",
            "tensor<8x1xf32>", {someFloats({numRows, numRows}), small});
  Tensor narrow = small;
  narrow.dtype = DType::I32;
  checkBody("%x: tensor<8x37xf32>, %l: tensor<8x1xi32>", zero + R"(
    %i = nn.iota {dim = 0 : i64} : tensor<37xi32>
    %c = nn.compare eq %i, %l : tensor<37xi32>, tensor<8x1xi32> -> tensor<8x37xi1>
    %s = nn.select %c, %x, %z : tensor<8x37xi1>, tensor<8x37xf32>, tensor<f32> -> tensor<8x37xf32>
    %r = nn.reduce sum %s {axes = array<i64: 1>} : tensor<8x37xf32> -> tensor<8x1xf32>)",
            "tensor<8x1xf32>", {someFloats({numRows, numColumns}), narrow});
  checkBody("%x: tensor<8x37xf32>, %l: tensor<8x1xi64>", zero + R"(
    %y = nn.softmax %x : tensor<8x37xf32> -> tensor<8x37xf32>
    %i = nn.iota {dim = 0 : i64} : tensor<37xi64>
    %c = nn.compare eq %i, %l : tensor<37xi64>, tensor<8x1xi64> -> tensor<8x37xi1>
    %s = nn.select %c, %y, %z : tensor<8x37xi1>, tensor<8x37xf32>, tensor<f32> -> tensor<8x37xf32>
    %t = nn.reduce sum %s {axes = array<i64: 1>} : tensor<8x37xf32> -> tensor<8x1xf32>
    %r = nn.sub %y, %t : tensor<8x37xf32>, tensor<8x1xf32> -> tensor<8x37xf32>)",
            "tensor<8x37xf32>", {someFloats({numRows, numColumns}), small});
}

// Exponents of a row minus its maximum may take the shorter way; those of another row's maximum may not: they overflow.
TEST_F(KernelTest, SoftmaxWrittenOut) {
  Tensor x = someFloats({40, 40});
  for (int64_t j = 0; j < 40; ++j) {
    x.floats[size_t(j)] = -INFINITY;
    x.floats[size_t(40 + j)] = 70.0 * j;
    x.floats[size_t(80 + j)] = -4.0 * j;
  }
  x.floats[5 * 40 + 31] = NAN;
  x.floats[6 * 40 + 2] = INFINITY;
  for (bool isTurned : {false, true})
    checkBody("%x: tensor<40x40xf32>", std::string(R"(
    %m = nn.reduce max %x {axes = array<i64: 1>} : tensor<40x40xf32> -> tensor<40x1xf32>)") +
                  (isTurned ? "\n%t = nn.reshape %m : tensor<40x1xf32> -> tensor<1x40xf32>" : "") + R"(
    %d = nn.sub %x, )" + (isTurned ? "%t" : "%m") + " : tensor<40x40xf32>, " +
                  (isTurned ? "tensor<1x40xf32>" : "tensor<40x1xf32>") + R"( -> tensor<40x40xf32>
    %e = nn.exp %d : tensor<40x40xf32> -> tensor<40x40xf32>
    %s = nn.reduce sum %e {axes = array<i64: 1>} : tensor<40x40xf32> -> tensor<40x1xf32>
    %r = nn.div %e, %s : tensor<40x40xf32>, tensor<40x1xf32> -> tensor<40x40xf32>)",
              "tensor<40x40xf32>", {x});
}

} // namespace
} // namespace hpc::test
