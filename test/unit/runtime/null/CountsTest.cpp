// The null backend against numbers made by hand, for every rank of the tiny plan.
#include "runtime/backend/null/Counts.h"
#include "runtime/backend/null/NullBackend.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <gtest/gtest.h>

using namespace hpc;
using null::Counts;
using null::Traffic;

// Per micro-batch: rank 0 multiplies 2x6x4 and 2x4x5, rank 1 the same with its cut of 3; stage 1 2x5x4 and 2x5x3.
TEST(NullBackend, CountsWhatEachRankDoes) {
  TinyPlan tiny;
  for (plan::Weight &weight : tiny.plan.weights)
    weight.hashes.assign(weight.hashes.size(), 0); // no weights are read
  Expected<std::vector<Counts>> counts = null::countRanks(tiny.plan);
  ASSERT_TRUE(counts.ok()) << counts.status().text();
  ASSERT_EQ(counts->size(), 4u);
  const int64_t flops[] = {2 * (96 + 80), 2 * (72 + 60), 2 * 80, 2 * 60};
  for (size_t rank = 0; rank < 4; ++rank) {
    const Counts &one = (*counts)[rank];
    bool isFirst = rank < 2;
    EXPECT_EQ(one.flops, flops[rank]);
    EXPECT_EQ(one.gemms, isFirst ? 4 : 2);
    EXPECT_EQ(one.kernels, 2);
    EXPECT_EQ(one.copies, 0);
    EXPECT_EQ(one.loads, isFirst ? 2 : 0);
    EXPECT_EQ(one.stores, isFirst ? 0 : 2);
    EXPECT_EQ(one.waits, 2);
    std::map<std::pair<std::string, std::string>, Traffic> traffic;
    if (isFirst) {
      traffic[{"all_reduce", "tp"}] = {2, 80};
      traffic[{"send", ""}] = {2, 80};
    } else {
      traffic[{"recv", ""}] = {2, 80};
    }
    EXPECT_EQ(one.traffic, traffic);
  }
}

// An arena of 1 TiB is reserved, not taken.
TEST(NullBackend, NeedsNoMemory) {
  TinyPlan tiny;
  tiny.plan.stages[0].workBytes = int64_t(1) << 40;
  Expected<std::vector<Counts>> counts = null::countRanks(tiny.plan);
  ASSERT_TRUE(counts.ok()) << counts.status().text();
  EXPECT_EQ((*counts)[0].gemms, 4);
}

// Whoever reads or writes an address of the null device after all dies of it: the counts are of a run that moved
// nothing.
TEST(NullBackendDeathTest, MemoryCannotBeTouched) {
  std::vector<Counts> counts(1);
  std::unique_ptr<Backend> backend = null::createNullBackend(counts);
  ThreadPool alone;
  Expected<std::unique_ptr<Device>> device = backend->createDevice({0, 0, 0}, alone);
  Expected<std::byte *> memory = (*device)->allocate(plan::Space::Device, 64, std::byte{0});
  ASSERT_TRUE(memory.ok());
  EXPECT_DEATH(*static_cast<volatile std::byte *>(*memory) = std::byte{1}, "");
}
