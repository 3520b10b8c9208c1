// Session buffers filled by several threads are those that one fills, and damage is found and named whoever reads it.
#include "runtime/core/BindingLoader.h"
#include "runtime/backend/host/HostDevice.h"
#include "runtime/base/Hash.h"
#include "test/unit/runtime/core/TinyPlan.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

namespace {

/// Two tensors of some MiB, one read by rows, whole; one cut by columns, unevenly; and a number.
struct LargePlan {
  static constexpr int64_t rows = 3001, columns = 513;
  TinyPlan tiny;
  std::string data;
  plan::Stage stage;

  LargePlan() {
    tiny.plan.weights.clear();
    stage.buffers.clear();
    const int64_t bytes = rows * columns * 4;
    data.resize(size_t(2 * bytes));
    uint32_t state = 7;
    for (char &byte : data)
      byte = char((state = state * 1664525u + 1013904223u) >> 24);
    for (int64_t i = 0; i < 2; ++i) {
      plan::Weight weight;
      weight.name = i == 0 ? "whole" : "cut";
      weight.shape = {rows, columns};
      weight.file = 0;
      weight.offset = i * bytes;
      weight.bytes = bytes;
      weight.hashes = hashChunks(data.data() + i * bytes, bytes);
      tiny.plan.weights.push_back(weight);
    }
    auto add = [&](const plan::Slice &slice, auto start) {
      plan::Buffer buffer;
      buffer.lifetime = plan::Lifetime::Session;
      buffer.box = slice.box;
      buffer.bytes = 4;
      for (int64_t size : slice.box)
        buffer.bytes *= size;
      buffer.offset = stage.sessionBytes;
      stage.sessionBytes += (buffer.bytes + 63) / 64 * 64;
      stage.bindings.push_back({int32_t(stage.buffers.size()), slice, start, "", {}});
      stage.buffers.push_back(buffer);
    };
    add({{rows, columns}, {0, 0}, {rows, columns}, {rows, columns}}, plan::StoredWeight{0});
    add({{17}, {0}, {17}, {17}}, plan::Number{0.5});
    add({{rows, columns}, {0, TinyPlan::byRank(0, 257)}, {rows, TinyPlan::byRank(257, 256)}, {rows, 257}},
        plan::StoredWeight{1});
    tiny.folder.write("weights.bin", data);
  }

  Expected<std::vector<std::byte>> load(int64_t coordinate, int64_t threads, double start) const {
    Expected<Weights> weights = Weights::open(tiny.plan, {tiny.folder.path, ""});
    host::HostDevice device;
    Expected<Arena> arena = Arena::create(stage, device, /*poison=*/true);
    Expected<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads, /*spins=*/false);
    HPC_RETURN_IF_ERROR(loadBindings(*weights, stage, {coordinate, 0, 2}, device, *arena, **pool, start));
    const std::byte *first = arena->buffer(0, 0);
    return std::vector<std::byte>(first, first + stage.sessionBytes);
  }
};

} // namespace

// Parts that begin within a row, end within padding or are left out would show here.
TEST(BindingLoader, AnyNumberOfThreadsLoadsTheSame) {
  LargePlan large;
  for (int64_t coordinate : {0, 1})
    for (int64_t threads : {1, 2, 5})
      for (double start : {0.0, 0.5, 0.99}) {
        Expected<std::vector<std::byte>> loaded = large.load(coordinate, threads, start);
        ASSERT_TRUE(loaded.ok()) << loaded.status().text();
        const std::byte *whole = loaded->data() + large.stage.buffers[0].offset;
        EXPECT_EQ(std::memcmp(whole, large.data.data(), large.data.size() / 2), 0);
        const auto *numbers = reinterpret_cast<const float *>(loaded->data() + large.stage.buffers[1].offset);
        EXPECT_EQ(numbers[16], 0.5f);
        const char *stored = large.data.data() + large.data.size() / 2;
        const std::byte *cut = loaded->data() + large.stage.buffers[2].offset;
        bool isSame = true;
        for (int64_t row = 0; row < LargePlan::rows; ++row) {
          const int64_t held = coordinate == 0 ? 257 : 256;
          isSame &= std::memcmp(cut + row * 257 * 4, stored + (row * LargePlan::columns + coordinate * 257) * 4, size_t(held * 4)) == 0;
          for (int64_t byte = held * 4; byte < 257 * 4; ++byte)
            isSame &= cut[row * 257 * 4 + byte] == std::byte{0};
        }
        EXPECT_TRUE(isSame) << coordinate << " " << threads << " " << start;
      }
}

// Codes too: of a weight cut by columns, and of one cut along its lines, whose other rows another rank holds.
TEST(BindingLoader, AnyNumberOfThreadsMakesTheSameCodes) {
  LargePlan large;
  for (size_t i = 0; i < large.data.size() / 4; ++i) { // numbers, where random bytes have NaN
    const float number = float(int64_t(i * 2654435761u % 2001) - 1000) * (i % 97 ? 1.0f : 3.0f);
    std::memcpy(large.data.data() + i * 4, &number, 4);
  }
  large.tiny.folder.write("weights.bin", large.data);
  for (plan::Weight &weight : large.tiny.plan.weights)
    weight.hashes = hashChunks(large.data.data() + weight.offset, weight.bytes);
  auto toCodes = [](plan::Stage &stage, size_t binding, int32_t weight, int32_t along) {
    stage.bindings[binding].start = plan::Int8Weight{weight, along, plan::Int8Form::Codes};
    plan::Buffer &buffer = stage.buffers[size_t(stage.bindings[binding].buffer)];
    buffer.dtype = DType::I8;
    buffer.bytes = buffer.box[0] * buffer.box[1];
  };
  toCodes(large.stage, 0, 0, 1);
  toCodes(large.stage, 2, 1, 1); // columns are cut, and lines run along them
  std::vector<std::byte> first;
  for (int64_t threads : {1, 2, 5})
    for (double start : {0.0, 0.6}) {
      Expected<std::vector<std::byte>> loaded = large.load(1, threads, start);
      ASSERT_TRUE(loaded.ok()) << loaded.status().text();
      const auto *codes = reinterpret_cast<const int8_t *>(loaded->data() + large.stage.buffers[2].offset);
      const auto *stored = reinterpret_cast<const float *>(large.data.data() + large.data.size() / 2);
      bool isRule = true;
      for (int64_t row = 0; row < LargePlan::rows; ++row) {
        float largest = 0;
        for (int64_t column = 0; column < LargePlan::columns; ++column)
          largest = std::max(largest, std::abs(stored[row * LargePlan::columns + column]));
        for (int64_t column = 0; column < 257; ++column) {
          const float value = column < 256 ? stored[row * LargePlan::columns + 257 + column] : 0;
          isRule &= codes[row * 257 + column] == int(std::nearbyint(value / (largest / 127.0f)));
        }
      }
      EXPECT_TRUE(isRule) << threads << " " << start;
      if (first.empty())
        first = *loaded;
      EXPECT_TRUE(*loaded == first) << threads << " " << start;
    }
}

// Of two damaged chunks the first in the order of the plan is told, by any rank and any number of threads.
TEST(BindingLoader, TheFirstDamageIsTold) {
  LargePlan large;
  const size_t half = large.data.size() / 2;
  large.data[half + (2 << 20) + 5] ^= 1;
  large.data[half + (4 << 20) + 5] ^= 1;
  large.tiny.folder.write("weights.bin", large.data);
  for (int64_t coordinate : {0, 1})
    for (int64_t threads : {1, 4})
      for (double start : {0.0, 0.9})
        EXPECT_THAT(large.load(coordinate, threads, start).status().text(),
                    HasSubstr("error[io]: weight 'cut' of '" + large.tiny.folder / "weights.bin" +
                              "': bytes 2097152 to 3145727 (chunk 2) are not those"));
}
