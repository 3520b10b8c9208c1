// The plan's products in f32 against loops in double precision: shapes down to zero, transposes, batches with
// broadcast, NaN in C before. ProductTest has the other types.
#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/Gemm.h"
#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace hpc;

namespace {

struct Shape {
  int64_t m, n, k;
  std::vector<int64_t> batch;
};

void check(const Shape &shape, bool transposeA, bool transposeB, int64_t slack) {
  auto [m, n, k, batch] = shape;
  plan::Gemm gemm;
  gemm.a.transpose = transposeA;
  gemm.b.transpose = transposeB;
  gemm.a.ld = std::max<int64_t>(1, transposeA ? m : k) + slack;
  gemm.b.ld = std::max<int64_t>(1, transposeB ? k : n) + slack;
  gemm.c.ld = std::max<int64_t>(1, n) + slack;
  gemm.batch = batch;
  int64_t sizeA = std::max<int64_t>(1, transposeA ? k : m) * gemm.a.ld,
          sizeB = std::max<int64_t>(1, transposeB ? n : k) * gemm.b.ld, sizeC = std::max<int64_t>(1, m) * gemm.c.ld,
          products = 1;
  gemm.a.stride.resize(batch.size());
  gemm.b.stride.resize(batch.size());
  gemm.c.stride.resize(batch.size());
  for (size_t d = batch.size(); d-- > 0; products *= batch[d]) {
    gemm.a.stride[d] = products * sizeA;
    gemm.b.stride[d] = d == 0 ? 0 : products * sizeB; // B is the same for all of the outermost dim
    gemm.c.stride[d] = products * sizeC;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> a(size_t(products * sizeA)), b(size_t(products * sizeB)), c(size_t(products * sizeC), nan);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = float(int(i * 7919 % 17) - 8) / 8;
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = float(int(i * 104729 % 23) - 11) / 8;
  std::vector<std::byte> scratch;
  auto bytes = [](std::vector<float> &list) { return reinterpret_cast<std::byte *>(list.data()); };
  Status status = host::gemm({gemm, m, n, k, false, bytes(a), bytes(b), bytes(c)}, scratch);
  ASSERT_TRUE(status.ok()) << status.text();

  std::vector<bool> written(c.size(), false);
  for (int64_t p = 0; p < products; ++p) {
    int64_t offsetB = 0, rest = p;
    for (size_t d = batch.size(); d-- > 0; rest /= batch[d])
      offsetB += rest % batch[d] * gemm.b.stride[d];
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += double(a[size_t(p * sizeA + (transposeA ? x * gemm.a.ld + i : i * gemm.a.ld + x))]) *
                 double(b[size_t(offsetB + (transposeB ? j * gemm.b.ld + x : x * gemm.b.ld + j))]);
        size_t at = size_t(p * sizeC + i * gemm.c.ld + j);
        written[at] = true;
        // Multiples of 1/64 below 2^18: exact in f32.
        ASSERT_EQ(double(c[at]), sum) << m << "x" << n << "x" << k << " at " << i << "," << j;
      }
  }
  for (size_t i = 0; i < c.size(); ++i)
    ASSERT_TRUE(written[i] || std::isnan(c[i])) << "wrote outside of C";
}

} // namespace

TEST(Gemm, AllSmallShapesBothTransposes) {
  host::useOneThread();
  for (int64_t m : {0, 1, 2, 5, 17})
    for (int64_t n : {0, 1, 3, 16, 50})
      for (int64_t k : {0, 1, 4, 33})
        for (bool transposeA : {false, true})
          for (bool transposeB : {false, true})
            for (int64_t slack : {0, 3})
              check({m, n, k, {}}, transposeA, transposeB, slack);
}

// Few rows are added up in parts of k: a part that is left out, begins at the wrong row or is added to what lay in C
// before is another sum. 64 is the least depth of a part.
TEST(Gemm, FewRowsInParts) {
  host::useOneThread();
  for (const Shape &shape : std::vector<Shape>{
           {1, 770, 3001, {}}, {8, 1000, 555, {}}, {3, 1000, 64, {}}, {3, 1000, 65, {}}, {2, 20, 40000, {}}}) {
    plan::Gemm gemm;
    gemm.a.ld = shape.k;
    gemm.b.ld = gemm.c.ld = shape.n;
    const int64_t depth =
        host::chooseMethod({gemm, shape.m, shape.n, shape.k, false, nullptr, nullptr, nullptr}, 2).depth;
    if (host::hasFewRows()) {
      EXPECT_EQ(depth > 0, shape.k != 64) << shape.m << "x" << shape.n << "x" << shape.k;
    }
    for (bool transposeA : {false, true})
      for (int64_t slack : {0, 3})
        check(shape, transposeA, false, slack);
  }
}

// Bits of an element follow from its row, its column and k: tensor parallelism over columns, and products beside each
// other in one, change none.
TEST(Gemm, BitsOfFewRowsDependOnNoOtherColumns) {
  if (!host::hasFewRows())
    GTEST_SKIP() << "this machine has no AVX2 with FMA and F16C";
  const int64_t n = 1600, k = 3000;
  std::vector<float> a(k), b(size_t(k * n)), whole(n), half(n / 4);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = std::sin(float(i));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = std::cos(float(i));
  auto multiply = [&](int64_t columns, std::vector<float> &c) {
    plan::Gemm gemm;
    gemm.a.ld = k;
    gemm.b.ld = n;
    gemm.c.ld = columns;
    std::vector<std::byte> scratch;
    const GemmCall call{gemm,
                        1,
                        columns,
                        k,
                        false,
                        reinterpret_cast<std::byte *>(a.data()),
                        reinterpret_cast<std::byte *>(b.data()),
                        reinterpret_cast<std::byte *>(c.data())};
    ASSERT_TRUE(host::gemm(call, scratch).ok());
  };
  multiply(n, whole);
  for (int64_t columns : {int64_t(1), int64_t(16), n / 4}) { // the narrow ones are not in parts
    multiply(columns, half);
    for (int64_t j = 0; j < columns; ++j)
      ASSERT_EQ(half[size_t(j)], whole[size_t(j)]) << j << " of " << columns;
  }
}

TEST(Gemm, Batches) {
  host::useOneThread();
  for (const std::vector<int64_t> &batch : std::vector<std::vector<int64_t>>{{1}, {3}, {2, 3}, {2, 1, 2}, {0}})
    for (bool transposeB : {false, true})
      check({4, 5, 6, batch}, false, transposeB, 0);
}

// Strides count elements, whatever their size; a batch that adds with a stride of 0 in C sums over the batch.
TEST(Gemm, BatchesOfMixedTypesThatAdd) {
  host::useOneThread();
  plan::Gemm gemm;
  gemm.a.dtype = DType::BF16;
  gemm.b.dtype = DType::F64;
  gemm.c.dtype = DType::F32;
  gemm.a.ld = gemm.b.ld = gemm.c.ld = 1;
  gemm.batch = {3, 2};
  gemm.a.stride = {2, 1};
  gemm.b.stride = {0, 1};
  gemm.c.stride = {1, 0};
  uint16_t a[6];
  for (int i = 0; i < 6; ++i)
    a[i] = floatToBfloat(float(i + 1));
  double b[2] = {10, 100};
  float c[3] = {0.5f, 0.25f, 0.125f};
  std::vector<std::byte> scratch;
  ASSERT_TRUE(host::gemm({gemm, 1, 1, 1, true, reinterpret_cast<std::byte *>(a), reinterpret_cast<std::byte *>(b),
                          reinterpret_cast<std::byte *>(c)},
                         scratch)
                  .ok());
  EXPECT_EQ(c[0], 0.5f + 10 + 200);
  EXPECT_EQ(c[1], 0.25f + 30 + 400);
  EXPECT_EQ(c[2], 0.125f + 50 + 600);
}

TEST(Gemm, Larger) {
  host::useOneThread();
  check({66, 120, 400, {}}, false, false, 0);
  check({130, 503, 40, {}}, false, true, 0);
}
