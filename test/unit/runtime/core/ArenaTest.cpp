// What a plan says that a rank takes is what its arenas allocate, on the device and beside it.
#include "runtime/backend/host/HostDevice.h"
#include "runtime/core/Arena.h"
#include "runtime/plan/PlanFacts.h"
#include "test/unit/runtime/plan/SamplePlan.h"

#include <gtest/gtest.h>

using namespace hpc;

namespace {

struct CountingDevice : host::HostDevice {
  int64_t device = 0, beside = 0;

  Expected<std::byte *> allocate(plan::Space space, int64_t bytes, std::byte fill) override {
    (space == plan::Space::Device ? device : beside) += bytes;
    return HostDevice::allocate(space, bytes, fill);
  }
};

/// Every stage of a plan with weights, slots and temporaries, one with memory beside the device.
/// An arena that takes more than the prediction fails on a device that --memory said was large enough.
TEST(Arena, allocatesWhatThePlanPredicts) {
  plan::Plan plan = plan::test::samplePlan();
  plan::Stage &first = plan.stages.front();
  first.hostBytes = 4096;
  std::vector<plan::MemoryFacts> predicted = plan::staticFacts(plan).memory;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    CountingDevice device;
    Expected<Arena> arena = Arena::create(plan.stages[stage], device, /*poison=*/false);
    ASSERT_TRUE(arena.ok()) << arena.status().text();
    EXPECT_EQ(device.device, predicted[stage].total()) << "stage " << stage;
    EXPECT_EQ(device.beside, predicted[stage].host) << "stage " << stage;
    EXPECT_EQ(arena->bytes(), device.device + device.beside) << "stage " << stage;
  }
}

} // namespace
