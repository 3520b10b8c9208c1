// Local programs: packed collectives against the interpreter's, and kernels that depend on the rank's coordinate, with
// poison in all padding.
#include "test/unit/passes/KernelsHarness.h"

namespace hpc::test {
namespace {

struct PartitionedKernelTest : KernelTest {
  /// `body` computes %r of local type `result` from %x of local type `x`; both types with shardings.
  void checkLocal(const std::string &mesh, const std::string &x, const std::string &result, const std::string &body,
                  const Tensor &input) {
    parse("module attributes {dist.mesh = #dist.mesh<\"" + mesh + "\">} {\nfunc.func @main(%x: " + x + ") -> " +
          result + " {\n" + body + "\n  return %r : " + result + "\n}\n}");
    if (!HasFatalFailure())
      check("main", {input}, true);
  }
  /// One step between two shardings, as partition makes it.
  void checkStep(const std::string &mesh, const std::string &from, const std::string &to) {
    SCOPED_TRACE(from + " to " + to + " over " + mesh);
    dist::Mesh parsed = *dist::parseMesh(mesh);
    dist::Sharding before = *dist::parseSharding(from), after = *dist::parseSharding(to);
    Expected<std::vector<dist::ReshardStep>> steps = dist::planReshard(before, after, parsed);
    ASSERT_TRUE(steps.ok());
    auto type = [&](const dist::Sharding &sharding) {
      std::string text;
      auto box = RankedTensorType::get(dist::boxShape(sharding, parsed), Float32Type::get(&context));
      llvm::raw_string_ostream(text) << dist::withSharding(box, dist::normalize(sharding, parsed));
      return text;
    };
    std::string body, value = "%x";
    for (auto [i, step] : llvm::enumerate(*steps)) {
      const char *names[] = {"slice", "permute", "all_to_all", "all_gather", "all_reduce", "reduce_scatter"};
      std::string next = i + 1 == steps->size() ? "%r" : "%" + std::to_string(i);
      std::string attributes = "before = #dist.sharding<\"" + dist::toString(step.before) +
                               "\">, after = #dist.sharding<\"" + dist::toString(step.after) + "\">";
      if (step.kind == dist::ReshardStep::Permute || step.kind == dist::ReshardStep::AllReduce)
        attributes += ", axes = [\"" + llvm::join(step.axes, "\", \"") + "\"]";
      else
        attributes += ", axis = \"" + step.axes[0] + "\"";
      if (step.kind == dist::ReshardStep::AllReduce)
        attributes += ", kind = #dist<reduce_kind sum>";
      auto number = [&](const char *name, int64_t n) {
        if (n >= 0)
          attributes += std::string(", ") + name + " = " + std::to_string(n) + " : i64";
      };
      number("from_dim", step.fromSub >= 0 ? step.fromDim : -1);
      number("from_sub", step.fromSub);
      number("to_dim", step.toSub >= 0 ? step.toDim : -1);
      number("to_sub", step.toSub);
      body += "  " + next + " = dist." + names[step.kind] + " " + value + " {" + attributes +
              "} : " + type(step.before) + " -> " + type(step.after) + "\n";
      value = next;
    }
    std::vector<int64_t> shape = dist::globalShape(before);
    checkLocal(mesh, type(before), type(after), body, someFloats(shape));
  }
};

TEST_F(PartitionedKernelTest, AllGathers) {
  checkStep("tp=2:tensor", "[4, 503@tp]", "[4, 503]");
  checkStep("tp=3:tensor", "[2, (5@tp, 8)]", "[2, 40]");
  checkStep("tp=2:tensor", "[3, (3, 5@tp, 2)]", "[3, 30]");
  checkStep("tp=2:tensor", "[7@tp, 6]", "[7, 6]");
  checkStep("tp=2:tensor", "[8@tp, 6]", "[8, 6]");
  checkStep("dp=2:data, tp=3:tensor", "[5@dp, 7@tp]", "[5, 7@tp]");
  checkStep("dp=2:data, tp=2:tensor", "[9@(dp, tp), 3]", "[9, 3]");
  EXPECT_GT(numKernelRuns, 0);
}

TEST_F(PartitionedKernelTest, AllToAlls) {
  checkStep("tp=2:tensor", "[5@tp, 7]", "[5, 7@tp]");
  checkStep("tp=3:tensor", "[7, (5@tp, 2)]", "[7@tp, 10]");
  checkStep("tp=2:tensor", "[4, 3, 6@tp]", "[4@tp, 3, 6]");
  EXPECT_GT(numKernelRuns, 0);
}

TEST_F(PartitionedKernelTest, SlicesReadAtTheirCoordinate) {
  checkStep("tp=2:tensor", "[4, 503]", "[4, 503@tp]");
  checkStep("tp=4:tensor", "[5, 3]", "[5@tp, 3]"); // coordinate 3 holds nothing
  checkStep("tp=2:tensor", "[3, (3, 5, 2)]", "[3, (3, 5@tp, 2)]");
  checkStep("dp=2:data, tp=2:tensor", "[9@dp, 3]", "[9@(dp, tp), 3]");
  EXPECT_EQ(numKernelRuns, 2 + 4 + 2 + 4); // one a coordinate
}

// A partial sum is made by reducing each rank's part, then scattered over the result's rows.
TEST_F(PartitionedKernelTest, ReduceScatterOfUnevenRows) {
  checkLocal("tp=2:tensor", R"(tensor<5x4xf32, #dist.sharding<"[5, 8@tp]">>)",
             R"(tensor<3x1xf32, #dist.sharding<"[5@tp, 1]">>)", R"(
    %s = nn.reduce sum %x {axes = array<i64: 1>} : tensor<5x4xf32, #dist.sharding<"[5, 8@tp]">> -> tensor<5x1xf32, #dist.sharding<"[5, 1] partial{tp}">>
    %r = dist.reduce_scatter %s {axis = "tp", before = #dist.sharding<"[5, 1] partial{tp}">, after = #dist.sharding<"[5@tp, 1]">, to_dim = 0 : i64, to_sub = 0 : i64}
      : tensor<5x1xf32, #dist.sharding<"[5, 1] partial{tp}">> -> tensor<3x1xf32, #dist.sharding<"[5@tp, 1]">>)",
             someFloats({5, 8}));
}

// The padded head of (3, 5@tp, 2) is no contiguous tail: a kernel fills it. Coordinate 3 of 4 holds nothing at all.
// Inputs are zero in padding, so the exponential makes it something else before it is filled.
TEST_F(PartitionedKernelTest, FillTailBySubDim) {
  for (const char *mesh : {"tp=2:tensor", "tp=3:tensor", "tp=4:tensor"}) {
    int64_t ranks = mesh[3] - '0', box = 3 * ((5 + ranks - 1) / ranks) * 2;
    std::string type = "tensor<2x" + std::to_string(box) + R"(xf32, #dist.sharding<"[2, (3, 5@tp, 2)]">>)";
    std::string partial = R"(tensor<2x1xf32, #dist.sharding<"[2, 1] partial{tp}">>)",
                whole = R"(tensor<2x1xf32, #dist.sharding<"[2, 1]">>)";
    checkLocal(mesh, type, whole,
               "  %e = nn.exp %x : " + type + " -> " + type +
                   "\n  %f = dist.fill_tail %e {dims = array<i64: 1>, value = 0.0 : f32} : " + type + " -> " + type +
                   "\n  %s = nn.reduce sum %f {axes = array<i64: 1>} : " + type + " -> " + partial +
                   R"(
  %r = dist.all_reduce %s {axes = ["tp"], kind = #dist<reduce_kind sum>, before = #dist.sharding<"[2, 1] partial{tp}">, after = #dist.sharding<"[2, 1]">} : )" +
                   partial + " -> " + whole,
               someFloats({2, 30}));
  }
}

TEST_F(PartitionedKernelTest, IotaAndEmbeddingWithOffsets) {
  std::string ids = R"(tensor<2x3xi64, #dist.sharding<"[2, 3]">>)",
              part = R"(tensor<2x3x4xf32, #dist.sharding<"[2, 3, 4] partial{tp}">>)",
              whole = R"(tensor<2x3x4xf32, #dist.sharding<"[2, 3, 4]">>)";
  for (const char *mesh : {"tp=2:tensor", "tp=4:tensor"}) {
    std::string rows = mesh[3] == '2' ? "3" : "2", table = "tensor<" + rows + R"(x4xf32, #dist.sharding<"[5@tp, 4]">>)";
    checkLocal(mesh, ids, whole,
               R"(
  %o = dist.offset {dim = #dist.sharding<"[5@tp]">} : tensor<i64>
  %i = nn.iota offset %o : tensor<i64> {dim = 0 : i64, start = 10 : i64, step = 3 : i64} : )" +
                   table + R"(
  %t = nn.exp %i : )" +
                   table + " -> " + table + R"(
  %e = nn.embedding %t, %x offset %o : tensor<i64> {vocabulary = 5 : i64} : )" +
                   table + ", " + ids + " -> " + part + R"(
  %r = dist.all_reduce %e {axes = ["tp"], kind = #dist<reduce_kind sum>, before = #dist.sharding<"[2, 3, 4] partial{tp}">, after = #dist.sharding<"[2, 3, 4]">} : )" +
                   part + " -> " + whole,
               someInts({2, 3}, {0, 4, -1, -5, 3, 2}));
  }
}

} // namespace
} // namespace hpc::test
