// The plan's check: good plans pass, and every class of fault is found and named where it is.
#include "runtime/plan/PlanCheck.h"

#include "SamplePlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::plan::test;
using testing::HasSubstr;

namespace {

struct BrokenPlan {
  const char *name;
  std::function<void(Plan &)> change;
  std::vector<const char *> messages; ///< all of them
};

void setSchedule(Plan &plan, int stage, const char *text) {
  plan.stages[stage].schedule = *bindSchedule(*parseSchedule(text), plan.stages[stage].programs);
}

const BrokenPlan cases[] = {
    // What an ordinary step skips must not be what it reads.
    {"SkippedButRead",
     [](Plan &p) { program(p, 1, 1)[stage1::CopyO].onRequest = true; },
     {"without what is on request", "'o'"}},
    // (1) ranges
    {"GemmReadsBeyond",
     [](Plan &p) {
       action<Gemm>(p, 0, 0, stage0::GemmH).k = table({3, 4});
     },
     {"stage 0, program forward, instruction 2 (gemm, node /w0/MatMul)",
      "reads 28 bytes at byte 0 of buffer 2 'x' (a), which has 24; first at coordinate 1 (tp=1)"}},
    {"GemmBatchBeyond",
     [](Plan &p) {
       Gemm &gemm = action<Gemm>(p, 0, 0, stage0::GemmH);
       gemm.batch = {2};
       gemm.a.stride = gemm.b.stride = {0};
       gemm.c.stride = {6};
     },
     {"writes 48 bytes at byte 0 of buffer 3 'h' (c), which has 24; first at coordinate 0 (tp=0)"}},
    {"GemmOverflow",
     [](Plan &p) {
       Gemm &gemm = action<Gemm>(p, 0, 0, stage0::GemmH);
       gemm.batch = {int64_t(1) << 40};
       gemm.a.stride = gemm.b.stride = gemm.c.stride = {int64_t(1) << 40};
     },
     {"reads 9223372036854775807 bytes", "buffer 2 'x'"}},
    {"GemmLeading",
     [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).c.ld = 2; },
     {"leading dim of c is 2 at coordinate 0 (tp=0), the matrix has 3 columns"}},
    {"GemmResultOverlaps",
     [](Plan &p) {
       Gemm &gemm = action<Gemm>(p, 0, 0, stage0::GemmH);
       gemm.m = 1;
       gemm.batch = {2};
       gemm.a.stride = gemm.b.stride = {0};
       gemm.c.stride = {2};
     },
     {"elements of c share memory at coordinate 0"}},
    {"GemmInPlace",
     [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).c.place.buffer = stage0::X; },
     {"a (24 bytes at 0) and c (24 bytes at 0) overlap in buffer 2 'x'"}},
    {"KernelBeyond",
     [](Plan &p) { action<Kernel>(p, 1, 1, stage1::Relu).args[1].bytes = 36; },
     {"stage 1, program forward, instruction 2 (kernel, node /Relu): writes 36 bytes", "buffer 3 'r'"}},
    {"CopyBeyond",
     [](Plan &p) { action<Copy>(p, 1, 1, stage1::CopyO).src.byteOffset = 4; },
     {"reads 32 bytes at byte 4 of buffer 3 'r' (src), which has 32"}},
    {"LastMicroBatchBeyond",
     [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).b.place.microBatchStride = 4; },
     {"reads 40 bytes at byte 0 of buffer 0 'w0' (b), which has 36"}},
    {"CollectiveBeyond",
     [](Plan &p) { action<Collective>(p, 0, 0, stage0::Reduce).kind = CollectiveKind::AllGather; },
     {"instruction 4 (all_gather, node /w1/MatMul): writes 96 bytes", "buffer 4 'y'"}},
    {"CollectiveHalfInPlace",
     [](Plan &p) {
       action<Collective>(p, 0, 0, stage0::Reduce).count = 8;
       action<Collective>(p, 0, 0, stage0::Reduce).dst.byteOffset = 16;
     },
     {"src (32 bytes at 0) and dst (32 bytes at 16) overlap"}},
    {"SendBeyond", [](Plan &p) { action<Send>(p, 0, 0, stage0::SendY).bytes = 52; }, {"(send", "reads 52 bytes"}},
    {"RecvBeyond", [](Plan &p) { action<Recv>(p, 1, 0, 0).bytes = 52; }, {"(recv", "writes 52 bytes"}},
    {"StoreBeyond",
     [](Plan &p) { action<StoreOutput>(p, 1, 1, stage1::StoreO).src.byteOffset = 4; },
     {"(store, node out): reads 32 bytes at byte 4"}},

    // (2) memory
    {"TempsOverlap",
     [](Plan &p) { p.stages[0].buffers[stage0::H].offset = 0; },
     {"stage 0, program forward, instruction 2 (gemm, node /w0/MatMul): begins to use buffer 3 'h' at bytes 0..23",
      "buffer 2 'x' at bytes 0..23 is in use until instruction 2"}},
    {"TempInSlot",
     [](Plan &p) { p.stages[0].buffers[stage0::H].offset = 192; },
     {"begins to use buffer 3 'h' at bytes 192..215, but buffer 4 'y' (slot 1) at bytes 192..239 is in use all the "
      "time"}},
    {"SlotsOverlap",
     [](Plan &p) {
       p.stages[0].buffers.push_back(slotBuffer("y2", {2, 6}, 192));
       p.stages[0].workBytes = 320;
     },
     {"stage 0: buffer 4 'y' (slot 1) at bytes 192..239 and buffer 5 'y2' (slot 0) at bytes 192..239 overlap"}},
    {"StepInSlot",
     [](Plan &p) {
       p.stages[0].buffers.push_back(buffer("sum", Lifetime::Step, {2, 6}, 128));
     },
     {"stage 0: buffer 4 'y' (slot 0) at bytes 128..175 and buffer 5 'sum' at bytes 128..175 overlap in the work "
      "arena"}},
    {"WeightsOverlap",
     [](Plan &p) { p.stages[0].buffers[stage0::W1].offset = 0; },
     {"stage 0: buffer 0 'w0' at bytes 0..35 and buffer 1 'w1' at bytes 0..71 overlap in the session arena"}},
    {"WeightUnbound",
     [](Plan &p) { p.stages[0].bindings.pop_back(); },
     {"stage 0: buffer 1 'w1' lives for the session, but no binding says what it starts with"}},
    {"WeightBoundTwice",
     [](Plan &p) { p.stages[0].bindings.push_back(p.stages[0].bindings[0]); },
     {"stage 0: buffer 0 'w0' is bound twice"}},
    {"SavedTwice",
     [](Plan &p) {
       for (Binding &binding : p.stages[0].bindings) {
         binding.saved = "w";
         binding.shape = binding.slice.view;
       }
     },
     {"stage 0: buffer 0 'w0' and buffer 1 'w1' are both saved as 'w'"}},
    {"WeightWritten",
     [](Plan &p) { action<Gemm>(p, 0, 0, stage0::GemmH).c.place.buffer = stage0::W1; },
     {"instruction 2 (gemm, node /w0/MatMul): writes to buffer 1 'w1', a weight that no checkpoint saves"}},
    {"WindowsBehindTheImage",
     [](Plan &p) {
       takeWindows(action<Gemm>(p, 0, 0, stage0::GemmH));
       action<Gemm>(p, 0, 0, stage0::GemmH).windows->image = {10};
     },
     {"instruction 2 (gemm, node /w0/MatMul): reads 40 bytes at byte 0 of buffer 0 'w0' (b), which has 36"}},
    {"PackedTemporary",
     [](Plan &p) {
       Gemm &gemm = action<Gemm>(p, 0, 0, stage0::GemmH);
       gemm.b.place.buffer = stage0::X;
       gemm.m = gemm.k = 1;
       gemm.a.place.buffer = stage0::W0;
       gemm.b.packed = true;
     },
     {"instruction 2 (gemm, node /w0/MatMul): takes buffer 2 'x' packed, but it does not live for the session"}},
    {"PackedInPart",
     [](Plan &p) {
       Gemm &gemm = action<Gemm>(p, 0, 0, stage0::GemmY);
       gemm.b.packed = true;
       gemm.n = 5;
     },
     {"instruction 3 (gemm, node /w1/MatMul): takes buffer 1 'w1' packed, but its B is not all of it, without gaps"}},
    {"PackedAndSaved",
     [](Plan &p) {
       action<Gemm>(p, 0, 0, stage0::GemmH).b.packed = true;
       Binding &binding = p.stages[0].bindings[0];
       binding.saved = "w";
       binding.shape = binding.slice.view;
     },
     {"instruction 2 (gemm, node /w0/MatMul): takes buffer 0 'w0' packed, but checkpoints save it"}},
    {"PackedForOneReader",
     [](Plan &p) {
       Instruction again = program(p, 0, 0)[stage0::GemmY];
       action<Gemm>(p, 0, 0, stage0::GemmY).b.packed = true;
       program(p, 0, 0).insert(program(p, 0, 0).begin() + stage0::GemmY, again);
     },
     {"instruction 3 (gemm, node /w1/MatMul): reads buffer 1 'w1' (b), which a product takes packed"}},
    {"TempReadFirst",
     [](Plan &p) { program(p, 0, 0).erase(program(p, 0, 0).begin() + stage0::LoadX); },
     {"instruction 1 (gemm, node /w0/MatMul): reads buffer 2 'x' (a) before any instruction of the program wrote to "
      "it"}},
    {"TempInFlightAtEnd",
     [](Plan &p) {
       p.stages[1].buffers[stage1::Y].lifetime = Lifetime::Program;
       p.stages[1].buffers[stage1::Y].slots = 1;
     },
     {"stage 1, program receive, instruction 0 (recv, node /w1/MatMul): buffer 0 'y' lives for the program, which ends "
      "before a wait on "
      "request 0"}},
    {"WriteWhileSent",
     [](Plan &p) { std::swap(program(p, 0, 0)[stage0::Reduce], program(p, 0, 0)[stage0::SendY]); },
     {"instruction 5 (all_reduce, node /w1/MatMul): writes to buffer 4 'y' while it is in flight: request 0"}},
    {"ReadBeforeWait",
     [](Plan &p) { std::swap(program(p, 1, 1)[stage1::WaitY], program(p, 1, 1)[stage1::GemmZ]); },
     {"instruction 0 (gemm, node /w2/MatMul): reads buffer 0 'y' while it is in flight"}},

    // (3) rendezvous
    {"BytesDiffer",
     [](Plan &p) { action<Recv>(p, 1, 0, 0).bytes = 44; },
     {"sends 48 bytes, but the receive that it meets", "expects 44", "node /w1/MatMul"}},
    {"ChannelDiffers",
     [](Plan &p) { action<Recv>(p, 1, 0, 0).channel = 3; },
     {"deadlock: 4 of 4 ranks wait for ever", "rank 0 (stage 0, coordinate 0 (tp=0))",
      "a receive by rank 2 on channel 0 of 48 bytes", "a send from rank 0 on channel 3", "node /w1/MatMul"}},
    {"PeersCrossed",
     [](Plan &p) {
       action<Recv>(p, 1, 0, 0).peer = table({1, 0});
     },
     {"deadlock: 4 of 4 ranks wait for ever"}},
    {"OneRecvMissing",
     [](Plan &p) {
       action<Recv>(p, 1, 0, 0).peer = table({0, -1});
     },
     {"rank 3 (stage 1, coordinate 1 (tp=1))", "reads buffer 0 'y' in slot", "holds nothing yet"}},
    {"SendMissing",
     [](Plan &p) { program(p, 0, 0).pop_back(); },
     {"deadlock: 2 of 4 ranks", "(wait, node /w1/MatMul)"}},
    {"OneSendMissing",
     [](Plan &p) {
       action<Send>(p, 0, 0, stage0::SendY).peer = table({2, -1});
     },
     {"deadlock: 1 of 4 ranks", "rank 3 (stage 1, coordinate 1 (tp=1))"}},
    {"SelfSend",
     [](Plan &p) {
       action<Send>(p, 0, 0, stage0::SendY).peer = table({0, 3});
     },
     {"rank 0 (stage 0, coordinate 0 (tp=0))", "the peer is the rank itself"}},
    {"NotDrained",
     [](Plan &p) { setSchedule(p, 0, "F0 F1 DF0"); },
     {"the step ends before a wait on request 0 in slot 1"}},
    {"PostedTwice",
     [](Plan &p) { program(p, 1, 0).push_back(program(p, 1, 0)[0]); },
     {"while it is in flight: request 0"}},
    {"RequestReused",
     [](Plan &p) {
       program(p, 1, 0).push_back(program(p, 1, 0)[0]);
       action<Recv>(p, 1, 0, 1).bytes = 0;
     },
     {"posts request 0 in slot 0 again before a wait on the one of"}},
    {"OrderOfMicroBatches",
     [](Plan &p) { setSchedule(p, 1, "RF1 RF0 F0 F1"); },
     {"sends data of micro-batch", "is for micro-batch", "in one order"}},
    {"ForwardBeforeReceive", [](Plan &p) { setSchedule(p, 1, "RF0 F1 RF1 F0"); }, {"stage 1", "holds nothing yet"}},
    {"SlotTooFew",
     [](Plan &p) { p.stages[1].buffers[stage1::Y].slots = 1; },
     {"rank 2 (stage 1, coordinate 0 (tp=0)), schedule step 1 (receive, micro-batch 1)",
      "writes to buffer 0 'y' while it is in flight: request 0"}},
    {"RequestTooFew",
     [](Plan &p) { p.stages[1].requests[0] = 1; },
     {"posts request 0 in slot 0 again before a wait on the one of"}},
    {"MicroBatchTwice",
     [](Plan &p) { p.stages[0].schedule[1].microBatch = 0; },
     {"stage 0, program forward: the schedule runs it 2 times for micro-batch 0"}},
    {"MicroBatchMissing",
     [](Plan &p) { p.stages[1].schedule.pop_back(); },
     {"stage 1, program forward: the schedule runs it 0 times for micro-batch 1"}},
    {"NeverRun", [](Plan &p) { setSchedule(p, 0, "F0 F1"); }, {"stage 0, program drain: the schedule never runs it"}},

    // (4) weights
    {"WeightSliceTwice",
     [](Plan &p) {
       p.stages[0].bindings[0].slice.start[1] = table({0, 0});
       p.stages[0].bindings[0].slice.extent[1] = table({3, 3});
     },
     {"stage 0: weight 'w0' [3, 5]: buffer 0 'w0': view dim 1: no coordinate holds index 3 of 5"}},
    {"WeightSliceShifted",
     [](Plan &p) {
       p.stages[0].bindings[0].slice.start[1] = table({0, 2});
     },
     {"coordinate 0 (tp=0) holds 0..2 and coordinate 1 (tp=1) holds 2..3; ranges must be equal or apart"}},
    {"WeightSliceShort",
     [](Plan &p) {
       p.stages[1].bindings[0].slice.extent[1] = table({4, 2});
     },
     {"stage 1: weight 'w2' [6, 7]", "view dim 1: no coordinate holds index 6 of 7"}},
    {"WeightRowMissing",
     [](Plan &p) {
       p.stages[0].bindings[1].slice.start[0] = table({1, 3});
     },
     {"stage 0: weight 'w1' [5, 6]", "view dim 0: no coordinate holds index 0 of 5"}},
    {"WeightGridIncomplete",
     [](Plan &p) {
       Slice &slice = p.stages[0].bindings[0].slice; // the diagonal of a 2 x 2 grid
       slice.start = {table({0, 2}), table({0, 3})};
       slice.extent = {table({2, 1}), table({3, 2})};
     },
     {"cut into a grid of which only 2 boxes are held"}},

    // (5) outputs
    {"OutputUnowned",
     [](Plan &p) {
       action<StoreOutput>(p, 1, 1, stage1::StoreO).owner = table({1, 0});
     },
     {"output 'out': index [0, 4] of view [4, 7] is stored by no rank"}},
    {"OutputTwice",
     [](Plan &p) {
       action<StoreOutput>(p, 1, 1, stage1::StoreO).slice.start[1] = table({0, 3});
       action<StoreOutput>(p, 1, 1, stage1::StoreO).slice.extent[1] = table({4, 4});
     },
     {"output 'out': index [0, 3] of view [4, 7] is stored 2 times: by stage 1, program forward, instruction 4 (store",
      "coordinate 1 (tp=1), micro-batch 0"}},
    {"OutputSameRows",
     [](Plan &p) { action<StoreOutput>(p, 1, 1, stage1::StoreO).slice.start[0] = 0; },
     {"output 'out': index [0, 0] of view [4, 7] is stored 2 times"}},
    {"OutputSkipped", // the store is there, but one micro-batch leaves it out
     [](Plan &p) {
       program(p, 1, 1)[stage1::StoreO].when = table({1, 1, 0, 0});
     },
     {"output 'out': index [2, 0] of view [4, 7] is stored by no rank"}},
    {"OutputMissing", [](Plan &p) { program(p, 1, 1).pop_back(); }, {"output 'out': no owner stores any of it"}},
};

void PrintTo(const BrokenPlan &value, std::ostream *stream) { *stream << value.name; }

class PlanFault : public testing::TestWithParam<BrokenPlan> {};

TEST_P(PlanFault, IsFound) {
  Plan plan = samplePlan();
  GetParam().change(plan);
  Status status = checkPlan(plan);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.kind(), ErrorKind::Plan);
  for (const char *message : GetParam().messages)
    EXPECT_THAT(status.message(), HasSubstr(message));
}

INSTANTIATE_TEST_SUITE_P(Cases, PlanFault, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<BrokenPlan> &info) { return info.param.name; });

TEST(PlanCheck, AcceptsTheSample) {
  Expected<PlanFacts> facts = analysePlan(samplePlan());
  ASSERT_TRUE(facts.ok()) << facts.status().text();
  EXPECT_EQ(facts->memory[0].weight, 192);
  EXPECT_EQ(facts->memory[0].slot, 96);
  EXPECT_EQ(facts->memory[0].total(), 192 + 256);
  ASSERT_EQ(facts->collectives.size(), 1u);
  EXPECT_EQ(facts->collectives[0].bytes, 48);
  EXPECT_EQ(facts->collectives[0].runs, 2);
  ASSERT_EQ(facts->transfers.size(), 1u);
  EXPECT_EQ(facts->transfers[0].totalBytes(), 48 * 2 * 2);
  // Coordinate 0: 2*2*3*3 + 2*2*6*3 a micro-batch.
  EXPECT_EQ(facts->gemmFlops[0], 2 * (36 + 72));
  // F0 F1 . over . F0 F1
  EXPECT_EQ(facts->timeline.length, 3);
  EXPECT_NEAR(facts->timeline.bubble(), 1.0 / 3, 1e-12);
}

TEST(PlanCheck, AcceptsSharedCopiesOfAWeight) {
  Plan plan = samplePlan();
  Stage &stage = plan.stages[0];
  stage.buffers.push_back(stage.buffers[stage0::W0]);
  Binding again = stage.bindings[0];
  again.buffer = int32_t(stage.buffers.size()) - 1;
  stage.bindings.push_back(again);
  EXPECT_TRUE(checkPlan(plan).ok());
  stage.bindings.back().slice.start[1] = table({3, 0}); // other content in the same place
  stage.bindings.back().slice.extent[1] = table({2, 3});
  EXPECT_FALSE(checkPlan(plan).ok());
}

// Two bindings that hold one half of the columns each, on every coordinate, hold all of it together.
TEST(PlanCheck, AcceptsAWeightInParts) {
  Plan plan = samplePlan();
  Stage &stage = plan.stages[0];
  stage.bindings[0].slice.start[1] = 0;
  stage.bindings[0].slice.extent[1] = 3;
  EXPECT_THAT(checkPlan(plan).message(), HasSubstr("no coordinate holds index 3 of 5"));
  Buffer rest = buffer("w0 rest", Lifetime::Session, {3, 2}, 192);
  stage.sessionBytes = 256;
  stage.buffers.push_back(rest);
  Binding binding = stage.bindings[0];
  binding.buffer = int32_t(stage.buffers.size()) - 1;
  binding.slice.start[1] = 3;
  binding.slice.extent[1] = 2;
  binding.slice.box[1] = 2;
  stage.bindings.push_back(binding);
  Status status = checkPlan(plan);
  EXPECT_TRUE(status.ok()) << status.text();
}

// Parts of one weight may be cut differently, and then seen through views of their own: together they are still compared.
TEST(PlanCheck, ComparesPartsOfAWeightThroughDifferentViews) {
  Plan plan = samplePlan();
  Stage &stage = plan.stages[0];
  stage.bindings[0].slice.start[1] = 0;
  stage.bindings[0].slice.extent[1] = 3;
  Buffer rest = buffer("w0 rest", Lifetime::Session, {3, 2}, 192);
  stage.sessionBytes = 256;
  stage.buffers.push_back(rest);
  Binding binding = stage.bindings[0];
  binding.buffer = int32_t(stage.buffers.size()) - 1;
  binding.slice.view = {3, 1, 5};
  binding.slice.start = {0, 0, 3};
  binding.slice.extent = {3, 1, 2};
  binding.slice.box = {3, 1, 2};
  stage.bindings.push_back(binding);
  Status status = checkPlan(plan);
  EXPECT_TRUE(status.ok()) << status.text();
  stage.bindings.back().slice.start[2] = 2; // both hold column 2, nobody column 4
  EXPECT_THAT(checkPlan(plan).message(), HasSubstr("no coordinate holds index 3 of 5"));
  stage.bindings.back().slice.start[2] = 3;
  stage.bindings.back().slice.extent[2] = 1;
  EXPECT_FALSE(checkPlan(plan).ok());
  stage.bindings.back().slice.extent = {2, 1, 2}; // two columns of two rows
  EXPECT_FALSE(checkPlan(plan).ok());
}

TEST(PlanCheck, AcceptsAnAllReduceIntoTheDyingOperandsPlace) {
  Plan plan = samplePlan();
  Stage &stage = plan.stages[1];
  Collective reduce;
  reduce.axes = {"tp"};
  reduce.count = 8;
  reduce.src = {stage1::R, 0};
  reduce.dst = {stage1::O, 0};
  stage.buffers[stage1::O].offset = stage.buffers[stage1::R].offset;
  program(plan, 1, 1)[stage1::CopyO].action = reduce;
  Status status = checkPlan(plan);
  EXPECT_TRUE(status.ok()) << status.text();
  program(plan, 1, 1)[stage1::CopyO].action = Copy{{stage1::R, 0}, {stage1::O, 0}, 32};
  EXPECT_FALSE(checkPlan(plan).ok());
}

// Empty shards: more coordinates than columns.
TEST(PlanCheck, AcceptsEmptyShards) {
  Plan plan = samplePlan();
  plan.stages[0].bindings[0].slice.start[1] = table({0, 6});
  plan.stages[0].bindings[0].slice.extent[1] = table({3, 0});
  plan.weights[0] = inlineWeight("w0", {3, 3});
  plan.stages[0].bindings[0].slice.view = {3, 3};
  action<Gemm>(plan, 0, 0, stage0::GemmH).n = table({3, 0});
  action<Gemm>(plan, 0, 0, stage0::GemmY).k = table({3, 0});
  Status status = checkPlan(plan);
  EXPECT_TRUE(status.ok()) << status.text();
}

/// A chain of `stages` stages of `ranks` ranks: receive, all-reduce, send.
Plan chain(int64_t stages, int64_t ranks, int64_t microBatches) {
  Plan plan;
  plan.model = "chain";
  plan.axes = {{"tp", ranks}};
  plan.microBatches = microBatches;
  for (int64_t s = 0; s < stages; ++s) {
    Stage stage;
    stage.buffers = {slotBuffer("in", {4}, 0), slotBuffer("out", {4}, 128)};
    stage.workBytes = 256;
    stage.requests = {2, 2};
    auto peers = [&](int64_t other) {
      ByCoord table;
      table.values.resize(ranks);
      for (int64_t r = 0; r < ranks; ++r)
        table.values[r] = other < 0 || other >= stages ? -1 : other * ranks + r;
      return table;
    };
    Recv recv;
    recv.dst = {0, 0};
    recv.bytes = 16;
    recv.peer = peers(s - 1);
    Send send;
    send.src = {1, 0};
    send.bytes = 16;
    send.peer = peers(s + 1);
    send.request = 1;
    Collective reduce;
    reduce.axes = {"tp"};
    reduce.count = 4;
    reduce.src = {0, 0};
    reduce.dst = {1, 0};
    std::vector<Instruction> forward = {{Wait{0}, ""}, {Wait{1}, ""}, {reduce, "sum"}, {send, "out"}};
    if (s == 0) { // no operand: it fills its own
      Copy fill{{0, 0}, {1, 0}, 8};
      stage.buffers[0].lifetime = Lifetime::Session;
      stage.buffers[0].slots = 1;
      stage.bindings = {{0, cutInTwo({4}, 0, 4), Number{1}, "", {}}};
      stage.bindings[0].slice.start[0] = 0;
      stage.bindings[0].slice.extent[0] = 4;
      stage.sessionBytes = 64;
      forward = {{Wait{1}, ""}, {fill, "fill"}, {send, "out"}};
    }
    stage.programs = {{ProgramKind::Receive, 0, {{recv, "in"}}},
                      {ProgramKind::Forward, 0, forward},
                      {ProgramKind::Drain, 0, {{Wait{1}, ""}}}};
    if (s == 0)
      stage.programs[0].instructions.clear();
    if (s + 1 == stages)
      stage.programs[2].instructions.clear();
    stage.schedule = *bindSchedule(inferenceStage(s, stages, microBatches), stage.programs);
    plan.stages.push_back(stage);
  }
  return plan;
}

// The bubble of a chain of equal stages is (P-1)/(M+P-1), whatever the sizes.
TEST(PlanCheck, AcceptsChainsOfAllSizes) {
  for (int64_t stages = 1; stages <= 5; ++stages)
    for (int64_t ranks : {1, 3})
      for (int64_t microBatches : {1, 2, 3, 8}) {
        SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(microBatches) + " micro-batches");
        Expected<PlanFacts> facts = analysePlan(chain(stages, ranks, microBatches));
        ASSERT_TRUE(facts.ok()) << facts.status().text();
        EXPECT_EQ(facts->timeline.length, microBatches + stages - 1);
        EXPECT_NEAR(facts->timeline.bubble(), double(stages - 1) / double(microBatches + stages - 1), 1e-12);
      }
}

// One rank misses a message; the others of its group wait for it in the collective.
TEST(PlanCheck, NamesAllThatWaitInADeadlock) {
  Plan plan = chain(2, 3, 1);
  action<Send>(plan, 0, 1, 2).peer = table({3, -1, 5});
  std::string message = checkPlan(plan).message();
  EXPECT_THAT(message, HasSubstr("deadlock: 3 of 6 ranks wait for ever"));
  EXPECT_THAT(message, HasSubstr("rank 4 (stage 1, coordinate 1 (tp=1)), schedule step 1 (forward, micro-batch 0), "
                                 "stage 1, program forward, instruction 0 (wait) waits for a send from rank 1"));
  EXPECT_THAT(message, HasSubstr("instruction 2 (all_reduce, node sum) waits for 1 more member of its group"));
}

TEST(PlanCheck, IsQuickForAThousandRanks) {
  Expected<PlanFacts> facts = analysePlan(chain(8, 128, 32));
  ASSERT_TRUE(facts.ok()) << facts.status().text();
  EXPECT_EQ(facts->collectives.size(), 7u);
}

std::string messageOf(const Plan &plan) { return checkPlan(plan).message(); }

// The aliasing rule (runtime/plan/README.md): kernels trust that nothing else lies where they write.
TEST(PlanCheck, AliasesOfKernelArguments) {
  Plan plan = samplePlan();
  Kernel &relu = action<Kernel>(plan, 1, 1, stage1::Relu);
  relu.args[0].place.buffer = stage1::R; // in place, but nobody wrote it
  EXPECT_THAT(messageOf(plan), HasSubstr("reads buffer 3 'r' (argument) before"));
  relu.args = {{{stage1::Z, 0}, 32, true, false}, {{stage1::Z, 0}, 32, false, true}, {{stage1::R, 0}, 32, false, true}};
  EXPECT_EQ(messageOf(plan), "");
  relu.args.push_back({{stage1::Z, 0}, 32, true, false});
  EXPECT_THAT(messageOf(plan),
              HasSubstr("are one place of buffer 2 'z'; a result takes the place of one operand only"));
  relu.args.back() = {{stage1::R, 0}, 32, false, true};
  EXPECT_THAT(messageOf(plan), HasSubstr("overlap in buffer 3 'r'"));
  relu.args.back() = {{stage1::Z, 16}, 16, true, false};
  EXPECT_THAT(messageOf(plan), HasSubstr("argument (16 bytes at 16) and argument (32 bytes at 0) overlap"));
}

} // namespace
