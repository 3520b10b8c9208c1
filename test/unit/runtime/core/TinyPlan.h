// A plan built by hand: two stages of two ranks, two micro-batches, uneven cuts, a transfer and an all-reduce.
//
//   stage 0:  h = relu(x W1), p = h W2 (partial over tp, all-reduced), send p
//   stage 1:  receive p, y = p W3 + b
//
// x [4,6], cut by micro-batch; W1 [6,7] cut by columns into 4 and 3; W2 [7,5] cut by rows alike; W3 [5,7] and b [7] by
// columns. Rank 1's fourth column of h is padding that the first product does not write: poison, unless the second
// leaves it out.
#pragma once

#include "runtime/base/Hash.h"
#include "runtime/plan/Plan.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hpc {

struct TinyPlan {
  TemporaryFolder folder;
  plan::Plan plan;
  std::vector<float> w1 = values(6 * 7, 1), w2 = values(7 * 5, 2), w3 = values(5 * 7, 3), bias = values(7, 4);

  /// Multiples of 1/4, so that every result is exact.
  static std::vector<float> values(int64_t count, int64_t seed) {
    std::vector<float> list;
    for (int64_t i = 0; i < count; ++i)
      list.push_back(float((i * 7 + seed * 5) % 11 - 5) / 4);
    return list;
  }
  static plan::ByCoord byRank(int64_t first, int64_t second) {
    plan::ByCoord table;
    table.values = {first, second};
    return table;
  }
  /// What y must be for an x.
  std::vector<float> expected(const std::vector<float> &x) const {
    std::vector<float> y(4 * 7);
    for (int64_t row = 0; row < 4; ++row) {
      float h[7] = {}, p[5] = {};
      for (int64_t j = 0; j < 7; ++j) {
        for (int64_t k = 0; k < 6; ++k)
          h[j] += x[size_t(row * 6 + k)] * w1[size_t(k * 7 + j)];
        h[j] = std::max(h[j], 0.0f);
      }
      for (int64_t j = 0; j < 5; ++j)
        for (int64_t k = 0; k < 7; ++k)
          p[j] += h[k] * w2[size_t(k * 5 + j)];
      for (int64_t j = 0; j < 7; ++j) {
        y[size_t(row * 7 + j)] = bias[size_t(j)];
        for (int64_t k = 0; k < 5; ++k)
          y[size_t(row * 7 + j)] += p[k] * w3[size_t(k * 7 + j)];
      }
    }
    return y;
  }

  int32_t addWeight(plan::Stage &stage, const std::string &name, const std::vector<int64_t> &shape,
                    const std::vector<float> &data, size_t cutDim) {
    plan::Weight weight;
    weight.name = name;
    weight.shape = shape;
    weight.file = 0;
    weight.offset = int64_t(file.size());
    weight.bytes = int64_t(data.size() * 4);
    weight.hashes = hashChunks(data.data(), weight.bytes);
    file.append(reinterpret_cast<const char *>(data.data()), data.size() * 4);
    plan::Slice slice;
    slice.view = slice.box = shape;
    slice.start.assign(shape.size(), 0);
    for (int64_t size : shape)
      slice.extent.emplace_back(size);
    slice.start[cutDim] = byRank(0, 4);
    slice.extent[cutDim] = byRank(4, 3);
    slice.box[cutDim] = 4;
    int32_t buffer = addBuffer(stage, name, slice.box, plan::Lifetime::Session);
    stage.bindings.push_back({buffer, slice, plan::StoredWeight{int32_t(plan.weights.size())}, "", {}});
    plan.weights.push_back(weight);
    return buffer;
  }

  static int32_t addBuffer(plan::Stage &stage, const std::string &name, const std::vector<int64_t> &box,
                           plan::Lifetime lifetime, int64_t slots = 1) {
    plan::Buffer buffer;
    buffer.name = name;
    buffer.box = box;
    buffer.lifetime = lifetime;
    buffer.bytes = 4;
    for (int64_t size : box)
      buffer.bytes *= size;
    int64_t room = (buffer.bytes + 63) / 64 * 64;
    buffer.slots = slots;
    buffer.slotStride = slots > 1 ? room : 0;
    int64_t &arena = lifetime == plan::Lifetime::Session ? stage.sessionBytes : stage.workBytes;
    buffer.offset = arena;
    arena += room * slots;
    stage.buffers.push_back(buffer);
    return int32_t(stage.buffers.size()) - 1;
  }

  static plan::Gemm gemm(int32_t a, int32_t b, int32_t c, plan::ByCoord n, plan::ByCoord k, int64_t lda, int64_t ldb,
                         int64_t ldc) {
    plan::Gemm product;
    product.a.place = {a, 0};
    product.b.place = {b, 0};
    product.c.place = {c, 0};
    product.m = 2;
    product.n = std::move(n);
    product.k = std::move(k);
    product.a.ld = lda;
    product.b.ld = ldb;
    product.c.ld = ldc;
    return product;
  }

  void buildFirstStage(plan::Stage &stage) {
    using plan::Lifetime, plan::ProgramKind;
    int32_t w1 = addWeight(stage, "W1", {6, 7}, this->w1, 1), w2 = addWeight(stage, "W2", {7, 5}, this->w2, 0);
    int32_t x = addBuffer(stage, "x", {2, 6}, Lifetime::Program), h = addBuffer(stage, "h", {2, 4}, Lifetime::Program);
    int32_t p = addBuffer(stage, "p", {2, 5}, Lifetime::MicroBatch, 2);
    plan::ByCoord row, next = byRank(2, 3);
    row.values = {0, 0, 2, 2}; // [microBatch][coordinate]
    plan::Collective sum;
    sum.axes = {"tp"};
    sum.count = 10;
    sum.src = sum.dst = {p, 0};
    plan::Send send;
    send.src = {p, 0};
    send.bytes = 40;
    send.peer = next;
    plan::Kernel relu{"test_relu", {{{h, 0}, 32, true, false}, {{h, 0}, 32, false, true}}, {4}, 2, {}, {}, {}};
    stage.programs = {{ProgramKind::Forward,
                       0,
                       {{plan::LoadInput{0, {x, 0}, {{4, 6}, {row, 0}, {2, 6}, {2, 6}}}, "x"},
                        {gemm(x, w1, h, byRank(4, 3), 6, 6, 4, 4), "/fc1"},
                        {relu, "/relu"},
                        {gemm(h, w2, p, 5, byRank(4, 3), 4, 5, 5), "/fc2"},
                        {sum, "/fc2"},
                        {send, "/fc2"}}},
                      {ProgramKind::Drain, 0, {{plan::Wait{0}, ""}}}};
    stage.schedule = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    stage.requests = {2};
  }

  void buildSecondStage(plan::Stage &stage) {
    using plan::Lifetime, plan::ProgramKind;
    int32_t w3 = addWeight(stage, "W3", {5, 7}, this->w3, 1), bias = addWeight(stage, "bias", {7}, this->bias, 0);
    int32_t p = addBuffer(stage, "p", {2, 5}, Lifetime::MicroBatch, 2),
            y = addBuffer(stage, "y", {2, 4}, Lifetime::Program);
    plan::Recv receive;
    receive.dst = {p, 0};
    receive.bytes = 40;
    receive.peer = byRank(0, 1);
    plan::ByCoord row;
    row.values = {0, 0, 2, 2};
    plan::Kernel add{"test_add_bias", {{{y, 0}, 32, true, true}, {{bias, 0}, 16, true, false}}, {4}, 2, {}, {}, {}};
    stage.programs = {
        {ProgramKind::Receive, 0, {{receive, ""}}},
        {ProgramKind::Forward,
         0,
         {{plan::Wait{0}, ""},
          {gemm(p, w3, y, byRank(4, 3), 5, 5, 4, 4), "/fc3"},
          {add, "/fc3"},
          {plan::StoreOutput{0, {y, 0}, {{4, 7}, {row, byRank(0, 4)}, {2, byRank(4, 3)}, {2, 4}}, 1}, "y"}}}};
    stage.schedule = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    stage.requests = {2};
  }

  /// The same with the all-reduce posted, in the micro-batch before the one whose sum is sent: first both products,
  /// then both sends.
  void postTheAllReduce() {
    plan::Stage &stage = plan.stages[0];
    std::vector<plan::Instruction> &forward = stage.programs[0].instructions;
    std::get<plan::Collective>(forward[4].action).request = 1;
    plan::Instruction send = forward[5];
    forward.pop_back();
    stage.programs.push_back({plan::ProgramKind::Backward, 0, {{plan::Wait{1}, "/fc2"}, send}});
    stage.schedule = {{0, 0}, {0, 1}, {2, 0}, {2, 1}, {1, 0}, {1, 1}};
    stage.requests = {2, 2};
  }

  TinyPlan() {
    plan.model = "tiny";
    plan.axes = {{"tp", 2}};
    plan.microBatches = 2;
    plan.inputs = {{"x", DType::F32, {4, 6}, false}};
    plan.outputs = {{"y", DType::F32, {4, 7}, false}};
    plan.files = {{"weights.bin"}};
    plan.modules = {{"x86-64", {"sse2"}, 0, TemporaryFolder::read(HPC_TEST_KERNELS), {"test_relu", "test_add_bias"}}};
    plan.stages.resize(2);
    buildFirstStage(plan.stages[0]);
    buildSecondStage(plan.stages[1]);
    folder.write("weights.bin", file);
  }

  std::string file; ///< content of weights.bin
};

} // namespace hpc
