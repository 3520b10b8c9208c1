// Products of f32 in the tile registers: as accurate as f32 with all its bits, infinities and NaN as IEEE has them, and
// bits that other rows and columns have no part in. Nothing here can be seen where the machine has no such registers.
#include "runtime/backend/host/Gemm.h"
#include "runtime/backend/host/TileProduct.h"
#include "runtime/base/HalfFloat.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace hpc;
using host::Product;

namespace {

class ProductTiles : public testing::Test {
protected:
  void SetUp() override {
    if (!host::hasTiles())
      GTEST_SKIP() << "this machine has no tile registers (AMX)";
    host::useOneThread();
  }

  /// C = A * B of [m, k] and [k, n], or what is added to c.
  static std::vector<float> multiply(std::vector<float> &a, std::vector<float> &b, int64_t m, int64_t n, int64_t k,
                                     int64_t lda, int64_t ldb) {
    std::vector<float> c(size_t(m * n), std::nanf(""));
    Product product{m, n, k};
    product.a = {reinterpret_cast<const std::byte *>(a.data()), DType::F32, lda};
    product.b = {reinterpret_cast<const std::byte *>(b.data()), DType::F32, ldb};
    product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, n};
    EXPECT_TRUE(host::fitsTiles(product));
    std::vector<std::byte> scratch;
    EXPECT_TRUE(host::multiply(product, scratch).ok());
    return c;
  }
  static std::vector<float> numbers(int64_t count, uint32_t seed, float low, float high) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> distribution(low, high);
    std::vector<float> list;
    for (int64_t i = 0; i < count; ++i)
      list.push_back(distribution(random));
    return list;
  }
};

} // namespace

// All numbers are positive, so what a product of pieces leaves out cannot cancel: without the smallest of the six the
// error is 2^-18 of the sum, 30 times the bound.
TEST_F(ProductTiles, AllPiecesOfF32AreMultiplied) {
  for (int64_t k : {64, 768, 2000}) {
    const int64_t m = 70, n = 130;
    std::vector<float> a = numbers(m * k, 1, 1, 2), b = numbers(k * n, 2, 1, 2), c = multiply(a, b, m, n, k, k, n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += double(a[size_t(i * k + x)]) * double(b[size_t(x * n + j)]);
        ASSERT_NEAR(c[size_t(i * n + j)], sum, sum * 0x1p-23 * std::max(1.0, std::sqrt(double(k)) / 4)) << k;
      }
  }
}

// Beside codes of int8 an f32 has all of its three pieces: with two, terms would be off by 2^-16. Codes are of both signs, so the
// bound is of the terms' magnitudes.
TEST_F(ProductTiles, AllPiecesOfF32AreMultipliedByCodes) {
  for (bool transposed : {false, true})
    for (int64_t k : {65, 768, 1999}) {
      const int64_t m = 70, n = 131;
      std::vector<float> a = numbers(m * k, 1, 1, 2), c(size_t(m * n), std::nanf(""));
      std::vector<int8_t> b(size_t(k * n));
      std::mt19937 random(5);
      for (int8_t &code : b)
        code = int8_t(int(random() % 255) - 127);
      Product product{m, n, k};
      product.a = {reinterpret_cast<const std::byte *>(a.data()), DType::F32, k};
      product.b = {reinterpret_cast<const std::byte *>(b.data()), DType::I8, transposed ? k : n, transposed};
      product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, n};
      ASSERT_TRUE(host::fitsTiles(product));
      std::vector<std::byte> scratch;
      ASSERT_TRUE(host::multiplyTiles(product, scratch));
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, magnitudes = 0;
          for (int64_t x = 0; x < k; ++x) {
            const double term = double(a[size_t(i * k + x)]) * b[size_t(transposed ? j * k + x : x * n + j)];
            sum += term;
            magnitudes += std::abs(term);
          }
          ASSERT_NEAR(c[size_t(i * n + j)], sum, magnitudes * 0x1p-23) << k;
        }
    }
}

// An f16 has 11 bits, a piece 8: without the second piece, or the product of both second ones, the sum is another. Terms
// and sums here are whole numbers below 2^24, so that f32 has all of them exactly.
TEST_F(ProductTiles, BothPiecesOfF16AreMultiplied) {
  const int64_t size = 64;
  std::vector<uint16_t> a(size * size), b(size * size);
  std::vector<float> c(size * size);
  std::mt19937 random(9);
  for (std::vector<uint16_t> *matrix : {&a, &b})
    for (uint16_t &element : *matrix)
      element = floatToHalf(float(int(random() % 4094) - 2047) / 8);
  Product product{size, size, size};
  product.a = {reinterpret_cast<const std::byte *>(a.data()), DType::F16, size};
  product.b = {reinterpret_cast<const std::byte *>(b.data()), DType::F16, size};
  product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, size};
  std::vector<std::byte> scratch;
  for (int64_t k : {int64_t(4), size}) { // 4 * 2047^2 < 2^24; beyond, sums round
    std::vector<uint16_t> someA = a;
    for (int64_t i = 0; i < size * size; ++i)
      if (i % size >= k)
        someA[size_t(i)] = 0;
    product.a.data = reinterpret_cast<const std::byte *>(someA.data());
    ASSERT_TRUE(host::multiplyTiles(product, scratch));
    for (int64_t i = 0; i < size * size; ++i) {
      double sum = 0, magnitudes = 0;
      for (int64_t x = 0; x < k; ++x) {
        const double term = double(halfToFloat(a[size_t(i / size * size + x)])) *
                            double(halfToFloat(b[size_t(x * size + i % size)]));
        sum += term;
        magnitudes += std::abs(term);
      }
      ASSERT_NEAR(c[size_t(i)], sum, k == 4 ? 0 : magnitudes * 0x1p-23);
    }
  }
}

// Whichever way operands lie in memory, and whatever is left of tiles, panels and pairs at their rims: a bf16 that were
// packed twice, not at all or beside another's depth would show, as terms and sums are whole numbers.
TEST_F(ProductTiles, EveryBf16IsInItsPlace) {
  const int64_t sizes[][3] = {{16, 16, 32}, {17, 33, 31}, {40, 50, 65}, {70, 131, 200}, {257, 20, 33}, {9, 290, 801}};
  for (const auto &[m, n, k] : sizes)
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true}) {
        std::mt19937 random(uint32_t(m + n));
        std::vector<float> a(size_t(m * k)), b(size_t(k * n)), c(size_t(m * n), std::nanf(""));
        std::vector<uint16_t> narrowA(a.size()), narrowB(b.size());
        auto fill = [&](std::vector<float> &wide, std::vector<uint16_t> &narrow) {
          for (size_t i = 0; i < wide.size(); ++i)
            narrow[i] = floatToBfloat(wide[i] = float(int(random() % 31) - 15));
        };
        fill(a, narrowA);
        fill(b, narrowB);
        Product product{m, n, k};
        product.a = {reinterpret_cast<const std::byte *>(narrowA.data()), DType::BF16, transposeA ? m : k, transposeA};
        product.b = {reinterpret_cast<const std::byte *>(narrowB.data()), DType::BF16, transposeB ? k : n, transposeB};
        product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, n};
        std::vector<std::byte> scratch;
        ASSERT_TRUE(host::multiplyTiles(product, scratch));
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t x = 0; x < k; ++x)
              sum += a[size_t(transposeA ? x * m + i : i * k + x)] * b[size_t(transposeB ? j * k + x : x * n + j)];
            ASSERT_EQ(c[size_t(i * n + j)], sum) << m << " " << n << " " << k << " at " << i << " " << j;
          }
      }
}

// Numbers of both signs, up to the largest of f32: pieces are cut off, never rounded up to infinity.
TEST_F(ProductTiles, TheLargestNumbersStayFinite) {
  const int64_t size = 96;
  std::vector<float> a(size * size, std::numeric_limits<float>::max()), b(size * size, 0);
  for (int64_t i = 0; i < size; ++i)
    b[size_t(i * size + i)] = i % 2 ? 1 : -0.5f;
  std::vector<float> c = multiply(a, b, size, size, size, size, size);
  for (int64_t i = 0; i < size * size; ++i)
    ASSERT_EQ(c[size_t(i)], a[size_t(i)] * (i % 2 ? 1 : -0.5f));
}

// An infinity times 1 is an infinity, though the lower pieces of 1 are 0; and NaN, whatever its payload, stays NaN.
TEST_F(ProductTiles, InfinitiesAndNaNAreThoseOfIeee) {
  const int64_t size = 96;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> a = numbers(size * size, 3, 1, 2), b = numbers(size * size, 4, 1, 2);
  a[5] = infinity;
  a[size_t(size + 7)] = -infinity;
  const uint32_t payload = 0x7f800001;
  std::memcpy(&a[size_t(2 * size)], &payload, 4);
  std::vector<float> c = multiply(a, b, size, size, size, size, size);
  for (int64_t j = 0; j < size; ++j) {
    EXPECT_EQ(c[size_t(j)], infinity);
    EXPECT_EQ(c[size_t(size + j)], -infinity);
    EXPECT_TRUE(std::isnan(c[size_t(2 * size + j)]));
    EXPECT_TRUE(std::isfinite(c[size_t(3 * size + j)]));
  }
}

// Who does not want them gets oneDNN's sums, whose bits differ.
TEST_F(ProductTiles, CanBeLeftOut) {
  const int64_t size = 128;
  std::vector<float> a = numbers(size * size, 7, -1, 1), b = numbers(size * size, 8, -1, 1), c(size * size, 0);
  plan::Gemm gemm;
  gemm.a.ld = gemm.b.ld = gemm.c.ld = size;
  auto bytes = [](std::vector<float> &list) { return reinterpret_cast<std::byte *>(list.data()); };
  std::vector<std::byte> scratch;
  GemmCall call{gemm, size, size, size, false, bytes(a), bytes(b), bytes(c)};
  EXPECT_EQ(host::gemmNeeds(call, false)->scratch, 0);
  ASSERT_TRUE(host::gemm(call, scratch, false).ok());
  EXPECT_TRUE(scratch.empty());
  EXPECT_NE(c, multiply(a, b, size, size, size, size, size));
}

// Where a layout cuts rows or columns, an element keeps its bits.
TEST_F(ProductTiles, BitsDoNotDependOnOtherRowsAndColumns) {
  const int64_t m = 300, n = 290, k = 900;
  std::vector<float> a = numbers(m * k, 5, -1, 1), b = numbers(k * n, 6, -1, 1), whole = multiply(a, b, m, n, k, k, n);
  for (int64_t row : {0, 37})
    for (int64_t column : {0, 65}) {
      std::vector<float> someA(a.begin() + row * k, a.end()), someB(b.begin() + column, b.end());
      const int64_t rows = 90, columns = 100;
      std::vector<float> part = multiply(someA, someB, rows, columns, k, k, n);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          ASSERT_EQ(part[size_t(i * columns + j)], whole[size_t((row + i) * n + column + j)]);
    }
}
