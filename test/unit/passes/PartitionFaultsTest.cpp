// Ways of breaking a partitioned program: hpc-verify-partitioned finds each and names the place. What it could not see
// from one op's types, the interpreter does: every fault that runs gives other numbers than the serial program.
#include "test/unit/passes/SerialEqualsPartitioned.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Location.h"
#include "gtest/gtest.h"

using namespace hpc;

namespace {

/// A vocabulary-cut embedding, heads, a row-cut matmul, a softmax and a maximum over a cut uneven dim, a gather and a
/// sliced constant.
const char *const program = R"(
module attributes {dist.mesh = #dist.mesh<"mb=1:time, dp=2:data, tp=2:tensor">} {
  func.func @main(%ids: tensor<4x3xi64> {test.limit = 11 : i64, dist.seed = #dist.sharding<"[4@(mb, dp), 3]">}) -> (tensor<4x3x11xf32>, tensor<4x3x1xf32>, tensor<4x3x6xf32>) {
    %wte = nn.parameter "wte" {value = dense<1.0> : tensor<11x6xf32>, dist.seed = #dist.sharding<"[11@tp, 6]">} : tensor<11x6xf32> loc("wte")
    %w = nn.parameter "w" {value = dense<1.0> : tensor<6x30xf32>, dist.seed = #dist.sharding<"[6, (3, 5@tp, 2)]">} : tensor<6x30xf32> loc("w")
    %v = nn.parameter "v" {value = dense<1.0> : tensor<10x6xf32>} : tensor<10x6xf32> loc("v")
    %c = nn.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]> : tensor<10xf32> : tensor<10xf32> loc("c")
    %x = nn.embedding %wte, %ids {vocabulary = 11 : i64} : tensor<11x6xf32>, tensor<4x3xi64> -> tensor<4x3x6xf32> loc("node_embedding")
    %n = nn.layer_norm %x {epsilon = 1.0e-5 : f64} : tensor<4x3x6xf32> -> tensor<4x3x6xf32> loc("node_norm")
    %h = nn.matmul %n, %w : tensor<4x3x6xf32>, tensor<6x30xf32> -> tensor<4x3x30xf32> loc("node_columns")
    %q = nn.slice %h {starts = array<i64: 0, 0, 10>, steps = array<i64: 1, 1, 1>} : tensor<4x3x30xf32> -> tensor<4x3x10xf32> loc("node_split")
    %s = nn.mul %q, %c : tensor<4x3x10xf32>, tensor<10xf32> -> tensor<4x3x10xf32> loc("node_scale")
    %p = nn.matmul %s, %v : tensor<4x3x10xf32>, tensor<10x6xf32> -> tensor<4x3x6xf32> loc("node_rows")
    %r = nn.add %x, %p : tensor<4x3x6xf32>, tensor<4x3x6xf32> -> tensor<4x3x6xf32> loc("node_residual")
    %logits = nn.matmul %r, %wte {transpose_rhs} : tensor<4x3x6xf32>, tensor<11x6xf32> -> tensor<4x3x11xf32> loc("node_head")
    %m = nn.reduce max %logits {axes = array<i64: 2>} : tensor<4x3x11xf32> -> tensor<4x3x1xf32> loc("node_max")
    %g0 = nn.tanh %r {dist.seed = #dist.sharding<"[4, 3, 6@tp]">} : tensor<4x3x6xf32> -> tensor<4x3x6xf32> loc("node_cut")
    %g = nn.softmax %g0 : tensor<4x3x6xf32> -> tensor<4x3x6xf32> loc("node_softmax")
    return %logits, %m, %g : tensor<4x3x11xf32>, tensor<4x3x1xf32>, tensor<4x3x6xf32>
  }
}
)";

/// The op of a kind whose ONNX node has that name ("" any).
template <typename Op> Op find(ModuleOp module, StringRef node) {
  Op found;
  module.walk([&](Op op) {
    if (!found && (node.empty() || nodeName(op->getLoc()) == node))
      found = op;
  });
  EXPECT_TRUE(found) << node.str();
  return found;
}

dist::ShardingAttr sharding(ModuleOp module, const char *text) {
  return dist::ShardingAttr::get(module.getContext(), *dist::parseSharding(text));
}
Attribute strings(ModuleOp module, StringRef text) { return Builder(module.getContext()).getStrArrayAttr({text}); }

struct Fault {
  const char *name;
  std::function<void(ModuleOp)> commit;
  const char *found; ///< part of the message
};

const std::vector<Fault> faults = {
    {"an all-reduce dropped",
     [](ModuleOp module) {
       auto op = find<dist::AllReduceOp>(module, "node_rows");
       op.getResult().replaceAllUsesWith(op.getOperand());
       op.erase();
     },
     "node_residual"},
    {"an all-reduce dropped and the sum called complete",
     [](ModuleOp module) {
       auto op = find<dist::AllReduceOp>(module, "node_rows");
       op.getOperand().setType(op.getType());
       op.getResult().replaceAllUsesWith(op.getOperand());
       op.erase();
     },
     "node_rows"},
    {"an all-reduce doubled",
     [](ModuleOp module) {
       auto op = find<dist::AllReduceOp>(module, "node_rows");
       OpBuilder builder(op->getContext());
       builder.setInsertionPointAfter(op);
       Operation *again = builder.clone(*op);
       op.getResult().replaceAllUsesExcept(again->getResult(0), again);
       again->setOperand(0, op.getResult());
       again->setAttr("before", op.getAfterAttr());
     },
     "sums over 'tp', but the operand is not partial over it"},
    {"an all-reduce over the wrong axis",
     [](ModuleOp module) { find<dist::AllReduceOp>(module, "node_rows")->setAttr("axes", strings(module, "dp")); },
     "sums over 'dp'"},
    {"an all-reduce over micro-batches",
     [](ModuleOp module) { find<dist::AllReduceOp>(module, "node_rows")->setAttr("axes", strings(module, "mb")); },
     "works over 'mb'"},
    {"a gather along the wrong dim",
     [](ModuleOp module) {
       find<dist::AllGatherOp>(module, "")->setAttr("from_dim", Builder(module.getContext()).getI64IntegerAttr(0));
     },
     "does not lead from"},
    {"a gather over the wrong axis", [](ModuleOp module) { find<dist::AllGatherOp>(module, "").setAxis("dp"); },
     "does not lead from"},
    {"a slice of a constant over the wrong axis",
     [](ModuleOp module) { find<dist::SliceOp>(module, "").setAxis("dp"); }, "does not lead from"},
    {"the wrong part of q, k, v",
     [](ModuleOp module) {
       find<nn::SliceOp>(module, "node_split")
           ->setAttr("starts", DenseI64ArrayAttr::get(module.getContext(), {0, 0, 0}));
     },
     "attribute 'starts'"},
    {"a missing tail fill",
     [](ModuleOp module) {
       auto op = find<dist::FillTailOp>(module, "node_rows");
       op.getResult().replaceAllUsesWith(op.getOperand());
       op.erase();
     },
     "reduces over padding of operand 0"},
    {"a tail filled with another value",
     [](ModuleOp module) { find<dist::FillTailOp>(module, "node_max").setValueAttr(Builder(module.getContext()).getF32FloatAttr(0)); },
     "reduces over padding of operand 0"},
    {"the offset of another dim",
     [](ModuleOp module) { find<dist::OffsetOp>(module, "").setDimAttr(sharding(module, "[11@dp]")); },
     "with the offset of"},
    {"no offset at all", [](ModuleOp module) { find<nn::EmbeddingOp>(module, "").getOffsetMutable().clear(); },
     "has 0 offsets"},
    {"a maximum that is not combined",
     [](ModuleOp module) {
       auto op = find<dist::AllReduceOp>(module, "node_max");
       op.getResult().replaceAllUsesWith(op.getOperand());
       op.erase();
     },
     "before the ranks' values are combined"},
    {"a maximum combined by a sum",
     [](ModuleOp module) {
       find<dist::AllReduceOp>(module, "node_max")
           .setKindAttr(dist::ReduceKindAttr::get(module.getContext(), ReduceKind::Sum));
     },
     "node_max"},
    {"a weight cut in plain columns",
     [](ModuleOp module) {
       Value weight = find<nn::ParameterOp>(module, "w").getResult();
       auto type = nn::tensorType(weight);
       weight.setType(RankedTensorType::get({6, 18}, type.getElementType(), sharding(module, "[6, (3, 10@tp)]")));
     },
     "local box"},
    {"a weight of other heads",
     [](ModuleOp module) {
       Value weight = find<nn::ParameterOp>(module, "w").getResult();
       auto type = nn::tensorType(weight);
       weight.setType(RankedTensorType::get({6, 18}, type.getElementType(), sharding(module, "[6, (3, 5@dp, 2)]")));
     },
     "node_columns"},
    {"a value from before the reduction of the batch cut",
     [](ModuleOp module) {
       auto op = find<nn::AddOp>(module, "node_residual");
       op->setOperand(0, find<nn::EmbeddingOp>(module, "").getResult());
     },
     "node_residual"},
};

TEST(PartitionFaults, EachIsFoundAndNamed) {
  test::Compiler compiler;
  OwningOpRef<ModuleOp> serial = compiler.parse(program);
  ASSERT_TRUE(serial) << compiler.diagnostics;
  ASSERT_TRUE(compiler.run(*serial, test::propagatePipeline)) << compiler.diagnostics;
  OwningOpRef<ModuleOp> sound = serial->clone();
  ASSERT_TRUE(compiler.run(*sound, test::partitionPipeline)) << compiler.diagnostics;
  dist::Mesh mesh = dist::meshOf(*serial);
  EXPECT_EQ(test::compareRuns(*serial, *sound, mesh), "");
  for (const Fault &fault : faults) {
    OwningOpRef<ModuleOp> broken = sound->clone();
    fault.commit(*broken);
    compiler.diagnostics.clear();
    EXPECT_FALSE(compiler.run(*broken, "hpc-verify-partitioned")) << fault.name;
    EXPECT_NE(compiler.diagnostics.find(fault.found), std::string::npos) << fault.name << ": " << compiler.diagnostics;
  }
}

/// Equal types all over, other numbers: only the run can tell.
TEST(PartitionFaults, TheInterpreterSeesWhatTypesCannot) {
  test::Compiler compiler;
  OwningOpRef<ModuleOp> serial = compiler.parse(program);
  ASSERT_TRUE(serial && compiler.run(*serial, test::propagatePipeline)) << compiler.diagnostics;
  OwningOpRef<ModuleOp> broken = serial->clone();
  ASSERT_TRUE(compiler.run(*broken, test::partitionPipeline)) << compiler.diagnostics;
  auto split = find<nn::SliceOp>(*broken, "node_split");
  split->setAttr("starts", DenseI64ArrayAttr::get(broken->getContext(), {0, 0, 0}));
  EXPECT_NE(test::compareRuns(*serial, *broken, dist::meshOf(*serial)).find("node_split"), std::string::npos);

  OwningOpRef<ModuleOp> unfilled = serial->clone();
  ASSERT_TRUE(compiler.run(*unfilled, test::partitionPipeline)) << compiler.diagnostics;
  auto fill = find<dist::FillTailOp>(*unfilled, "node_rows");
  fill.getResult().replaceAllUsesWith(fill.getOperand());
  EXPECT_NE(test::compareRuns(*serial, *unfilled, dist::meshOf(*serial)).find("node_rows"), std::string::npos);
}

} // namespace
