// Weights in panels, in place: what a product of them gives is what it gives of the weight as it was stored.
#include "runtime/backend/host/HostDevice.h"
#include "runtime/backend/host/VectorProduct.h"
#include "test/unit/runtime/host/ProductCase.h"

using namespace hpc;

namespace {

struct PackedCase {
  int64_t m, n, k, stored; ///< `stored`: depth of B in memory, of which the product takes k
  bool transpose = false;
};

/// Multiples of 1/8, of i8 whole numbers, with sums below 2^17: exact in f32, and themselves in bf16.
std::vector<std::byte> numbers(DType type, int64_t count, int64_t seed) {
  std::vector<std::byte> list(size_t(count * byteSize(type)));
  for (int64_t i = 0; i < count; ++i)
    test::set(type, list.data(), i, double((i * 7919 + seed) % 17 - 8) / (type == DType::I8 ? 1 : 8));
  return list;
}
std::byte *bytes(std::vector<float> &list) { return reinterpret_cast<std::byte *>(list.data()); }

plan::Gemm gemmOf(DType a, DType b, const PackedCase &test) {
  plan::Gemm gemm;
  gemm.a.dtype = a;
  gemm.b.dtype = b;
  gemm.a.ld = test.k;
  gemm.b.ld = test.transpose ? test.stored : test.n;
  gemm.b.transpose = test.transpose;
  gemm.b.packed = true;
  gemm.c.ld = test.n;
  return gemm;
}

} // namespace

// Past panels of rows and columns, blocks of columns and of depth, with a panel of few columns at the end; odd depths,
// which pairs do not have.
TEST(PackedWeight, GivesTheSameProducts) {
  for (auto [typeOfA, type] : std::vector<std::pair<DType, DType>>{{DType::F32, DType::F32},
                                                                   {DType::BF16, DType::BF16},
                                                                   {DType::F16, DType::F16},
                                                                   {DType::F32, DType::I8},
                                                                   {DType::F32, DType::BF16},
                                                                   {DType::BF16, DType::I8}})
    for (int64_t threads : {1, 3})
      for (const PackedCase &test : std::vector<PackedCase>{{9, 16, 8, 8},
                                                {64, 768, 100, 100},
                                                {65, 130, 801, 801},
                                                {65, 130, 802, 802},
                                                {400, 1000, 33, 40},
                                                {400, 1000, 34, 40},
                                                {13, 77, 1600, 1601},
                                                {13, 77, 1600, 1602},
                                                {70, 130, 50, 64, true},
                                                {11, 50, 801, 801, true}}) {
        std::unique_ptr<ThreadPool> pool = std::move(*ThreadPool::create(threads, false));
        host::HostDevice device(*pool, false);
        const plan::Gemm gemm = gemmOf(typeOfA, type, test);
        const std::string what = std::string(name(typeOfA)) + " and " + name(type) + " " + std::to_string(test.m) + "x" + std::to_string(test.n) +
                                 "x" + std::to_string(test.k) + (test.transpose ? " B^T" : "") + " on " +
                                 std::to_string(threads) + " threads";
        std::vector<std::byte> a = numbers(typeOfA, test.m * test.k, 1), b = numbers(type, test.n * test.stored, 2),
                               stored = b;
        std::vector<float> c(size_t(test.m * test.n), NAN);
        const GemmCall call{gemm, test.m, test.n, test.k, false, a.data(), b.data(), bytes(c)};
        Expected<GemmHandle> handle = device.prepare(call);
        ASSERT_TRUE(handle.ok());
        const host::VectorWay *way = host::bestWay(typeOfA, type);
        const bool packs = host::chooseMethod(call, threads, false).wantsPacked && test.stored % way->depthOfStep == 0;
        ASSERT_TRUE(device.pack(gemm, b.data(), test.stored, test.n, {*handle}).ok());
        // One panel of numbers lies as a matrix does.
        const bool moves = packs && (test.n > way->panelColumns || test.transpose || way->depthOfStep > 1);
        EXPECT_EQ(b != stored, moves) << what;
        ASSERT_TRUE(device.gemm(*handle, call).ok());
        for (int64_t i = 0; i < test.m; ++i)
          for (int64_t j = 0; j < test.n; ++j) {
            double sum = 0;
            for (int64_t x = 0; x < test.k; ++x)
              sum += test::get(typeOfA, a.data(), i * test.k + x) *
                     test::get(type, stored.data(), test.transpose ? j * test.stored + x : x * test.n + j);
            ASSERT_EQ(double(c[size_t(i * test.n + j)]), sum) << what << " at " << i << "," << j;
          }
      }
}

// A product of few rows reads a weight as it is stored, so for the others it stays so too.
TEST(PackedWeight, StaysWhereOneProductWantsItStored) {
  for (DType type : {DType::F32, DType::BF16}) {
    host::HostDevice device(false);
    const PackedCase large{64, 96, 80, 80}, few{3, 96, 80, 80};
    const plan::Gemm gemm = gemmOf(type, type, large);
    std::vector<std::byte> a = numbers(type, 64 * 80, 1), b = numbers(type, 96 * 80, 2), stored = b;
    std::vector<float> c(64 * 96);
    std::vector<GemmHandle> handles;
    for (int64_t m : {large.m, few.m})
      handles.push_back(*device.prepare({gemm, m, 96, 80, false, a.data(), b.data(), bytes(c)}));
    ASSERT_TRUE(device.pack(gemm, b.data(), 80, 96, handles).ok());
    EXPECT_EQ(b, stored);
  }
}
