// Ways of breaking programs whose tensor parallelism has several axes: a sum over one of them that is missing or goes over another, a gather of other ranks' pieces.
// Shapes agree on all axes, which have as many ranks, so no shape gives a fault away.
#include "test/faults/ProgramFault.h"

using namespace hpc;
using namespace hpc::test;

namespace {

constexpr const char *middle = "node_linear_1", *middleWeight = "fc2.weight";
constexpr const char *norm = "node_layer_norm_3", *afterNorm = "node_addmm_6";

SmallVector<std::string> axesOf(dist::AllReduceOp op) {
  SmallVector<std::string> axes;
  for (Attribute axis : op.getAxes())
    axes.push_back(cast<StringAttr>(axis).getValue().str());
  return axes;
}

/// The sum over these axes at a node, of a value of so many dims.
dist::AllReduceOp sumOver(ModuleOp module, StringRef node, ArrayRef<std::string> axes, size_t rank) {
  for (auto reduce : all<dist::AllReduceOp>(module, node))
    if (ArrayRef<std::string>(axesOf(reduce)) == axes && nn::shapeOf(reduce.getResult()).size() == rank)
      return reduce;
  module.dump();
  ADD_FAILURE() << "no such sum at " << node.str() << "; the test is out of date";
  std::exit(1);
}

void drop(dist::AllReduceOp reduce) {
  reduce.getResult().replaceAllUsesWith(reduce.getOperand());
  reduce.erase();
}
void dropAndClaim(dist::AllReduceOp reduce) {
  claim(reduce.getOperand(), dist::shardingOf(reduce.getResult()));
  drop(reduce);
}
void sumOverOther(dist::AllReduceOp reduce, ArrayRef<StringRef> axes) { reduce.setAxesAttr(Builder(reduce.getContext()).getStrArrayAttr(axes)); }

// ---- sums ---------------------------------------------------------------------------------------

void dropDepthSum(ModuleOp module) { drop(sumOver(module, middle, {"tp.z"}, 2)); }
/// Replicas along z drift apart: each updates with the gradient of its own rows.
void dropDepthSumAndClaim(ModuleOp module) { dropAndClaim(sumOver(module, middle, {"tp.z"}, 2)); }
void sumBiasOverDepthAlone(ModuleOp module) { sumOverOther(sumOver(module, middle, {"tp.x", "tp.z"}, 1), {"tp.z"}); }
/// The norm of all gradients lacks the columns of other ranks: pieces over x are added up, those over y are not.
void normOverOneAxis(ModuleOp module) {
  dist::AllReduceOp last;
  module.walk([&](dist::AllReduceOp op) {
    if (nn::shapeOf(op.getResult()).empty() && ArrayRef<std::string>(axesOf(op)) == ArrayRef<std::string>({"tp.y"}))
      last = op;
  });
  ASSERT_TRUE(last) << "no sum of the norm over tp.y";
  dropAndClaim(last);
}
void statisticsOverRows(ModuleOp module) { sumOverOther(the<dist::AllReduceOp>(module, norm), {"tp.x"}); }
void dropStatisticsAndClaim(ModuleOp module) { dropAndClaim(the<dist::AllReduceOp>(module, norm, 1)); }

// ---- gathers ------------------------------------------------------------------------------------

dist::AllGatherOp gatherOver(ModuleOp module, StringRef node, StringRef axis) {
  for (auto gather : all<dist::AllGatherOp>(module, node))
    if (gather.getAxis() == axis)
      return gather;
  module.dump();
  ADD_FAILURE() << "no gather over " << axis.str() << "; the test is out of date";
  std::exit(1);
}
/// The columns of a row's first half and of another row's.
void gatherColumnsOverRows(ModuleOp module) { gatherOver(module, afterNorm, "tp.y").setAxis("tp.x"); }
/// Ranks along z hold the same piece: each gets it twice.
void gatherPieceOverDepth(ModuleOp module) { gatherOver(module, middle, "tp.x").setAxis("tp.z"); }

// ---- the order of rows --------------------------------------------------------------------------

/// Logits leave in the order in which ranks of cp have rows.
void dropInverseOfZigzag(ModuleOp module) {
  nn::GatherOp last;
  module.walk([&](nn::GatherOp op) { last = op; });
  auto whole = last.getOperand(0).getDefiningOp<dist::AllGatherOp>();
  ASSERT_TRUE(whole && whole.getOperand().getType() == last.getType()) << "rows do not return to the program's order where they are gathered";
  last.replaceAllUsesWith(whole.getOperand());
  last.erase();
}
/// Queries see keys by positions that are those of others.
void leaveKeysInZigzag(ModuleOp module) {
  nn::AttentionOp op;
  module.walk([&](nn::AttentionOp each) { op = op ? op : each; });
  auto keys = op.getOperand(1).getDefiningOp<nn::GatherOp>();
  ASSERT_TRUE(keys) << "keys are in no other order";
  op.setOperand(1, keys.getOperand(0));
}

const FaultOfProgram layoutFaults[] = {
    {"DepthSumDropped", mlpDepth, "partition", dropDepthSum, {middleWeight, "partial over {tp.z}", "a collective is missing"}, {middleWeight}},
    {"DepthSumDroppedSumClaimed", mlpDepth, "partition", dropDepthSumAndClaim, {middle, "partial{tp.z}"}, {middle}},
    {"BiasSummedOverDepthAlone", mlpDepth, "partition", sumBiasOverDepthAlone, {middle}, {middle}},
    {"NormSummedOverOneAxisOfTwo", mlpDepth, "partition", normOverOneAxis, {"partial over {tp.y}"}, {"differs"}},
    {"StatisticsSummedOverRows", oddTwoDimensional, "partition", statisticsOverRows, {norm, "sums over 'tp.x', but the operand is not partial over it"}, {norm}},
    {"StatisticsNotSummed", oddTwoDimensional, "partition", dropStatisticsAndClaim, {norm, "partial over {tp.y}"}, {norm}},
    {"ColumnsGatheredOverRows", oddTwoDimensional, "partition", gatherColumnsOverRows, {afterNorm}, {afterNorm}},
    {"ZigzagWithoutInverse", oddZigzag, "partition", dropInverseOfZigzag, {}, {"node_linear"}},
    {"KeysInZigzag", oddZigzag, "partition", leaveKeysInZigzag, {}, {"node_matmul"}},
    {"PieceGatheredOverDepth", mlpDepth, "partition", gatherPieceOverDepth, {middle}, {middle}},
};

INSTANTIATE_TEST_SUITE_P(Layouts, ProgramFault, testing::ValuesIn(layoutFaults), [](const auto &info) { return std::string(info.param.name); });

} // namespace
