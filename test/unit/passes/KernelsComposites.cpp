// Composites that generated code computes whole, against their definitions in the interpreter: every type, hard rows, and
// every place where a row of intermediate elements may lie.
#include "test/unit/passes/KernelsHarness.h"

#include "compiler/ModuleAttributes.h"
#include "compiler/Providers.h"
#include "passes/Kernels/Elements/ElementEmitter.h"
#include "passes/Kernels/Elements/RowComposites.h"
#include "passes/Kernels/Regions/AttentionRegion.h"

namespace hpc::test {
namespace {

/// `$T` in a text is the type.
std::string withType(std::string text, const std::string &type) {
  for (size_t at; (at = text.find("$T")) != std::string::npos;)
    text.replace(at, 2, type);
  return text;
}

struct CompositeKernels : KernelTest {
  /// Compiles @main of `body` on %x and %y of one type; both results are checked as they are made.
  void checkOn(const std::string &element, ArrayRef<int64_t> shape, const std::string &body,
               const std::vector<Tensor> &inputs, int regions = 1) {
    std::string type = "tensor<";
    for (int64_t size : shape)
      type += std::to_string(size) + "x";
    type += element + ">";
    SCOPED_TRACE(type + body);
    int before = numKernelRuns;
    checkBody(withType("%x: $T, %y: $T", type), withType(body, type), type, inputs);
    EXPECT_EQ(numKernelRuns - before, regions);
  }
  Tensor typed(Tensor tensor, const std::string &element) {
    tensor.dtype = *parseDType(element);
    round(tensor);
    return tensor;
  }
};

const char *softmax = "%r = nn.softmax %x : $T -> $T";
const char *layerNorm = "%r = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : $T -> $T";
const char *rmsNorm = "%r = nn.rms_norm %x {epsilon = 1.0e-5 : f64} : $T -> $T";

// A formula with another order of roundings than its definition differs in the narrow types first.
TEST_F(CompositeKernels, EveryFloatType) {
  for (const char *element : {"f32", "f64", "f16", "bf16"})
    for (const char *body : {softmax, layerNorm, rmsNorm}) {
      toleranceScale = 8; // sums of 70
      checkOn(element, {5, 70}, body, {typed(someFloats({5, 70}), element), typed(someFloats({5, 70}, 2), element)});
    }
}

// NaN, infinities, rows of -inf, equal numbers and squares that overflow come out as the definition has them.
TEST_F(CompositeKernels, HardRows) {
  for (const char *element : {"f32", "f64", "f16"})
    for (const char *body : {softmax, layerNorm, rmsNorm})
      for (int64_t columns : {33, 65}) { // a vector's tail, a block of lanes and one more
        Tensor x = someFloats({9, columns});
        for (int64_t j = 0; j < columns; ++j) {
          x.floats[columns + j] = -INFINITY;
          x.floats[2 * columns + j] = j == 7 ? 1.0 : -INFINITY;
          x.floats[3 * columns + j] = (j - 16) * (element[1] == '1' ? 4000.0 : element[1] == '3' ? 1e36 : 1e300);
          x.floats[4 * columns + j] = -200.0 * double(j);
          x.floats[5 * columns + j] = 7.25;
          x.floats[6 * columns + j] = 0.0;
        }
        x.floats[8 * columns - 2] = NAN;
        x.floats[8 * columns + 2] = INFINITY;
        toleranceScale = 8;
        checkOn(element, {9, columns}, body, {typed(x, element), typed(someFloats({9, columns}, 2), element)});
      }
}

// Rows without elements, rows of one, one row, no row: loops that run once or never.
TEST_F(CompositeKernels, SizesZeroAndOne) {
  for (const char *body : {softmax, layerNorm, rmsNorm})
    for (SmallVector<int64_t> shape : {SmallVector<int64_t>{1}, {7}, {3, 1}, {1, 5}, {2, 1, 6}})
      checkOn("f32", shape, body, {someFloats(shape), someFloats(shape, 2)});
  for (SmallVector<int64_t> shape : {SmallVector<int64_t>{0, 4}, {4, 0}, {2, 0, 3}})
    checkBody("%x: " + withType("$T", "tensor<" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]) +
                                          (shape.size() > 2 ? "x3" : "") + "xf32>"),
              withType(softmax, "tensor<" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]) +
                                    (shape.size() > 2 ? "x3" : "") + "xf32>"),
              "tensor<" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + (shape.size() > 2 ? "x3" : "") + "xf32>",
              {someFloats(shape)});
}

// The row of exponentials lies in the result of what reads the softmax, element after element overwritten: a reader that is
// done too early or too late finds the wrong ones.
TEST_F(CompositeKernels, ReadByOthersInTheSameRegion) {
  toleranceScale = 8;
  const char *readers[] = {
      // by an elementwise op alone: the memory is that op's result
      "%0 = nn.softmax %x : $T -> $T\n %r = nn.mul %0, %y : $T, $T -> $T",
      // what scaled dot products of PyTorch do with rows that see nothing
      "%0 = nn.softmax %x : $T -> $T\n %1 = nn.is_nan %0 : $T -> tensor<6x40xi1>\n %z = nn.constant dense<0.0> : tensor<f32> : tensor<f32>\n"
      " %r = nn.select %1, %z, %0 : tensor<6x40xi1>, tensor<f32>, $T -> $T",
      // by a sum over the row and by elements
      "%0 = nn.softmax %x : $T -> $T\n %1 = nn.mul %0, %0 : $T, $T -> $T\n"
      " %2 = nn.reduce sum %1 {axes = array<i64: 1>} : $T -> tensor<6x1xf32>\n %r = nn.div %1, %2 : $T, tensor<6x1xf32> -> $T",
      // by another softmax, by a norm
      "%0 = nn.softmax %x : $T -> $T\n %1 = nn.mul %0, %y : $T, $T -> $T\n %r = nn.softmax %1 : $T -> $T",
      "%0 = nn.softmax %x : $T -> $T\n %1 = nn.layer_norm %0 {epsilon = 1.0e-5 : f64} : $T -> $T\n %r = nn.add %0, %1 : $T, $T -> $T",
      // two of one region: one result, so the other row lies on the stack
      "%0 = nn.softmax %x : $T -> $T\n %1 = nn.softmax %y : $T -> $T\n %r = nn.sub %0, %1 : $T, $T -> $T"};
  for (std::string body : readers) {
    checkOn("f32", {6, 40}, body.c_str(), {someFloats({6, 40}), someFloats({6, 40}, 2)});
    // More than a block of lanes.
    for (size_t at = 0; (at = body.find("tensor<6x", at)) != std::string::npos;)
      body.replace(at, 9, "tensor<7x");
    for (size_t at = 0; (at = body.find("7x40x", at)) != std::string::npos;)
      body.replace(at, 5, "7x72x");
    checkOn("f32", {7, 72}, body.c_str(), {someFloats({7, 72}), someFloats({7, 72}, 2)});
  }
}

// Fusion gives no region that reads a softmax out of order; whoever writes one gets right numbers all the same.
TEST_F(CompositeKernels, ReadOutOfOrder) {
  parse(R"(
    func.func @main(%x: tensor<4x21xf32>) -> (tensor<4x21xf32>, tensor<4x21xf32>) {
      %r:2 = nn.fused "twice" (%x) : (tensor<4x21xf32>) -> (tensor<4x21xf32>, tensor<4x21xf32>) {
      ^bb0(%a: tensor<4x21xf32>):
        %0 = nn.softmax %a : tensor<4x21xf32> -> tensor<4x21xf32>
        %1 = nn.slice %0 {starts = array<i64: 0, 20>, steps = array<i64: 1, -1>} : tensor<4x21xf32> -> tensor<4x21xf32>
        %2 = nn.slice %0 {starts = array<i64: 3, 0>, steps = array<i64: -1, 1>} : tensor<4x21xf32> -> tensor<4x21xf32>
        nn.yield %1, %2 : tensor<4x21xf32>, tensor<4x21xf32>
      }
      return %r#0, %r#1 : tensor<4x21xf32>, tensor<4x21xf32>
    })");
  check("main", {someFloats({4, 21})});
  EXPECT_EQ(numKernelRuns, 1);
}

// A state that the same region overwrites is no place for exponentials.
TEST_F(CompositeKernels, NotOverAStateInPlace) {
  parse(R"(
    func.func @main(%s: tensor<3x19xf32>, %x: tensor<3x19xf32>) -> tensor<3x19xf32> {
      %r = nn.fused "accumulate" (%s, %x) {in_place = array<i64: 0>} : (tensor<3x19xf32>, tensor<3x19xf32>) -> tensor<3x19xf32> {
      ^bb0(%a: tensor<3x19xf32>, %b: tensor<3x19xf32>):
        %0 = nn.softmax %b : tensor<3x19xf32> -> tensor<3x19xf32>
        %1 = nn.add %a, %0 : tensor<3x19xf32>, tensor<3x19xf32> -> tensor<3x19xf32>
        nn.yield %1 : tensor<3x19xf32>
      }
      return %r : tensor<3x19xf32>
    })");
  check("main", {someFloats({3, 19}), someFloats({3, 19}, 2)});
  EXPECT_EQ(numKernelRuns, 1);
}

// A row too long for the stack that no result can hold (its type is another): elements are computed again.
TEST_F(CompositeKernels, LongRowsWithoutMemory) {
  toleranceScale = 1;
  parse(R"(
    func.func @main(%x: tensor<2x5000xf32>) -> tensor<2x5000xf64> {
      %0 = nn.softmax %x : tensor<2x5000xf32> -> tensor<2x5000xf32>
      %1 = nn.cast %0 : tensor<2x5000xf32> -> tensor<2x5000xf64>
      return %1 : tensor<2x5000xf64>
    })");
  toleranceScale = 1e7; // of f64's: the cast's operand is f32
  check("main", {someFloats({2, 5000})});
  EXPECT_EQ(numKernelRuns, 1);
}

// Rows that lie across memory, and padding that a fill keeps out of maximum and sum.
TEST_F(CompositeKernels, OtherLayoutsAndPadding) {
  toleranceScale = 8;
  checkBody("%x: tensor<33x4xf32>, %y: tensor<4x33xf32>", R"(
    %0 = nn.transpose %x {permutation = array<i64: 1, 0>} : tensor<33x4xf32> -> tensor<4x33xf32>
    %1 = nn.add %0, %y : tensor<4x33xf32>, tensor<4x33xf32> -> tensor<4x33xf32>
    %r = nn.softmax %1 : tensor<4x33xf32> -> tensor<4x33xf32>)",
            "tensor<4x33xf32>", {someFloats({33, 4}), someFloats({4, 33}, 2)});
  const std::string type = "tensor<4x3xf32, #dist.sharding<\"[4, 5@tp]\">>";
  parse("module attributes {dist.mesh = #dist.mesh<\"tp=2:tensor\">} {\nfunc.func @main(%x: " + type + ") -> " + type +
        " {\n%0 = dist.fill_tail %x {dims = array<i64: 1>, value = 0xFF800000 : f32} : " + type + " -> " + type +
        "\n%1 = nn.softmax %0 : " + type + " -> " + type + "\nreturn %1 : " + type + "\n}\n}");
  check("main", {someFloats({4, 5})}, true);
}

// The table of providers, the emitter and decompositions speak of the same composites; on a target that nobody named,
// nothing is claimed.
TEST(CompositeProviders, OneTable) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, dist::DistDialect, func::FuncDialect>();
  int claimed = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.getDialectNamespace() != "nn")
      continue;
    OperationState state(UnknownLoc::get(&context), name);
    Operation *op = Operation::create(state);
    bool inRegion = providerOf(op, hostTarget) == Provider::Region;
    // Rows that decoding writes over its state are a region's, and have no loop along a row.
    EXPECT_EQ(inRegion, kernels::isRowComposite(name) || kernels::isAttention(op) || isa<nn::UpdateSliceOp>(op)) << name.getStringRef().str();
    // Or rows of a table, which are made like those of a composite.
    EXPECT_TRUE(!inRegion || name.hasInterface<CompositeOpInterface>() || accessOf(op) == Access::Lookup)
        << name.getStringRef().str();
    EXPECT_NE(providerOf(op, "unheard-of"), Provider::Region) << name.getStringRef().str();
    claimed += inRegion;
    op->destroy();
  }
  EXPECT_GT(claimed, 0);
}

} // namespace
} // namespace hpc::test
