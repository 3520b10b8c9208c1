// Weights in panels, in place: what a product of them gives is what it gives of the weight as it was stored.
#include "runtime/backend/host/HostDevice.h"
#include "runtime/backend/host/VectorProduct.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace hpc;

namespace {

struct Case {
  int64_t m, n, k, stored; ///< `stored`: depth of B in memory, of which the product takes k
  bool transpose = false;
};

/// Multiples of 1/8 with sums below 2^15: exact in f32.
std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> list(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    list[size_t(i)] = float((i * 7919 + seed) % 17 - 8) / 8;
  return list;
}
std::byte *bytes(std::vector<float> &list) { return reinterpret_cast<std::byte *>(list.data()); }

plan::Gemm gemmOf(const Case &test) {
  plan::Gemm gemm;
  gemm.a.ld = test.k;
  gemm.b.ld = test.transpose ? test.stored : test.n;
  gemm.b.transpose = test.transpose;
  gemm.b.packed = true;
  gemm.c.ld = test.n;
  return gemm;
}

} // namespace

// Past panels of rows and columns, blocks of columns and of depth, with a panel of few columns at the end.
TEST(PackedWeight, GivesTheSameProducts) {
  for (int64_t threads : {1, 3})
    for (const Case &test : std::vector<Case>{{9, 16, 8, 8},
                                              {64, 768, 100, 100},
                                              {65, 130, 801, 801},
                                              {400, 1000, 33, 40},
                                              {13, 77, 1600, 1601},
                                              {70, 130, 50, 64, true},
                                              {11, 50, 801, 801, true}}) {
      std::unique_ptr<ThreadPool> pool = std::move(*ThreadPool::create(threads, false));
      host::HostDevice device(*pool, false);
      const plan::Gemm gemm = gemmOf(test);
      const std::string what = std::to_string(test.m) + "x" + std::to_string(test.n) + "x" + std::to_string(test.k) +
                               (test.transpose ? " B^T" : "") + " on " + std::to_string(threads) + " threads";
      std::vector<float> a = numbers(test.m * test.k, 1), b = numbers(test.n * test.stored, 2), stored = b,
                         c(size_t(test.m * test.n), NAN);
      const GemmCall call{gemm, test.m, test.n, test.k, false, bytes(a), bytes(b), bytes(c)};
      Expected<GemmHandle> handle = device.prepare(call);
      ASSERT_TRUE(handle.ok());
      const bool packs = host::chooseMethod(call, threads, false).wantsPacked;
      ASSERT_TRUE(device.pack(gemm, bytes(b), test.stored, test.n, {*handle}).ok());
      EXPECT_EQ(b != stored, packs && (test.n > 16 || test.transpose)) << what; // one panel lies as a matrix does
      ASSERT_TRUE(device.gemm(*handle, call).ok());
      for (int64_t i = 0; i < test.m; ++i)
        for (int64_t j = 0; j < test.n; ++j) {
          double sum = 0;
          for (int64_t x = 0; x < test.k; ++x)
            sum += double(a[size_t(i * test.k + x)]) *
                   double(stored[size_t(test.transpose ? j * test.stored + x : x * test.n + j)]);
          ASSERT_EQ(double(c[size_t(i * test.n + j)]), sum) << what << " at " << i << "," << j;
        }
    }
}

// A product of few rows reads a weight as it is stored, so for the others it stays so too.
TEST(PackedWeight, StaysWhereOneProductWantsItStored) {
  host::HostDevice device(false);
  const Case large{64, 96, 80, 80}, few{3, 96, 80, 80};
  const plan::Gemm gemm = gemmOf(large);
  std::vector<float> a = numbers(64 * 80, 1), b = numbers(96 * 80, 2), stored = b, c(64 * 96);
  std::vector<GemmHandle> handles;
  for (int64_t m : {large.m, few.m})
    handles.push_back(*device.prepare({gemm, m, 96, 80, false, bytes(a), bytes(b), bytes(c)}));
  ASSERT_TRUE(device.pack(gemm, bytes(b), 80, 96, handles).ok());
  EXPECT_EQ(b, stored);
}
