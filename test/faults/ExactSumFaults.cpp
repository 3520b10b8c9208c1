// Ways of breaking a step with exact sums before it is cut: a term that is missing, and a grid too coarse. The first is compared without the
// grid's rounding, which alone may move a weight by more than f32 does, since AdamW divides gradients near 0 by as little.
#include "compiler/Dialect/NN/GradientBuilder.h"
#include "test/faults/ProgramFault.h"

#include <gmock/gmock.h>

namespace hpc::test {
namespace {

constexpr const char *tiedTerm = "node_embedding"; ///< where the gradients of head and embedding meet
constexpr const char *product = "node_addmm_6";

/// The ops of a kind in f64, of one node.
template <typename OpT> SmallVector<OpT> ofDoubles(ModuleOp module, StringRef node) {
  SmallVector<OpT> found = all<OpT>(module, node);
  llvm::erase_if(found, [](OpT op) { return !nn::tensorType(op.getResult()).getElementType().isF64(); });
  return found;
}

void addTiedOnce(ModuleOp module) {
  nn::AddOp sum = all<nn::AddOp>(module, tiedTerm).back();
  sum.getResult().replaceAllUsesWith(sum.getRhs());
}
/// The first factor of a forward product has 12 bits instead of 24.
void coarsen(ModuleOp module) {
  nn::RoundOp round = ofDoubles<nn::RoundOp>(module, product).front();
  OpBuilder builder(round);
  GradientBuilder b(builder, round.getLoc());
  Value coarse = b.scaled(b.unary<nn::RoundOp>(b.scaled(round.getOperand(), 0x1p-12)), 0x1p12);
  round.getResult().replaceAllUsesWith(coarse);
}

/// --verify refused it: a weight was off by 2.47e-6, its bound was 2.24e-6.
TEST(ExactSums, AStepOfOneRankIsAccepted) { EXPECT_EQ(Compilation::of(tinyExact(), "partition").verifySerial([](ModuleOp) {}), ""); }

TEST(ExactSums, AMissingTermIsFound) {
  EXPECT_THAT(Compilation::of(tinyExact(), "partition").verifySerial(addTiedOnce), testing::HasSubstr("serial program after raise differs"));
}
TEST(ExactSums, ACoarseGridIsFound) {
  EXPECT_THAT(Compilation::of(tinyExact(), "partition").verifySerial(coarsen), testing::HasSubstr("serial program after raise differs"));
}

} // namespace
} // namespace hpc::test
