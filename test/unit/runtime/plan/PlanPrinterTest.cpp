// What hpc-plan prints: the lines that people and other tests rely on.
#include "runtime/plan/PlanPrinter.h"

#include "SamplePlan.h"
#include "runtime/plan/PlanCheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::plan::test;
using testing::HasSubstr;

namespace {

TEST(PlanPrinter, Lines) {
  Plan plan = samplePlan();
  std::string text = printPlan(plan, *analysePlan(plan));
  for (const char *line : {
           "plan 'sample', version 2.8\n"
           "mesh: tp=2\n"
           "stages: 2, ranks per stage: 2, ranks: 4, micro-batches: 2\n"
           "input x: f32[4, 3]\n"
           "output out: f32[4, 7]\n"
           "code: x86-64, 15 bytes, 1 function, needs avx2 fma\n",
           "memory of a rank, bytes (total: of its device):\n"
           "  stages  total  weights  states  step  slots  temporaries  on host  product flops a step\n"
           "       0    448      192       0     0     96          160        0",
           "stage 1 (ranks 2..3):\n"
           "  b0 micro-batch f32[2, 6], 48 bytes at 0, 2 slots by 64  # y\n",
           "  weight w0: f32[3, 5] -> b0, columns 0..2 | 3..4 of 5 (box 3)\n",
           "  weight w1: f32[5, 6] -> b1, rows 0..2 | 3..4 of 5 (box 3)\n",
           "    0: wait request 0\n"
           "    1: load b2 = input x: rows 0..1 / 2..3 of 4  # x\n"
           "    2: gemm b3 = b2 * b0, m 2, n 3 | 2, k 3, ld 3 3 3  # /w0/MatMul\n",
           "    4: all_reduce b4 = b4 over {tp} sum, 12 x f32 (48 bytes), because rule k of matmul  # /w1/MatMul\n"
           "    5: send b4, 48 bytes to rank 2 | 3, channel 0, request 0, because stage 1 uses it  # /w1/MatMul\n",
           "    2: kernel b3 = relu(b2), rows 2, scalars 4 | 3, -7  # /Relu\n"
           "    3: copy b4 = b3, 32 bytes  # /Identity\n"
           "    4: store output out = b4: rows 0..1 / 2..3 of 4, columns 0..3 | 4..6 of 7 (box 4), owner 1  # out\n",
           "  all_reduce  tp         48             2       0  w1 (/w1/MatMul)\n"
           "              because rule k of matmul; avoided by --tp=1\n"
           "  transfer    stages     48             2       0  w1 (/w1/MatMul)\n"
           "              because stage 1 uses it; avoided by --pp=1\n"
           "  1 collective, 1 transfer; 288 bytes a step, the array of each group of ranks counted once\n",
           "schedule:\n"
           "  stage 0 runs F0 F1 DF0 DF1\n"
           "  stage 1 runs RF0 RF1 F0 F1\n",
           "  stage 0: F0 F1 .\n"
           "  stage 1: .  F0 F1\n"
           "bubble: 33.3%\n",
       })
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(PlanPrinter, SlicesThroughViews) {
  Plan plan = samplePlan();
  Slice slice = cutInTwo({40, 3, 5, 8}, 2, 3);
  EXPECT_EQ(sliceText(plan, slice, {40, 120}), "dim 2 0..2 | 3..4 of 5 (box 3) of view [40, 3, 5, 8]");
  slice = cutInTwo({4, 4}, 0, 4);
  slice.extent[0] = table({4, 0});
  EXPECT_EQ(sliceText(plan, slice, {4, 4}), "rows 0..3 | none of 4 (box 4)");
  slice.start[0] = 0;
  slice.extent[0] = 4;
  EXPECT_EQ(sliceText(plan, slice, {4, 4}), "whole");
}

TEST(PlanPrinter, LongTablesAreShortened) {
  Plan plan = samplePlan();
  plan.axes[0].size = 100;
  ByCoord values;
  values.values.clear();
  for (int i = 0; i < 100; ++i)
    values.values.push_back(i);
  EXPECT_EQ(tableText(plan, values), "0 | 1 | 2 | .. (100 coordinates) | 99");
  values.values.assign(100, 7);
  EXPECT_EQ(tableText(plan, values), "7");
}

TEST(PlanPrinter, JsonHasTheSameFacts) {
  Plan plan = samplePlan();
  plan.model = "caf\xe9"; // not UTF-8
  nlohmann::json json = nlohmann::json::parse(printPlanJson(plan, *analysePlan(plan)));
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["stages"][0]["memory_per_rank"]["total"], 448);
  EXPECT_EQ(json["stages"][0]["schedule"], "F0 F1 DF0 DF1");
  EXPECT_EQ(json["stages"][0]["bindings"][0]["start"][1], (std::vector<int>{0, 3}));
  EXPECT_EQ(json["collectives"][0]["bytes"], 48);
  EXPECT_EQ(json["collectives"][0]["runs"], 2);
  EXPECT_EQ(json["transfers"][0]["senders"], 2);
  EXPECT_NEAR(json["bubble"].get<double>(), 1.0 / 3, 1e-12);
}

TEST(PlanPrinter, Bytes) {
  EXPECT_EQ(bytesText(1023), "1023 bytes");
  EXPECT_EQ(bytesText(10560), "10560 bytes (10.3 KiB)");
  EXPECT_EQ(bytesText(int64_t(3) << 30), "3221225472 bytes (3.0 GiB)");
}

} // namespace
