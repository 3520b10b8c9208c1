// Steps as CUDA graphs: results with other inputs each time, how much of a step the host leaves out, steps that fail
// when they are captured or replayed; and what the stand-in refuses of a capture, as the driver does.
#include "test/gpu/backend/GpuFixture.h"

#include <functional>

using namespace hpc;
using testing::HasSubstr;

namespace {

void fourCards(int64_t failingCall = -1) {
  standin::Settings settings;
  settings.devices = 4;
  settings.failingCall = failingCall;
  settings.longestDelay = 50;
  standin::configure(settings);
}

} // namespace

// The third step is captured and the others are replayed: loads, stores and one launch are all that is left, and inputs
// of their own come through. Poison has to be in the graph, or a wrong extent would show in the first steps alone.
TEST_F(Gpu, StepsAreReplayedWithTheirOwnInputs) {
  for (bool posted : {false, true})
    for (bool poison : {false, true})
      for (bool graph : {true, false}) {
        fourCards();
        GpuPlan run;
        if (posted)
          run.postTheAllReduce();
        run.options.poison = poison;
        cuda::CudaOptions options = onStandIn(1);
        options.cudaGraph = graph;
        Expected<std::unique_ptr<Session>> session = run.create(options);
        ASSERT_TRUE(session.ok()) << session.status().text();
        for (int64_t step = 0; step < 7; ++step)
          run.expectRight(**session, step * 3);
        EXPECT_EQ(standin::launchedGraphs(), graph ? 5 * 4 : 0); // of each rank all steps but two
      }
}

// Whatever fails while a step is captured, launched for the first time or replayed: one error, the next steps are right,
// by a graph again, and nothing is left.
TEST_F(Gpu, AStepThatFailsIsCapturedAnew) {
  int64_t failing = 0;
  for (;; failing += 3) { // the ranks share them out anew each time
    fourCards();
    GpuPlan run;
    run.postTheAllReduce();
    bool failed = false;
    {
      Expected<std::unique_ptr<Session>> session = run.create(onStandIn(1));
      ASSERT_TRUE(session.ok()) << session.status().text();
      for (int64_t input : {0, 3})
        run.expectRight(**session, input);
      fourCards(failing);
      for (int64_t input : {4, 5, 6}) { // captured, replayed
        Expected<std::vector<Array>> outputs = (*session)->run({GpuPlan::input(input)});
        if (outputs.ok())
          run.expectRight(*outputs, input);
        failed |= !outputs.ok();
      }
      EXPECT_EQ(failed, !standin::failedCall().empty()) << standin::failedCall() << ", call " << failing;
      // What fails while communicators are made anew leaves none, which the next failure mends.
      for (int64_t input : {7, 8})
        if (Expected<std::vector<Array>> outputs = (*session)->run({GpuPlan::input(input)}); outputs.ok())
          run.expectRight(*outputs, input);
    }
    expectClean(standin::failedCall() + ", call " + std::to_string(failing));
    if (!failed)
      break;
  }
  EXPECT_GT(failing, 100);
}

namespace {

/// Two streams of a card, one of them captured.
struct Captured {
  cuda::Driver driver = *cuda::loadDriver(HPC_STANDIN_FOLDER);
  std::unique_ptr<cuda::Gpu> gpu = std::move(*cuda::Gpu::open(driver, 0));
  cuda::Stream first = std::move(*gpu->makeStream()), second = std::move(*gpu->makeStream());
  cuda::Event fork = std::move(*gpu->makeEvent()), join = std::move(*gpu->makeEvent());
  cuda::DeviceMemory memory = std::move(*gpu->allocate(64)), other = std::move(*gpu->allocate(64));

  void fill(const cuda::Stream &stream, unsigned char value) {
    EXPECT_EQ(driver.fillAsync(memory.get(), value, 64, stream.get()), 0);
  }
  void branch() {
    EXPECT_EQ(driver.recordEvent(fork.get(), first.get()), 0);
    EXPECT_EQ(driver.waitForEvent(second.get(), fork.get(), 0), 0);
  }
  void comeBack() {
    EXPECT_EQ(driver.recordEvent(join.get(), second.get()), 0);
    EXPECT_EQ(driver.waitForEvent(first.get(), join.get(), 0), 0);
  }
  cuda::DriverResult end() {
    cuda::GraphHandle graph = nullptr;
    cuda::DriverResult result = driver.endCapture(first.get(), &graph);
    EXPECT_EQ(graph != nullptr, result == 0);
    if (graph)
      driver.destroyGraph(graph);
    return result;
  }
};

} // namespace

// What spoils a capture on a card does so here, or a step that cannot be captured would pass.
TEST_F(Gpu, WhatACaptureForbids) {
  struct Case {
    const char *name;
    std::function<cuda::DriverResult(Captured &)> call;
    cuda::DriverResult wanted, atEnd;
  };
  const Case cases[] = {
      {"nothing", [](Captured &) { return 0; }, 0, 0},
      {"memory",
       [](Captured &c) {
         cuda::DevicePointer pointer = 0;
         return c.driver.allocate(&pointer, 8);
       },
       cuda::driverCaptureUnsupported, cuda::driverCaptureInvalidated},
      {"waiting for the stream", [](Captured &c) { return c.driver.synchronizeStream(c.first.get()); },
       cuda::driverCaptureUnsupported, cuda::driverCaptureInvalidated},
      {"asking the stream", [](Captured &c) { return c.driver.queryStream(c.first.get()); },
       cuda::driverCaptureUnsupported, cuda::driverCaptureInvalidated},
      {"waiting for the card", [](Captured &c) { return c.driver.synchronizeContext(); },
       cuda::driverCaptureUnsupported, cuda::driverCaptureInvalidated},
      {"an event from outside", [](Captured &c) { return c.driver.waitForEvent(c.first.get(), c.join.get(), 0); },
       cuda::driverCaptureIsolation, cuda::driverCaptureInvalidated},
      {"an event inside",
       [](Captured &c) {
         c.branch();
         cuda::DriverResult result = c.driver.synchronizeEvent(c.fork.get());
         c.comeBack();
         return result;
       },
       cuda::driverCapturedEvent, 0},
      {"a branch that does not come back",
       [](Captured &c) {
         c.branch();
         c.fill(c.second, 3);
         return 0;
       },
       0, cuda::driverCaptureUnjoined},
      {"the end on a branch",
       [](Captured &c) {
         c.branch();
         cuda::GraphHandle graph = nullptr;
         cuda::DriverResult result = c.driver.endCapture(c.second.get(), &graph);
         c.comeBack();
         return result;
       },
       cuda::driverCaptureUnmatched, 0},
  };
  for (const Case &one : cases) {
    Captured captured;
    EXPECT_EQ(captured.driver.recordEvent(captured.join.get(), captured.second.get()), 0);
    ASSERT_EQ(captured.driver.beginCapture(captured.first.get(), cuda::captureThreadLocal), 0);
    captured.fill(captured.first, 1);
    EXPECT_EQ(one.call(captured), one.wanted) << one.name;
    EXPECT_EQ(captured.end(), one.atEnd) << one.name;
    // And the streams are as they were.
    captured.fill(captured.first, 2);
    EXPECT_EQ(captured.driver.synchronizeStream(captured.first.get()), 0) << one.name;
  }
}

// A graph's branches run beside each other: what its edges do not order is a race, as between streams.
TEST_F(Gpu, BranchesOfAGraphRace) {
  for (bool ordered : {true, false}) {
    {
      Captured captured;
      const cuda::Driver &driver = captured.driver;
      ASSERT_EQ(driver.beginCapture(captured.first.get(), cuda::captureThreadLocal), 0);
      if (ordered)
        captured.fill(captured.first, 1);
      captured.branch();
      if (!ordered)
        captured.fill(captured.first, 1);
      captured.fill(captured.second, 2);
      captured.comeBack();
      cuda::GraphHandle handle = nullptr;
      ASSERT_EQ(driver.endCapture(captured.first.get(), &handle), 0);
      cuda::Graph graph(driver, handle);
      cuda::GraphRunHandle run = nullptr;
      ASSERT_EQ(driver.instantiateGraph(&run, handle, 0), 0);
      cuda::GraphRun owned(driver, run);
      EXPECT_EQ(driver.launchGraph(run, captured.first.get()), 0);
      EXPECT_EQ(driver.launchGraph(run, captured.first.get()), 0);
      EXPECT_EQ(driver.synchronizeStream(captured.first.get()), 0);
    }
    EXPECT_EQ(standin::races().empty(), ordered);
    standin::configure({});
  }
}
