// A plan by hand with every kind of instruction, for tests to break: out = copy(relu(x * w0 * w1)) * w2 over 2 stages,
// tp=2, 2 micro-batches of 2 of the 4 rows.
//
//   stage 0: h = x * w0 (5 columns over tp: 3 | 2), y = h * w1 (partial), all-reduce y, send y
//   stage 1: receive y, z = y * w2 (7 columns over tp: 4 | 3), r = relu(z), o = r, store o
// Weights: w0 [3, 5], w1 [5, 6], w2 [6, 7]. y has two slots on both sides.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/plan/ScheduleKinds.h"

#include <numeric>

namespace hpc::plan::test {

// Indices, for tests that change one thing.
namespace stage0 {
enum Buffers { W0, W1, X, H, Y };
enum Forward { WaitSlot, LoadX, GemmH, GemmY, Reduce, SendY };
enum Programs { ForwardProgram, DrainProgram };
} // namespace stage0
namespace stage1 {
enum Buffers { Y, W2, Z, R, O };
enum Forward { WaitY, GemmZ, Relu, CopyO, StoreO };
enum Programs { ReceiveProgram, ForwardProgram };
} // namespace stage1

inline ByCoord table(std::vector<int64_t> values) {
  ByCoord result;
  result.values = std::move(values);
  return result;
}

inline Buffer buffer(const char *name, Lifetime lifetime, std::vector<int64_t> box, int64_t offset) {
  Buffer result;
  result.name = name;
  result.lifetime = lifetime;
  result.bytes = 4;
  for (int64_t size : box)
    result.bytes *= size;
  result.box = std::move(box);
  result.offset = offset;
  return result;
}

inline Buffer slotBuffer(const char *name, std::vector<int64_t> box, int64_t offset) {
  Buffer result = buffer(name, Lifetime::MicroBatch, std::move(box), offset);
  result.slots = 2;
  result.slotStride = 64;
  return result;
}

/// Dim `dim` cut in two at `first`, all else whole.
inline Slice cutInTwo(std::vector<int64_t> view, size_t dim, int64_t first) {
  Slice slice;
  slice.view = view;
  slice.box = view;
  for (int64_t size : view) {
    slice.start.push_back(0);
    slice.extent.push_back(size);
  }
  slice.box[dim] = first;
  slice.start[dim] = table({0, first});
  slice.extent[dim] = table({first, view[dim] - first});
  return slice;
}

/// Rows 0, 1 in micro-batch 0, rows 2, 3 in micro-batch 1, for a slice whose dim 0 is whole.
inline Slice byMicroBatch(Slice slice) {
  slice.start[0] = table({0, 0, 2, 2});
  slice.extent[0] = 2;
  slice.box[0] = 2;
  return slice;
}

inline Weight inlineWeight(const char *name, std::vector<int64_t> shape) {
  Weight weight;
  weight.name = name;
  weight.bytes = 4 * std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
  weight.shape = std::move(shape);
  weight.inlineData = std::string(weight.bytes, 'w');
  return weight;
}

/// A Session buffer that holds part of a stored weight.
inline Binding weight(int32_t stored, int32_t buffer, Slice slice) {
  return {buffer, std::move(slice), StoredWeight{stored}, "", {}};
}

inline Gemm gemm(int32_t c, int32_t a, int32_t b, ByCoord m, ByCoord n, ByCoord k, int64_t lda, int64_t ldb,
                 int64_t ldc) {
  Gemm result;
  result.c.place.buffer = c;
  result.a.place.buffer = a;
  result.b.place.buffer = b;
  result.m = m;
  result.n = n;
  result.k = k;
  result.a.ld = lda;
  result.b.ld = ldb;
  result.c.ld = ldc;
  return result;
}

/// B [3, 3] of a product as the windows of 3 of a line of 5.
inline void takeWindows(Gemm &gemm) {
  gemm.b.ld = 0;
  gemm.windows = Windows{1, {5}, {3}, {3}, {1}, {1}, {0}};
}

/// A forward stage's list, receives and drains included.
inline StageSchedule inferenceStage(int64_t stage, int64_t stages, int64_t microBatches) {
  PipelineSchedule schedule = *makeSchedule(ScheduleKind::Inference, stages, 1, microBatches);
  addTransfers(inferencePipeline(stages, 1, microBatches), schedule);
  return schedule[stage];
}

inline Stage sampleStage0() {
  Stage stage;
  stage.buffers = {buffer("w0", Lifetime::Session, {3, 3}, 0), buffer("w1", Lifetime::Session, {3, 6}, 64),
                   buffer("x", Lifetime::Program, {2, 3}, 0), buffer("h", Lifetime::Program, {2, 3}, 64),
                   slotBuffer("y", {2, 6}, 128)};
  stage.bindings = {weight(0, stage0::W0, cutInTwo({3, 5}, 1, 3)), weight(1, stage0::W1, cutInTwo({5, 6}, 0, 3))};
  LoadInput load;
  load.dst.buffer = stage0::X;
  load.slice = byMicroBatch(cutInTwo({4, 3}, 1, 3));
  load.slice.start[1] = 0; // whole on both
  load.slice.extent[1] = 3;
  Collective reduce;
  reduce.axes = {"tp"};
  reduce.count = 12;
  reduce.src.buffer = reduce.dst.buffer = stage0::Y;
  reduce.reason = {"/w1/MatMul", "w1", "rule k of matmul", "--tp=1"};
  Send send;
  send.src.buffer = stage0::Y;
  send.bytes = 48;
  send.peer = table({2, 3});
  send.reason = {"/w1/MatMul", "w1", "stage 1 uses it", "--pp=1"};
  stage.programs = {
      {ProgramKind::Forward,
       0,
       {{Wait{0}, ""},
        {load, "x"},
        {gemm(stage0::H, stage0::X, stage0::W0, 2, table({3, 2}), 3, 3, 3, 3), "/w0/MatMul"},
        {gemm(stage0::Y, stage0::H, stage0::W1, 2, 6, table({3, 2}), 3, 6, 6), "/w1/MatMul"},
        {reduce, "/w1/MatMul"},
        {send, "/w1/MatMul"}}},
      {ProgramKind::Drain, 0, {{Wait{0}, ""}}},
  };
  stage.requests = {2};
  stage.sessionBytes = 192;
  stage.workBytes = 256;
  stage.schedule = *bindSchedule(inferenceStage(0, 2, 2), stage.programs);
  return stage;
}

inline Stage sampleStage1() {
  Stage stage;
  stage.buffers = {slotBuffer("y", {2, 6}, 0), buffer("w2", Lifetime::Session, {6, 4}, 0),
                   buffer("z", Lifetime::Program, {2, 4}, 128), buffer("r", Lifetime::Program, {2, 4}, 192),
                   buffer("o", Lifetime::Program, {2, 4}, 128)}; // o takes z's place
  stage.bindings = {weight(2, stage1::W2, cutInTwo({6, 7}, 1, 4))};
  Recv recv;
  recv.dst.buffer = stage1::Y;
  recv.bytes = 48;
  recv.peer = table({0, 1});
  Kernel relu;
  relu.symbol = "relu";
  relu.args = {{{stage1::Z, 0}, 32, true, false}, {{stage1::R, 0}, 32, false, true}};
  relu.scalars = {table({4, 3}), -7};
  relu.rows = 2;
  StoreOutput store;
  store.src.buffer = stage1::O;
  store.slice = byMicroBatch(cutInTwo({4, 7}, 1, 4));
  store.owner = 1;
  stage.programs = {
      {ProgramKind::Receive, 0, {{recv, "/w1/MatMul"}}},
      {ProgramKind::Forward,
       0,
       {{Wait{0}, "/w1/MatMul"},
        {gemm(stage1::Z, stage1::Y, stage1::W2, 2, table({4, 3}), 6, 6, 4, 4), "/w2/MatMul"},
        {relu, "/Relu"},
        {Copy{{stage1::R, 0}, {stage1::O, 0}, 32}, "/Identity"},
        {store, "out"}}},
  };
  stage.requests = {2};
  stage.sessionBytes = 128;
  stage.workBytes = 256;
  stage.schedule = *bindSchedule(inferenceStage(1, 2, 2), stage.programs);
  return stage;
}

/// One head that fits the arguments of the sample's kernel, 4 elements read and 4 written, with a bias.
inline Attention attention() {
  Attention attention;
  attention.batch = attention.heads = attention.groups = 1;
  attention.queries = attention.keys = 2;
  attention.depth = attention.width = 2;
  attention.query = attention.key = attention.value = {0, DType::F32, 0, {0, 0, 2, 1}};
  attention.bias = {0, DType::F32, 1, {0, 0, 0, 1}};
  attention.results = {{1, DType::F32, 0, {0, 0, 2, 1}}};
  attention.scale = 0.125;
  attention.causal = true;
  attention.causalOffset = 3;
  attention.guarded = true;
  return attention;
}

inline Epilogue epilogue() { return {EpilogueKind::BiasGeluTanh, 0, 1}; }

/// The sample's kernel with a row of w2 as its bias.
inline Kernel biasedKernel() {
  Kernel kernel;
  kernel.symbol = "relu";
  kernel.args = {
      {{stage1::Z, 0}, 32, true, false}, {{stage1::W2, 16}, 16, true, false}, {{stage1::R, 0}, 32, false, true}};
  kernel.rows = 2;
  kernel.epilogue = epilogue();
  return kernel;
}

inline Plan samplePlan() {
  Plan plan;
  plan.model = "sample";
  plan.axes = {{"tp", 2}};
  plan.microBatches = 2;
  plan.inputs = {{"x", DType::F32, {4, 3}, false}};
  plan.outputs = {{"out", DType::F32, {4, 7}, false}};
  plan.weights = {inlineWeight("w0", {3, 5}), inlineWeight("w1", {5, 6}), inlineWeight("w2", {6, 7})};
  plan.stages = {sampleStage0(), sampleStage1()};
  plan.modules = {{"x86-64",
                   {"avx2", "fma"},
                   0,
                   std::string("\x7f"
                               "ELF code relu\0",
                               15),
                   {"relu"}}};
  return plan;
}

inline std::vector<Instruction> &program(Plan &plan, int stage, int index) {
  return plan.stages[stage].programs[index].instructions;
}

template <typename T> T &action(Plan &plan, int stage, int program, int instruction) {
  return std::get<T>(plan.stages[stage].programs[program].instructions[instruction].action);
}

/// w0 as codes of int8, in the product that reads it too.
inline void holdInInt8(Plan &plan, int32_t along) {
  Binding &binding = plan.stages[0].bindings[0];
  Buffer &buffer = plan.stages[0].buffers[size_t(binding.buffer)];
  binding.start = Int8Weight{0, along, Int8Form::Codes};
  buffer.dtype = DType::I8;
  buffer.bytes /= 4;
  action<Gemm>(plan, 0, 0, stage0::GemmH).b.dtype = DType::I8;
}

} // namespace hpc::plan::test
