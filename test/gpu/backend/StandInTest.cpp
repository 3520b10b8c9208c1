// The stand-in itself: it must catch what it is there to catch, or the other tests of this folder prove nothing.
#include "runtime/backend/cuda/ReduceKernel.h"
#include "test/gpu/backend/GpuFixture.h"

#include <thread>

using namespace hpc;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

struct Card {
  cuda::Driver driver;
  std::unique_ptr<cuda::Gpu> gpu;

  Card() {
    driver = *cuda::loadDriver(HPC_STANDIN_FOLDER);
    gpu = std::move(*cuda::Gpu::open(driver, 0));
  }
};

} // namespace

// A host that follows a pointer of the device must not get away with it.
TEST_F(Gpu, MemoryOfTheDeviceIsOutOfTheHostsReach) {
  Card card;
  cuda::DeviceMemory memory = std::move(*card.gpu->allocate(64));
  auto *data = reinterpret_cast<volatile int *>(uintptr_t(memory.get()));
  EXPECT_DEATH((void)*data, "");
  EXPECT_DEATH(*data = 1, "");
}

// Two streams that write the same bytes: a race without an event between them, none with it; whatever ran first.
TEST_F(Gpu, RacesAreFoundByOrderNotByTiming) {
  enum Order { None, ByEvent, ByWrongEvent, ByHost };
  for (Order order : {None, ByEvent, ByWrongEvent, ByHost})
    for (bool secondReads : {false, true})
      for (uint64_t seed = 0; seed < 5; ++seed) {
        standin::Settings settings;
        settings.seed = seed;
        standin::configure(settings);
        {
          Card card;
          const cuda::Driver &driver = card.driver;
          cuda::Stream first = std::move(*card.gpu->makeStream()), second = std::move(*card.gpu->makeStream());
          cuda::Event event = std::move(*card.gpu->makeEvent());
          cuda::DeviceMemory memory = std::move(*card.gpu->allocate(256)), other = std::move(*card.gpu->allocate(256));
          if (order == ByWrongEvent)
            EXPECT_EQ(driver.recordEvent(event.get(), first.get()), 0);
          EXPECT_EQ(driver.fillAsync(memory.get() + 64, 1, 64, first.get()), 0);
          if (order == ByEvent)
            EXPECT_EQ(driver.recordEvent(event.get(), first.get()), 0);
          if (order == ByEvent || order == ByWrongEvent)
            EXPECT_EQ(driver.waitForEvent(second.get(), event.get(), 0), 0);
          if (order == ByHost)
            EXPECT_EQ(driver.synchronizeStream(first.get()), 0);
          EXPECT_EQ(secondReads ? driver.copyAsync(other.get(), memory.get() + 127, 1, second.get())
                                : driver.fillAsync(memory.get() + 127, 2, 64, second.get()),
                    0);
          EXPECT_EQ(driver.fillAsync(memory.get(), 3, 64, second.get()), 0); // beside it: no race
          driver.synchronizeStream(first.get());
          driver.synchronizeStream(second.get());
        }
        const bool ordered = order == ByEvent || order == ByHost;
        EXPECT_EQ(standin::races().size(), ordered ? 0u : 1u) << order << secondReads;
        standin::configure({});
      }
}

// Bytes beyond an allocation, freed ones and memory that is not pinned.
TEST_F(Gpu, WhatIsNotThereIsNotTouched) {
  Card card;
  const cuda::Driver &driver = card.driver;
  cuda::Stream stream = std::move(*card.gpu->makeStream());
  cuda::DeviceMemory memory = std::move(*card.gpu->allocate(64));
  std::vector<std::byte> pageable(64);
  EXPECT_NE(driver.copyAsync(memory.get(), cuda::DevicePointer(uintptr_t(pageable.data())), 64, stream.get()), 0);
  EXPECT_THAT(standin::misuses(), testing::ElementsAre(HasSubstr("not pinned")));
  EXPECT_EQ(driver.fillAsync(memory.get() + 1, 0, 64, stream.get()), 0);
  EXPECT_EQ(driver.synchronizeStream(stream.get()), cuda::driverIllegalAddress);
  EXPECT_EQ(driver.fillAsync(memory.get(), 0, 64, stream.get()), cuda::driverIllegalAddress); // and so it stays
  standin::configure({});
}

// A block that sums 64 numbers through shared memory, with and without the barrier that it needs.
TEST_F(Gpu, AMissingBarrierShows) {
  const std::string head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry sum(.param .u64 p0)\n{\n"
                           ".reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .b64 %x<4>;\n.shared .align 4 .b8 cell[256];\n"
                           "mov.u32 %r0, %tid.x;\nmov.u32 %r1, cell;\nshl.b32 %r2, %r0, 2;\nadd.s32 %r3, %r1, %r2;\n"
                           "st.shared.u32 [%r3], %r0;\n",
                    tail = "xor.b32 %r4, %r2, 252;\nadd.s32 %r4, %r1, %r4;\nld.shared.u32 %r5, [%r4];\n"
                           "shfl.sync.bfly.b32 %r6|%p0, %r5, 1, 31, -1;\nadd.s32 %r5, %r5, %r6;\n"
                           "ld.param.u64 %x0, [p0];\nmul.wide.u32 %x1, %r0, 4;\nadd.s64 %x0, %x0, %x1;\n"
                           "st.global.u32 [%x0], %r5;\nret;\n}\n";
  for (bool hasBarrier : {true, false}) {
    Card card;
    const cuda::Driver &driver = card.driver;
    cuda::Stream stream = std::move(*card.gpu->makeStream());
    cuda::DeviceMemory memory = std::move(*card.gpu->allocate(256));
    cuda::PinnedMemory result = std::move(*card.gpu->allocatePinned(256));
    cuda::CodeLibrary code = std::move(*cuda::loadCode(driver, head + (hasBarrier ? "bar.sync 0;\n" : "") + tail));
    auto kernel = reinterpret_cast<cuda::FunctionHandle>(*cuda::findKernel(driver, code, "sum"));
    bool wrong = false;
    for (int run = 0; run < 8; ++run) {
      cuda::DevicePointer target = memory.get();
      void *arguments[] = {&target};
      ASSERT_EQ(driver.launch(kernel, 1, 1, 1, 64, 1, 1, 0, stream.get(), arguments, nullptr), 0);
      ASSERT_EQ(driver.copyAsync(cuda::DevicePointer(uintptr_t(result.get())), target, 256, stream.get()), 0);
      ASSERT_EQ(driver.synchronizeStream(stream.get()), 0);
      for (uint32_t t = 0; t < 64; ++t)
        wrong |= static_cast<uint32_t *>(result.get())[t] != (63 - t) + (63 - (t ^ 1));
    }
    EXPECT_EQ(wrong, !hasBarrier);
  }
}

// Sessions open and close the same GPU at the same time: none of it is lost count of.
TEST_F(Gpu, ManyMayHoldOneContext) {
  cuda::Driver driver = *cuda::loadDriver(HPC_STANDIN_FOLDER);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        Expected<std::unique_ptr<cuda::Gpu>> gpu = cuda::Gpu::open(driver, 0);
        EXPECT_TRUE(gpu.ok() && (*gpu)->makeEvent().ok());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(standin::leaks(), "");
  EXPECT_NE(driver.releaseContext(0), cuda::driverSuccess);
}

// What is not given back is told, by kind.
TEST_F(Gpu, LeaksAreTold) {
  Card card;
  cuda::Stream stream = std::move(*card.gpu->makeStream());
  cuda::DeviceMemory memory = std::move(*card.gpu->allocate(100));
  EXPECT_THAT(standin::leaks(), testing::AllOf(HasSubstr("1 of streams"), HasSubstr("device memory, 100 bytes")));
}
