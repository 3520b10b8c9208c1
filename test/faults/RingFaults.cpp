// Ways of breaking a ring of three: a step left out, blocks that move too far, that are read twice or at positions of another rank, gradients
// that end on a rank that does not have their keys. hpc-verify-rings counts hops; --verify compares numbers.
#include "test/faults/ProgramFault.h"

namespace hpc::test {
namespace {

/// The ops of a kind, in program order.
template <typename OpT> SmallVector<OpT> allOf(ModuleOp module) {
  SmallVector<OpT> found;
  module.walk([&](OpT op) { found.push_back(op); });
  return found;
}
/// Part `step` of the first layer's attention.
nn::AttentionOp part(ModuleOp module, size_t step) { return allOf<nn::AttentionOp>(module)[step]; }

void leaveOutTheLastStep(ModuleOp module) {
  nn::AttentionOp last = part(module, 2), before = part(module, 1);
  last.getResult().replaceAllUsesWith(before.getResult());
  last.getLogSum().replaceAllUsesWith(before.getLogSum());
  last.erase();
}
void leaveOutAStep(ModuleOp module) {
  nn::AttentionOp second = part(module, 1);
  part(module, 2).getCarriedMutable().assign(second.getCarried());
  second.erase();
}
void moveTwice(ModuleOp module) { allOf<dist::RawPermuteOp>(module)[0].setShift(2); }
void readTwice(ModuleOp module) {
  part(module, 2).getKeyMutable().assign(part(module, 1).getKey());
  part(module, 2).getValueMutable().assign(part(module, 1).getValue());
}
void readValuesOfAnother(ModuleOp module) { part(module, 2).getValueMutable().assign(part(module, 1).getValue()); }
void readAtOtherPositions(ModuleOp module) { part(module, 1).getKeyStart().back().getDefiningOp<dist::OffsetOp>().setShift(0); }
void forgetWhatWasCarried(ModuleOp module) { part(module, 1).getCarriedMutable().clear(); }
/// The gradients of the last layer's keys do not take the last hop.
void stopBeforeHome(ModuleOp module) {
  nn::AttentionGradOp last = allOf<nn::AttentionGradOp>(module)[2];
  Operation *sum = *last.getKeyGradient().user_begin();
  auto hop = cast<dist::RawPermuteOp>(*sum->user_begin());
  hop.getResult().replaceAllUsesWith(hop.getOperand());
  hop.erase();
}
void doubleTheRowSums(ModuleOp module) {
  nn::AttentionGradOp second = allOf<nn::AttentionGradOp>(module)[1];
  OpBuilder builder(second);
  Value sums = second.getWhole()[1], twice = nn::AddOp::create(builder, second.getLoc(), sums, sums);
  twice.setType(sums.getType());
  second.getWholeMutable().assign(ValueRange{second.getWhole()[0], twice});
}

// Layer 0 is at node_matmul_1, and node_transpose_4 the first that reads its result; the gradients of the last layer come first.
const FaultOfProgram ringFaults[] = {
    {"LastStepLeftOut", tinyRing, "partition", leaveOutTheLastStep, {"node_matmul_1", "has not read the keys of the rank 2 further; a step is left out"}, {"node_transpose_4"}},
    {"StepLeftOut", tinyRing, "partition", leaveOutAStep, {"node_matmul_1", "has not read the keys of the rank 1 further"}, {"node_transpose_4"}},
    {"ShiftOfTwo", tinyRing, "partition", moveTwice, {"reads keys that move 2 along 'cp'"}, {"node_transpose_4"}},
    {"BlockTwice", tinyRing, "partition", readTwice, {"reads the keys of the rank 1 further a second time"}, {"node_transpose_4"}},
    {"ValuesOfAnother", tinyRing, "partition", readValuesOfAnother, {"keys of the rank 2 further with values of the rank 1 further"}, {"node_transpose_4"}},
    {"OtherPositions", tinyRing, "partition", readAtOtherPositions, {"reads the keys of the rank 1 further at the positions of the rank 0 further"}, {"node_transpose_4"}},
    {"NothingCarried", tinyRing, "partition", forgetWhatWasCarried, {"a step is left out"}, {"node_transpose_4"}},
    {"GradientNotHome", tinyRing, "partition", stopBeforeHome, {"which end at the rank 2 further from these keys"}, {"node_matmul_7"}},
    {"OtherRowSums", tinyRing, "partition", doubleTheRowSums, {}, {"node_matmul_7"}},
};

INSTANTIATE_TEST_SUITE_P(Rings, ProgramFault, testing::ValuesIn(ringFaults), [](const testing::TestParamInfo<FaultOfProgram> &fault) { return std::string(fault.param.name); });

} // namespace
} // namespace hpc::test
