// Products against loops in double precision: shapes down to zero, transposes, batches with broadcast, NaN in C before.
#include "runtime/backend/host/Gemm.h"

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
  Status status = host::gemm({gemm, a.data(), b.data(), c.data(), m, n, k, false});
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

TEST(Gemm, Batches) {
  host::useOneThread();
  for (const std::vector<int64_t> &batch : std::vector<std::vector<int64_t>>{{1}, {3}, {2, 3}, {2, 1, 2}, {0}})
    for (bool transposeB : {false, true})
      check({4, 5, 6, batch}, false, transposeB, 0);
}

TEST(Gemm, Larger) {
  host::useOneThread();
  check({66, 120, 400, {}}, false, false, 0);
  check({130, 503, 40, {}}, false, true, 0);
}
