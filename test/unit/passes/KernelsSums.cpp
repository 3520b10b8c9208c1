// The order of a sum is a matter of its extent and type alone: the same terms give the same bits whatever else is in the
// loop that makes them, on any CPU. What is run again for gradients rests on it: it is fused with other things than in forward.
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

/// A region of one operand %a, with the types of what it yields.
struct Region {
  std::string operand, body;
  std::vector<std::string> results;
};

struct Sums : KernelTest {
  /// The region's results, emitted as it stands.
  std::vector<Tensor> run(const Region &region, const Tensor &operand, const std::string &cpu) {
    std::string types = llvm::join(region.results, ", ");
    parse("func.func @main(%x: " + region.operand + ") {\n%r:" + std::to_string(region.results.size()) +
          " = nn.fused \"region\"(%x) : (" + region.operand + ") -> (" + types + ") {\n^bb0(%a: " + region.operand +
          "):\n" + region.body + " : " + types + "\n}\nreturn\n}");
    if (HasFatalFailure())
      return {};
    PassManager manager(&context);
    EmitKernelsOptions options;
    options.cpu = cpu;
    manager.addPass(createEmitKernels(options));
    EXPECT_TRUE(succeeded(manager.run(*module)));
    LoadedCode code(*module);
    std::vector<Tensor> results;
    module->walk([&](nn::FusedOp op) { results = call(code, op, {&operand}, dist::Mesh{}, 0); });
    return results;
  }

  /// `alone` sums what the first result of each of `others` is; their second result is that sum.
  void expectSameBits(const Region &alone, ArrayRef<Region> others, const Tensor &x) {
    for (const Region &other : others) {
      SCOPED_TRACE(other.body);
      for (const std::string cpu : {"x86-64-v3", "host"}) {
        std::vector<Tensor> beside = run(other, x, cpu);
        for (const std::string cpuOfOther : {"x86-64-v3", "host"}) {
          std::vector<Tensor> by = run(alone, beside[0], cpuOfOther);
          EXPECT_EQ(by[0].floats, beside[1].floats) << cpu << " and " << cpuOfOther;
        }
      }
    }
  }
};

// Softmax and norms that are run again would differ from forward's in the last bit if rows were added up as LLVM likes.
TEST_F(Sums, OfRowsDoNotDependOnTheLoop) {
  for (const std::string element : {"f32", "f64"})
    for (int64_t count : {7, 40, 64, 100, 768}) {
      SCOPED_TRACE(element + ", " + std::to_string(count));
      std::string rows = "tensor<3x" + std::to_string(count) + "x" + element + ">", sum = "tensor<3x1x" + element + ">";
      std::string square = "%y = nn.mul %a, %a : " + rows + ", " + rows + " -> " + rows + "\n";
      auto reduce = [&](const std::string &kind, const std::string &from) {
        return "nn.reduce " + kind + " " + from + " {axes = array<i64: 1>} : " + rows + " -> " + sum + "\n";
      };
      std::string total = "%s = " + reduce("sum", "%y"), share = " = nn.div %y, %s : " + rows + ", " + sum + " -> " + rows + "\n";
      Region alone{rows, "%s = " + reduce("sum", "%a") + "nn.yield %s", {sum}};
      Region squares{rows, square + total + "nn.yield %y, %s", {rows, sum}};
      Region shares{rows, square + total + "%r" + share + "nn.yield %y, %s, %r", {rows, sum, rows}};
      Region withOthers{rows,
                        square + "%m = " + reduce("max", "%a") + total + "%e = nn.exp %y : " + rows + " -> " + rows +
                            "\n%t = " + reduce("sum", "%e") + "%r" + share + "nn.yield %y, %s, %r, %t, %m",
                        {rows, sum, rows, sum, sum}};
      Tensor x = someFloats({3, count}, unsigned(count));
      x.dtype = element == "f64" ? DType::F64 : DType::F32;
      expectSameBits(alone, {squares, shares, withOthers}, x);
    }
}

// Gradients of biases: down a block of columns, or for one element at a time where a softmax reads the sums.
TEST_F(Sums, OfColumnsDoNotDependOnTheRegion) {
  const std::string table = "tensor<37x70xf32>", sums = "tensor<1x70xf32>";
  std::string reduce = "nn.reduce sum %a {axes = array<i64: 0>} : " + table + " -> " + sums + "\n";
  Region alone{table, "%s = " + reduce + "nn.yield %s", {sums}};
  Region read{table, "%s = " + reduce + "%p = nn.softmax %s : " + sums + " -> " + sums + "\nnn.yield %p, %s", {sums, sums}};
  Tensor x = someFloats({37, 70});
  EXPECT_EQ(run(alone, x, "host")[0].floats, run(read, x, "host")[1].floats);
}

// Gradients of norms: sums of blocks of rows have the bits that they have alone where the rows are computed, whatever
// is done with these besides; so whether they are fused is nobody's business.
TEST_F(Sums, OfBlocksOfRowsDoNotDependOnTheRegion) {
  for (const std::string element : {"f32", "f64"}) {
    const std::string table = "tensor<24x70x" + element + ">", blocks = "tensor<3x8x70x" + element + ">";
    const std::string sums = "tensor<3x1x70x" + element + ">", rows = "tensor<24x1x" + element + ">";
    auto reduce = [&](const std::string &from) {
      return "%p = nn.reshape " + from + " : " + table + " -> " + blocks +
             "\n%s = nn.reduce sum %p {axes = array<i64: 1>} : " + blocks + " -> " + sums + "\n";
    };
    Region alone{table, reduce("%a") + "nn.yield %s", {sums}};
    std::string square = "%y = nn.mul %a, %a : " + table + ", " + table + " -> " + table + "\n";
    Region elements{table, square + reduce("%y") + "nn.yield %y, %s", {table, sums}};
    Region alongRows{table,
                     square + "%q = nn.softmax %y : " + table + " -> " + table +
                         "\n%t = nn.reduce sum %y {axes = array<i64: 1>} : " + table + " -> " + rows +
                         "\n%d = nn.sub %q, %t : " + table + ", " + rows + " -> " + table + "\n" + reduce("%y") +
                         "nn.yield %y, %s, %d, %t",
                     {table, sums, table, rows}};
    Tensor x = someFloats({24, 70});
    x.dtype = element == "f64" ? DType::F64 : DType::F32;
    expectSameBits(alone, {elements, alongRows}, x);
  }
}

} // namespace
} // namespace hpc::test
