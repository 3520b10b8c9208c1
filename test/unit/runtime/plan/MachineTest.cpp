// The prices that the heuristics have had since they were tuned; a machine of its own changes them together.
#include "runtime/plan/Machine.h"

#include "gtest/gtest.h"

namespace hpc::plan {

TEST(MachineTest, DefaultPrices) {
  EXPECT_EQ(Machine().operationsPerByte(), 16);
  EXPECT_EQ(Machine().operationsPerByteSent(), 256);
  EXPECT_EQ(Machine().bytesOfLatency(), 64 << 10);
}

} // namespace hpc::plan
