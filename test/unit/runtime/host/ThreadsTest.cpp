// What a rank's device does on several threads has the bits of one: products of every kind, kernels, copies.
#include "runtime/backend/host/HostDevice.h"
#include "runtime/backend/host/TileProduct.h"
#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace hpc;

namespace {

constexpr int64_t threadCounts[] = {2, 3, 5, 8};

std::unique_ptr<ThreadPool> poolOf(int64_t threads) { return std::move(*ThreadPool::create(threads, false)); }

/// Random numbers of about 1 in a float type.
std::vector<std::byte> randomNumbers(DType dtype, int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<std::byte> bytes(size_t(count * byteSize(dtype)));
  for (int64_t i = 0; i < count; ++i) {
    const float value = any(engine);
    const double wide = value;
    const uint16_t narrow = dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
    const void *from = dtype == DType::F64   ? static_cast<const void *>(&wide)
                       : dtype == DType::F32 ? static_cast<const void *>(&value)
                                             : &narrow;
    std::memcpy(bytes.data() + i * byteSize(dtype), from, size_t(byteSize(dtype)));
  }
  return bytes;
}

struct Sample {
  int64_t m, n, k, batch = 1;
  DType type = DType::F32, result = DType::F32;
  bool transposeA = false, transposeB = false, addToC = false, infinity = false;
};

std::vector<std::byte> multiply(const Sample &sample, int64_t threads, bool tiles) {
  const auto &[m, n, k, batch, type, result, transposeA, transposeB, addToC, infinity] = sample;
  plan::Gemm gemm;
  gemm.a.dtype = gemm.b.dtype = type;
  gemm.c.dtype = result;
  gemm.accumulate = type == DType::F64 ? DType::F64 : DType::F32;
  gemm.a.transpose = transposeA;
  gemm.b.transpose = transposeB;
  gemm.a.ld = transposeA ? m : k;
  gemm.b.ld = transposeB ? k : n;
  gemm.c.ld = n;
  if (batch > 1) {
    gemm.batch = {batch};
    gemm.a.stride = {m * k};
    gemm.b.stride = {k * n};
    gemm.c.stride = {m * n};
  }
  std::vector<std::byte> a = randomNumbers(type, batch * m * k, 1), b = randomNumbers(type, batch * k * n, 2),
                         c = randomNumbers(result, batch * m * n, 3);
  if (infinity)
    reinterpret_cast<float *>(a.data())[m * k / 2] = std::numeric_limits<float>::infinity();
  std::unique_ptr<ThreadPool> pool = poolOf(threads);
  host::HostDevice device(*pool, tiles);
  GemmCall call{gemm, m, n, k, addToC, a.data(), b.data(), c.data()};
  Expected<GemmHandle> handle = device.prepare(call);
  EXPECT_TRUE(handle.ok());
  Status status = device.gemm(*handle, call);
  EXPECT_TRUE(status.ok()) << status.text();
  return c;
}

} // namespace

// Parts that overlap, or leave elements out, are wrong numbers wherever another number of threads is used.
TEST(ProductCut, PartsCoverEachElementOnce) {
  for (int64_t products : {1, 3})
    for (int64_t m : {1, 2, 31, 64, 257, 600})
      for (int64_t n : {1, 47, 64, 130, 1000})
        for (int64_t threads : {0, 1, 2, 3, 5, 8, 64}) { // 0: by shape
          const int64_t k = 4000;
          const host::ProductCut cut = threads == 0 ? host::cutByShape(products, m, n, k)
                                                    : host::cutByThreads(products, m, n, k, threads);
          std::vector<int> times(size_t(products * m * n), 0);
          for (int64_t index = 0; index < cut.parts(); ++index) {
            const host::ProductPart part = host::partOf(cut, m, n, index);
            ASSERT_TRUE(part.rows > 0 && part.columns > 0 && part.row + part.rows <= m && part.column + part.columns <= n);
            for (int64_t i = part.row; i < part.row + part.rows; ++i)
              for (int64_t j = part.column; j < part.column + part.columns; ++j)
                ++times[size_t((part.product * m + i) * n + j)];
          }
          for (int count : times)
            ASSERT_EQ(count, 1) << products << " x " << m << "x" << n << " on " << threads;
        }
  EXPECT_EQ(host::cutByShape(1, 0, 5, 5).parts(), 0);
  EXPECT_EQ(host::cutByThreads(1, 5, 0, 5, 4).parts(), 0);
  EXPECT_EQ(host::cutByShape(0, 5, 5, 5).parts(), 0);
}

// A cut that no thread gets a share of is no cut: the sizes of gpt2 have to give work to all of a few threads.
TEST(ProductCut, ThereIsWorkForAll) {
  for (auto [n, k] : {std::pair<int64_t, int64_t>{768, 768}, {2304, 768}, {3072, 768}, {768, 3072}, {50257, 768}})
    for (int64_t m : {64, 512})
      for (int64_t threads : {2, 3, 4}) {
        EXPECT_GE(host::cutByThreads(1, m, n, k, threads).parts(), threads) << m << "x" << n << "x" << k;
        EXPECT_GE(host::cutByShape(1, m, n, k).parts(), 4) << m << "x" << n << "x" << k;
      }
}

// A cut that changes the order of a sum, in the library's or in our own products, shows in the last bits. With and
// without tile registers, in all types, shapes down to nothing, sums that go on, infinities.
TEST(Threads, ProductsHaveTheBitsOfOne) {
  const Sample samples[] = {
      {.m = 64, .n = 768, .k = 768},
      {.m = 300, .n = 500, .k = 900, .transposeB = true},
      {.m = 300, .n = 500, .k = 900, .transposeA = true, .addToC = true},
      {.m = 1, .n = 3072, .k = 768},
      {.m = 1, .n = 768, .k = 768, .type = DType::BF16},
      {.m = 1, .n = 770, .k = 3001, .addToC = true},
      {.m = 2, .n = 2303, .k = 900, .addToC = true},
      {.m = 8, .n = 1000, .k = 555, .type = DType::BF16, .result = DType::BF16, .transposeA = true},
      {.m = 7, .n = 3000, .k = 333, .transposeB = true},
      {.m = 5, .n = 3001, .k = 700},
      {.m = 1, .n = 2001, .k = 768, .type = DType::BF16, .transposeB = true, .addToC = true},
      {.m = 3, .n = 700, .k = 1500, .batch = 2, .transposeB = true},
      {.m = 3000, .n = 5, .k = 400},
      {.m = 64, .n = 64, .k = 64, .batch = 24},
      {.m = 33, .n = 65, .k = 129, .batch = 7, .transposeA = true, .transposeB = true},
      {.m = 128, .n = 256, .k = 128, .type = DType::BF16},
      {.m = 65, .n = 1030, .k = 520, .type = DType::BF16, .result = DType::BF16},
      {.m = 65, .n = 1030, .k = 520, .type = DType::F16, .result = DType::F16, .transposeB = true},
      {.m = 100, .n = 300, .k = 200, .type = DType::F64, .result = DType::F64},
      {.m = 200, .n = 700, .k = 300},
      {.m = 200, .n = 700, .k = 300, .infinity = true},
      {.m = 200, .n = 700, .k = 300, .addToC = true, .infinity = true},
      {.m = 0, .n = 700, .k = 300},
      {.m = 200, .n = 700, .k = 0},
      {.m = 200, .n = 700, .k = 0, .addToC = true},
      {.m = 2, .n = 3, .k = 4}};
  for (bool tiles : {false, true})
    for (const Sample &sample : samples) {
      const std::vector<std::byte> alone = multiply(sample, 1, tiles);
      for (int64_t threads : threadCounts)
        EXPECT_EQ(multiply(sample, threads, tiles), alone)
            << sample.m << "x" << sample.n << "x" << sample.k << " on " << threads << " threads, tiles " << tiles;
    }
}

// Memory in pieces: an edge that is copied twice, or not at all, or a sum that is added twice.
TEST(Threads, MemoryIsMovedOnce) {
  for (int64_t threads : threadCounts) {
    std::unique_ptr<ThreadPool> pool = poolOf(threads);
    host::HostDevice device(*pool, true);
    for (int64_t count : {0, 1, 100, 100'001, 400'000}) {
      std::vector<std::byte> from = randomNumbers(DType::F32, count, 1), to = randomNumbers(DType::F32, count, 2);
      std::vector<float> sum(size_t(count), 0.0f);
      for (int64_t i = 0; i < count; ++i)
        sum[size_t(i)] = reinterpret_cast<float *>(to.data())[i] + reinterpret_cast<float *>(from.data())[i];
      ASSERT_TRUE(device.accumulate(to.data(), from.data(), DType::F32, count).ok());
      EXPECT_EQ(std::memcmp(to.data(), sum.data(), to.size()), 0) << count;
      ASSERT_TRUE(device.copy(to.data(), from.data(), count * 4).ok());
      EXPECT_EQ(to, from);
      ASSERT_TRUE(device.fill(to.data(), std::byte(7), count * 4).ok());
      EXPECT_EQ(to, std::vector<std::byte>(size_t(count) * 4, std::byte(7)));
    }
  }
}

// Boxes of a larger tensor, with padding: gathered and scattered in pieces as at once.
TEST(Threads, SlicesAreMovedOnce) {
  const int64_t rows = 300, columns = 700;
  const std::vector<std::byte> whole = randomNumbers(DType::F32, rows * columns, 1);
  for (int64_t start : {0, 130})
    for (int64_t extent : {0, 5, 500}) {
      plan::Slice slice{{rows, columns}, {3, start}, {290, extent}, {297, 512}};
      const SliceCopy copy(slice, 4, {0, 0, 1});
      std::vector<std::byte> expected(size_t(copy.boxBytes()), std::byte(1)), back(whole.size(), std::byte(2)),
          expectedBack = back;
      copy.gather(whole.data(), expected.data());
      copy.scatter(expected.data(), expectedBack.data());
      for (int64_t threads : threadCounts) {
        std::unique_ptr<ThreadPool> pool = poolOf(threads);
        host::HostDevice device(*pool, true);
        std::vector<std::byte> box(expected.size(), std::byte(1));
        std::fill(back.begin(), back.end(), std::byte(2));
        ASSERT_TRUE(device.gather(copy, whole.data(), box.data()).ok());
        EXPECT_EQ(box, expected);
        ASSERT_TRUE(device.scatter(copy, box.data(), back.data()).ok());
        EXPECT_EQ(back, expectedBack);
      }
    }
}

/// In the form of generated code: row i becomes i times its scalar.
static void timesRow(void *const *args, const int64_t *scalars, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < 64; ++i)
      static_cast<int64_t *>(args[0])[row * 64 + i] += row * scalars[0] + i;
}

// Every row of a kernel once, however few there are.
TEST(Threads, KernelsDoEachRowOnce) {
  for (int64_t threads : threadCounts) {
    std::unique_ptr<ThreadPool> pool = poolOf(threads);
    host::HostDevice device(*pool, true);
    for (int64_t rows : {0, 1, 2, 7, 1000}) {
      std::vector<int64_t> values(size_t(rows * 64), 0);
      plan::Kernel kernel;
      kernel.rows = rows;
      kernel.args = {{{}, rows * 512, true, true}};
      void *args[] = {values.data()};
      const int64_t scalar = 1000;
      ASSERT_TRUE(device.kernel({reinterpret_cast<KernelHandle>(&timesRow), args, &scalar, kernel, 0, 0, 0}).ok());
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], int64_t(i / 64) * 1000 + int64_t(i % 64));
    }
  }
}
