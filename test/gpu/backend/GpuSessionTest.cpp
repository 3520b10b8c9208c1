// Sessions of the hand-built plan on the stand-in: results under every timing, poison, several cards, errors of one
// rank, and every call of driver and libraries made to fail in turn.
#include "runtime/plan/PlanCheck.h"
#include "test/gpu/backend/GpuFixture.h"

#include <atomic>
#include <thread>

using namespace hpc;
using testing::HasSubstr;

// Streams that run late or early: whatever an event forgets to order gives other numbers, or a race.
TEST_F(Gpu, ComputesWhatTheSerialModelDoes) {
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (bool posted : {false, true}) {
      standin::Settings settings;
      settings.seed = seed;
      settings.longestDelay = seed % 3 == 0 ? 0 : 300;
      settings.devices = 1 + int(seed % 4 == 1) * 3;
      standin::configure(settings);
      GpuPlan run;
      if (posted)
        run.postTheAllReduce();
      run.options.poison = seed % 2;
      Status checked = plan::checkPlan(run.plan);
      ASSERT_TRUE(checked.ok()) << checked.text();
      {
        Expected<std::unique_ptr<Session>> session = run.create(onStandIn(settings.devices == 1 ? 4 : 1));
        ASSERT_TRUE(session.ok()) << session.status().text();
        for (int64_t input : {0, 3, 8})
          run.expectRight(**session, input);
        EXPECT_GE((*session)->peakBytesPerRank(), run.plan.stages[0].sessionBytes + run.plan.stages[0].workBytes);
      }
      expectClean("seed " + std::to_string(seed));
    }
}

// The padded column of h holds NaN on rank 1; a product that takes all four must show it here as on the host.
TEST_F(Gpu, PoisonShowsAWrongExtent) {
  GpuPlan run;
  std::get<plan::Gemm>(run.plan.stages[0].programs[0].instructions[3].action).k = 4;
  run.options.poison = true;
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok());
  Expected<std::vector<Array>> outputs = (*session)->run({GpuPlan::input(0)});
  ASSERT_TRUE(outputs.ok());
  EXPECT_TRUE(std::isnan((*outputs)[0].as<float>()[0]));
}

// A rank that gives up between post and wait: the others must end, and what they had enqueued must not reach into the
// next step.
TEST_F(Gpu, AnErrorOfOneRankEndsAll) {
  for (int64_t rank : {0, 1, 2, 3})
    for (int64_t instruction : {0, 2, 3}) {
      GpuPlan run;
      std::atomic<bool> broken{true};
      run.options.observer = [&](const ObservedInstruction &at) {
        bool here = at.place.rank == rank && at.instruction == instruction && at.microBatch == 1;
        return here && broken ? Status::error(ErrorKind::Io, "the disk is gone") : Status::success();
      };
      Expected<std::unique_ptr<Session>> session = run.create();
      ASSERT_TRUE(session.ok());
      Expected<std::vector<Array>> outputs = (*session)->run({GpuPlan::input(0)});
      ASSERT_FALSE(outputs.ok());
      EXPECT_THAT(outputs.status().text(), HasSubstr("error[io]: rank " + std::to_string(rank) + " (stage "));
      broken = false;
      run.expectRight(**session, 2);
    }
}

// A kernel that is told of more rows than there are leaves its memory: the step fails, and --sync-each-op names the
// instruction and its node where the plain run can only say that something went wrong. What breaks one rank breaks the
// card, and another rank of it may be the first to see that: so it is tried until the right one was.
TEST_F(Gpu, AnErrorOnTheCardIsFoundAndNamed) {
  auto breakIt = [](bool syncEachOp) {
    standin::configure({});
    GpuPlan run;
    plan::Kernel &relu = std::get<plan::Kernel>(run.plan.stages[0].programs[0].instructions[2].action);
    relu.launch.blocks = 1 << 12;
    cuda::CudaOptions options = onStandIn();
    options.syncEachOp = syncEachOp;
    Expected<std::unique_ptr<Session>> session = run.create(options);
    EXPECT_TRUE(session.ok()) << session.status().text();
    std::string text = (*session)->run({GpuPlan::input(0)}).status().text();
    EXPECT_THAT(text, HasSubstr("an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"));
    EXPECT_THAT(text, HasSubstr("error[internal]: "));
    return text;
  };
  // Found by the wait at the end, or by what another micro-batch starts before.
  EXPECT_THAT(breakIt(false), HasSubstr("(CUDA_ERROR_ILLEGAL_ADDRESS); with --sync-each-op it is found at the instruction that did it"));
  bool isNamed = false;
  for (int attempt = 0; attempt < 20 && !isNamed; ++attempt)
    isNamed = breakIt(true).find("(kernel of node '/relu'): ") != std::string::npos;
  EXPECT_TRUE(isNamed);
}

// Kernels lie in several modules where a plan was made of several. If it fails, the second one's are not found.
TEST_F(Gpu, CodeInTwoModules) {
  GpuPlan run;
  run.plan.modules = {{"ptx", {}, 80, GpuPlan::kernels(), {"test_relu"}}, {"ptx", {}, 80, GpuPlan::kernels(), {"test_add_bias"}}};
  Expected<std::unique_ptr<Session>> session = run.create();
  ASSERT_TRUE(session.ok()) << session.status().text();
  run.expectRight(**session, 3);
}

// What a machine lacks is said with what would help.
TEST_F(Gpu, WhatIsMissingIsNamed) {
  GpuPlan run;
  auto createError = [&](const cuda::CudaOptions &options) {
    Expected<std::unique_ptr<Session>> session = run.create(options);
    return session.ok() ? std::string("ok") : session.status().text();
  };
  EXPECT_THAT(createError(onStandIn(1)), HasSubstr("error[usage]: 4 ranks, 1 on each GPU, need 4 GPUs, this machine "
                                                   "has 1; use --ranks-per-gpu=4"));
  cuda::CudaOptions nowhere;
  nowhere.libraryFolder = run.folder.path;
  EXPECT_THAT(createError(nowhere), HasSubstr("error[unsupported]: "));
  EXPECT_THAT(createError(nowhere), HasSubstr("libcuda.so.1"));
  EXPECT_THAT(createError(nowhere), HasSubstr("--backend=cuda needs NVIDIA's driver; use --backend=host"));
  run.plan.modules[0].capability = 90;
  EXPECT_THAT(createError(onStandIn()),
              HasSubstr("GPU 0 (stand-in) has compute capability 80, the plan's code needs 90"));
  run.plan.modules[0] = {"x86-64", {}, 0, "code", {}};
  EXPECT_THAT(createError(onStandIn()), HasSubstr("the plan has code for 'x86-64' only, and this backend runs ptx; "
                                                  "compile the model again with hpc-opt --target=cuda"));
  run.plan.modules[0] = {"ptx", {}, 80, ".entry broken() { .reg .f32 %f0; frob.f32 %f0; }", {}};
  EXPECT_THAT(createError(onStandIn()), HasSubstr("the driver compiles the plan's code"));
  EXPECT_THAT(createError(onStandIn()), HasSubstr("'frob.f32'")); // the driver's own log
  run.plan.modules[0] = {"ptx", {}, 80, GpuPlan::kernels(), {}};
  run.plan.stages[0].workBytes = int64_t(1) << 40;
  EXPECT_THAT(createError(onStandIn()), HasSubstr("error[capacity]: rank 0 (stage 0): GPU 0 (stand-in) has no "
                                                  "1099511627776 bytes left"));
}

// Every call that can fail is made to, one after the other: each time one clear error, no hang, nothing left behind,
// and no wrong result. A call whose status is dropped shows as a run that succeeds.
TEST_F(Gpu, EveryCallFailsOnce) {
  int64_t failing = 0;
  for (;; ++failing) {
    standin::Settings settings;
    settings.longestDelay = 0;
    settings.failingCall = failing;
    standin::configure(settings);
    GpuPlan run;
    run.postTheAllReduce();
    Status status;
    {
      Expected<std::unique_ptr<Session>> session = run.create();
      status = session.status();
      if (status.ok()) {
        Expected<std::vector<Array>> outputs = (*session)->run({GpuPlan::input(3)});
        status = outputs.status();
        if (status.ok())
          run.expectRight(*outputs, 3);
      }
    }
    if (standin::failedCall().empty()) // more calls than this run makes
      break;
    const std::string call = standin::failedCall() + ", call " + std::to_string(failing);
    EXPECT_FALSE(status.ok()) << call;
    expectClean(call);
  }
  EXPECT_GT(failing, 300);
}
