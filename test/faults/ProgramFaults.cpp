// Ways of breaking the partitioned program. For each, what its verify pass says without running anything, and what the
// rest of the compilation with --verify says when that pass is left out. Every message names the ONNX node where the
// fault is, or the first one that it spoils.
#include "test/faults/ProgramFault.h"

#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/Location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::test;
using dist::ShardingAttr;
using testing::HasSubstr;

namespace {

constexpr const char *attentionProduct = "node_addmm_5"; // h.1.attn.c_proj: cut by 5 heads over tp=2
constexpr const char *feedForwardOut = "node_addmm_7";
constexpr const char *splitHeads = "node_Split_470"; // q, k, v of h.1
constexpr const char *attention = "node_matmul_3";

// ---- collectives --------------------------------------------------------------------------------

void dropAllReduce(ModuleOp module) {
  auto reduce = the<dist::AllReduceOp>(module, attentionProduct);
  reduce.getResult().replaceAllUsesWith(reduce.getOperand());
  reduce.erase();
}
void dropAllReduceAndClaimSum(ModuleOp module) {
  auto reduce = the<dist::AllReduceOp>(module, attentionProduct);
  claim(reduce.getOperand(), dist::shardingOf(reduce.getResult()));
  dropAllReduce(module);
}
void doubleAllReduce(ModuleOp module) {
  auto first = the<dist::AllReduceOp>(module, feedForwardOut);
  OpBuilder builder(first->getContext());
  builder.setInsertionPointAfter(first);
  auto second = cast<dist::AllReduceOp>(builder.clone(*first));
  first.getResult().replaceAllUsesExcept(second.getResult(), second);
  second->setOperand(0, first.getResult());
  first.setAfterAttr(first.getBeforeAttr());
  claim(first.getResult(), first.getBefore().getValue());
}
void reduceOverDataParallel(ModuleOp module) {
  auto reduce = the<dist::AllReduceOp>(module, attentionProduct);
  reduce.setAxesAttr(OpBuilder(module.getContext()).getStrArrayAttr({"dp"}));
}
void reduceByMaximum(ModuleOp module) {
  the<dist::AllReduceOp>(module, attentionProduct).setKind(ReduceKind::Max);
}
void reduceAfterBias(ModuleOp module) {
  auto reduce = the<dist::AllReduceOp>(module, attentionProduct);
  auto bias = cast<nn::AddOp>(*reduce->user_begin());
  bias->replaceUsesOfWith(reduce.getResult(), reduce.getOperand());
  reduce->moveAfter(bias);
  bias.getResult().replaceAllUsesExcept(reduce.getResult(), reduce);
  reduce->setOperand(0, bias.getResult());
  claim(bias.getResult(), reduce.getBefore().getValue());
}
void dropAllReduceOfEmbedding(ModuleOp module) {
  auto reduce = the<dist::AllReduceOp>(module, "node_embedding");
  claim(reduce.getOperand(), dist::shardingOf(reduce.getResult()));
  reduce.getResult().replaceAllUsesWith(reduce.getOperand());
  reduce.erase();
}
void dropAllReduceOfMlp(ModuleOp module) {
  dist::AllReduceOp reduce;
  module.walk([&](dist::AllReduceOp op) { reduce = op; });
  claim(reduce.getOperand(), dist::shardingOf(reduce.getResult()));
  reduce.getResult().replaceAllUsesWith(reduce.getOperand());
  reduce.erase();
}

// ---- slices, tails, offsets, weights ------------------------------------------------------------

/// k becomes a second q, on global shapes as well: the program is consistent, but another one.
void takeQueriesForKeys(ModuleOp module) {
  auto q = the<nn::SliceOp>(module, splitHeads, 0), k = the<nn::SliceOp>(module, splitHeads, 1);
  k.setStarts(q.getStarts());
  if (Attribute global = q->getAttr(globalAttrsName))
    k->setAttr(globalAttrsName, global);
  else
    k->removeAttr(globalAttrsName);
}
void sliceOneHeadEarly(ModuleOp module) {
  auto k = the<nn::SliceOp>(module, splitHeads, 1);
  SmallVector<int64_t> starts(k.getStarts());
  starts.back() -= 8;
  k.setStarts(starts);
}
void dropFill(ModuleOp module) {
  auto fill = the<dist::FillTailOp>(module, attentionProduct);
  fill.getResult().replaceAllUsesWith(fill.getOperand());
  fill.erase();
}
void fillOtherDim(ModuleOp module) { the<dist::FillTailOp>(module, attentionProduct).setDims({1}); }
void fillWithOne(ModuleOp module) { the<dist::FillTailOp>(module, attentionProduct).setValueAttr(Builder(module.getContext()).getF32FloatAttr(1)); }
void dropOffset(ModuleOp module) { the<nn::EmbeddingOp>(module, "node_embedding").getOffsetMutable().clear(); }
void offsetOfOtherCut(ModuleOp module) {
  the<dist::OffsetOp>(module, "node_embedding").setDimAttr(attr(module, "[499@tp]"));
}

/// Columns 0..47 of [q|k|v] on one rank, 48..95 on the other: as wide as two heads of each.
void cutColumnsPlainly(ModuleOp module) {
  claim(parameter(module, "transformer.h.1.attn.c_attn.weight").getResult(), sharding("[32, 96@tp]"));
}
void weightOfOtherBlock(ModuleOp module) {
  nn::ParameterOp one = parameter(module, "transformer.h.1.mlp.c_fc.weight"),
                  other = parameter(module, "transformer.h.2.mlp.c_fc.weight");
  nn::Storage storage = one.stored();
  storage.offset = other.getOffset();
  storage.hashes = other.getHashes().vec();
  one.setStored(storage);
}

// ---- what each op computes ----------------------------------------------------------------------

void changeScale(ModuleOp module) {
  auto op = the<nn::AttentionOp>(module, attention);
  op.setScale(APFloat(op.getScale().convertToDouble() * 1.5));
}
void seeTheFuture(ModuleOp module) { the<nn::AttentionOp>(module, attention).removeCausalOffsetAttr(); }
/// The residual of the second half of h.1 is what the norm gives instead of what it took.
void addTheNorm(ModuleOp module) {
  auto norm = the<nn::LayerNormOp>(module, "node_layer_norm_3");
  the<nn::AddOp>(module, "node_add_15")->replaceUsesOfWith(norm.getOperand(), norm.getResult());
}

// ---- micro-batches and stages -------------------------------------------------------------------

void setArgumentType(ModuleOp module, RankedTensorType type) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  main.getArgument(0).setType(type);
  main.setFunctionType(
      FunctionType::get(module.getContext(), main.getBody().front().getArgumentTypes(), main.getResultTypes()));
}
/// Rows 0 and 2, then 1 and 3, instead of 0 and 1, then 2 and 3.
void interleaveMicroBatches(ModuleOp module) {
  auto type = cast<RankedTensorType>(module.lookupSymbol<func::FuncOp>("main").getArgument(0).getType());
  setArgumentType(module, dist::withSharding(type, sharding("[(2, 2@mb), 9]")));
}
/// All rows in each micro-batch.
void dropMicroBatches(ModuleOp module) {
  Type i64 = IntegerType::get(module.getContext(), 64);
  setArgumentType(module, RankedTensorType::get({4, 9}, i64, attr(module, "[4, 9]")));
}

pipe::StageOp stage(ModuleOp module, uint64_t index) {
  pipe::StageOp found;
  module.walk([&](pipe::StageOp op) {
    if (op.getIndex() == index)
      found = op;
  });
  return found;
}
void swapStages(ModuleOp module) {
  pipe::StageOp one = stage(module, 1), two = stage(module, 2);
  Region kept;
  kept.takeBody(one.getBody());
  one.getBody().takeBody(two.getBody());
  two.getBody().takeBody(kept);
}
void swapStageNumbers(ModuleOp module) {
  pipe::StageOp one = stage(module, 1), two = stage(module, 2);
  one.setIndex(2);
  two.setIndex(1);
}
/// What goes to stage 1 is the value before the last residual.
void sendTheWrongValue(ModuleOp module) {
  Operation *yield = stage(module, 0).getBody().front().getTerminator();
  for (OpOperand &sent : yield->getOpOperands())
    for (Value operand : sent.get().getDefiningOp()->getOperands())
      if (operand.getType() == sent.get().getType()) {
        sent.set(operand);
        return;
      }
  ADD_FAILURE() << "stage 0 sends nothing of the type of its operands";
}

// ---- the table ----------------------------------------------------------------------------------

const FaultOfProgram programFaults[] = {
    {"AllReduceDropped",
     oddLayout,
     "partition",
     dropAllReduce,
     {"node_addmm_5", "operand 0 is partial over {tp}", "a collective is missing"},
     {"node_addmm_5"}},
    {"AllReduceDroppedSumClaimed",
     oddLayout,
     "partition",
     dropAllReduceAndClaimSum,
     {"node_addmm_5", "the op gives", "partial{tp}"},
     {"node_addmm_5"}},
    {"AllReduceOfEmbeddingDropped",
     oddLayout,
     "partition",
     dropAllReduceOfEmbedding,
     {"node_embedding", "partial{tp}"},
     {"node_embedding"}},
    {"AllReduceOfMlpDropped",
     mlpLayout,
     "partition",
     dropAllReduceOfMlp,
     {"node_linear", "partial{tp}"},
     {"node_linear"}},
    {"AllReduceDoubled",
     oddLayout,
     "partition",
     doubleAllReduce,
     {"node_addmm_7", "dist.all_reduce"},
     {"node_addmm_7"}},
    {"AllReduceOverWrongAxis",
     oddDataParallel,
     "partition",
     reduceOverDataParallel,
     {"node_addmm_5", "sums over 'dp', but the operand is not partial over it"},
     {"node_addmm_5"}},
    {"AllReduceByMaximum",
     oddLayout,
     "partition",
     reduceByMaximum,
     {"node_addmm_5", "only a sum over ranks changes a sharding"},
     {"node_addmm_5"}},
    {"AllReduceAfterBias",
     oddLayout,
     "partition",
     reduceAfterBias,
     {"node_addmm_5", "partial over {tp}"},
     {"node_addmm_5"}},
    {"QueriesForKeys", oddLayout, "partition", takeQueriesForKeys, {}, {"node_Split_470"}},
    {"SliceOneHeadEarly",
     oddLayout,
     "partition",
     sliceOneHeadEarly,
     {"node_Split_470", "attribute 'starts'"},
     {"node_Split_470"}},
    {"FillDropped",
     oddLayout,
     "partition",
     dropFill,
     {"node_addmm_5", "reduces over padding of operand 0"},
     {"node_addmm_5", "nan"}},
    {"FillOfOtherDim",
     oddLayout,
     "partition",
     fillOtherDim,
     {"node_addmm_5", "dist.fill_tail must set"},
     {"node_addmm_5"}},
    // The weight holds zeros where the tail holds ones, and the plan multiplies neither.
    {"FillWithOne", oddLayout, "partition", fillWithOne, {"node_addmm_5", "dist.fill_tail must set to 0.000000e+00"}, {}},
    {"OffsetDropped",
     oddLayout,
     "partition",
     dropOffset,
     {"node_embedding", "reads 1 cut coordinates, but has 0 offsets"},
     {"node_embedding"}},
    {"OffsetOfOtherCut",
     oddLayout,
     "partition",
     offsetOfOtherCut,
     {"node_embedding", "with the offset of [499@tp]"},
     {"node_embedding"}},
    {"WeightCutPlainly", tinyLayout, "partition", cutColumnsPlainly, {"node_addmm_4", "96@tp"}, {"node_addmm_4"}},
    {"WeightOfOtherBlock", oddLayout, "partition", weightOfOtherBlock, {}, {"node_addmm_6"}},
    {"AttentionScaleChanged", oddLayout, "partition", changeScale, {}, {attention}},
    {"CausalMaskDropped", oddLayout, "partition", seeTheFuture, {}, {attention}},
    {"ResidualOfTheNorm", oddLayout, "partition", addTheNorm, {}, {"node_add_15"}},
    {"MicroBatchesInterleaved",
     oddLayout,
     "partition",
     interleaveMicroBatches,
     {"node_embedding", "(2, 2@mb)"},
     {"node_embedding"}},
    {"MicroBatchesDropped", oddLayout, "partition", dropMicroBatches, {"node_embedding"}, {"node_embedding"}},
    // The norm of block 2 stands where block 0 ends.
    {"StagesSwapped", tinyFourStages, "stage", swapStages, {}, {"differs at ONNX node 'node_layer_norm_4'"}},
    {"StageNumbersSwapped",
     tinyFourStages,
     "stage",
     swapStageNumbers,
     {"must carry a result of stage"},
     {"'pipe.stage' op (C2)"}},
    {"WrongValueSent", oddLayout, "stage", sendTheWrongValue, {}, {"node_add_15"}},
};

} // namespace

namespace hpc::test {

TEST_P(ProgramFault, VerifyPassNamesIt) {
  const FaultOfProgram &fault = GetParam();
  std::string found = Compilation::of(fault.layout(), fault.phase).verifyPhase(fault.breakIt);
  if (fault.verifyPass.empty())
    EXPECT_EQ(found, "") << "the verify pass sees more than this table says";
  for (const char *text : fault.verifyPass)
    EXPECT_THAT(found, HasSubstr(text));
  if (std::getenv("HPC_SHOW"))
    std::fprintf(stderr, "%s, pass: %s\n", fault.name, found.c_str());
}

TEST_P(ProgramFault, VerifyNamesIt) {
  const FaultOfProgram &fault = GetParam();
  std::string found = Compilation::of(fault.layout(), fault.phase).compileAndVerify(fault.breakIt);
  if (fault.verify.empty())
    EXPECT_EQ(found, "") << "a fault that was thought to do no harm";
  for (const char *text : fault.verify)
    EXPECT_THAT(found, HasSubstr(text));
  if (std::getenv("HPC_SHOW"))
    std::fprintf(stderr, "%s, --verify: %s\n", fault.name, found.c_str());
}

} // namespace hpc::test

namespace {

INSTANTIATE_TEST_SUITE_P(All, ProgramFault, testing::ValuesIn(programFaults),
                         [](const auto &info) { return std::string(info.param.name); });

// The control: whatever finds the faults above finds none in the unbroken programs.
TEST(Unbroken, NothingIsFound) {
  size_t number = 0;
  for (Layout (*layout)() :
       {oddLayout, oddDataParallel, tinyLayout, tinyFourStages, mlpLayout, oddTwoDimensional, oddZigzag, mlpDepth, oddTraining, tinyTraining})
    for (const char *phase : {"partition", "stage"}) {
      const size_t turn = number++;
      if ((turn + turn / 2) % 2 && !std::getenv("HPC_TEST_ALL")) // either phase in turn
        continue;
      SCOPED_TRACE(std::string(layout().model) + " " + layout().options.loss + " after " + phase);
      Compilation &compilation = Compilation::of(layout(), phase);
      EXPECT_EQ(compilation.verifyPhase([](ModuleOp) {}), "");
      EXPECT_EQ(compilation.compileAndVerify([](ModuleOp) {}), "");
    }
}

} // namespace
