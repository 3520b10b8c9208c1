// The prices that the heuristics have had since they were tuned; a machine of its own changes them together.
#include "runtime/cost/Machine.h"

#include "gtest/gtest.h"

namespace hpc::cost {

TEST(MachineTest, DefaultPrices) {
  EXPECT_EQ(Machine().operationsPerByte(), 16);
  EXPECT_EQ(Machine().operationsPerByteSent(), 256);
  EXPECT_EQ(Machine().bytesOfLatency(), 64 << 10);
}

// 0.25 of the peak up to 64, 0.75 from 1024 on: 256 lies in the middle of their logarithms.
TEST(MachineTest, EfficiencyFollowsTheSmallestSize) {
  Machine machine;
  machine.products = {{DType::F32, 1e9, {{64, 0.25}, {1024, 0.75}}}};
  EXPECT_DOUBLE_EQ(machine.productSeconds(DType::F32, 256, 512, 1024), 2.0 * 256 * 512 * 1024 / 0.5e9);
  EXPECT_DOUBLE_EQ(machine.productSeconds(DType::F32, 4096, 8, 4096), 2.0 * 4096 * 8 * 4096 / 0.25e9);
  EXPECT_DOUBLE_EQ(machine.productSeconds(DType::BF16, 2048, 2048, 2048), 2.0 * 2048 * 2048 * 2048 / 0.75e9);
}

// Hosts of 8: ranks 6 and 7 are joined inside, 7 and 8 are not.
TEST(MachineTest, TheInnermostLinkThatJoins) {
  Machine machine;
  machine.links = {{8, 1e-6, 240e9}, {0, 1e-5, 20e9}};
  EXPECT_EQ(machine.linkOf(6, 2).ranks, 8);
  EXPECT_EQ(machine.linkOf(7, 2).ranks, 0);
}

} // namespace hpc::cost
