// Products against loops in double precision: all float types, transposes, adding to C, shapes down to zero and past a
// block, NaN in C before and around it. ProductTilesTest has what is particular to the tile registers.
#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/TileProduct.h"
#include "runtime/backend/host/VectorProduct.h"
#include "runtime/base/HalfFloat.h"

#include <array>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

using namespace hpc;
using host::Product;

namespace {

double get(DType dtype, const std::byte *data, int64_t i) {
  auto read = [&](auto value) {
    std::memcpy(&value, data + i * int64_t(sizeof(value)), sizeof(value));
    return value;
  };
  switch (dtype) {
  case DType::F64:
    return read(double());
  case DType::F16:
    return halfToFloat(read(uint16_t()));
  case DType::BF16:
    return bfloatToFloat(read(uint16_t()));
  case DType::I8:
    return read(int8_t());
  default:
    return read(float());
  }
}

void set(DType dtype, std::byte *data, int64_t i, double number) {
  auto write = [&](auto value) { std::memcpy(data + i * int64_t(sizeof(value)), &value, sizeof(value)); };
  switch (dtype) {
  case DType::F64:
    return write(number);
  case DType::F16:
    return write(floatToHalf(float(number)));
  case DType::BF16:
    return write(floatToBfloat(float(number)));
  case DType::I8:
    return write(int8_t(number * 4)); // value() has quarters
  default:
    return write(float(number));
  }
}

struct Case {
  DType a = DType::F32, b = DType::F32, c = DType::F32, accumulate = DType::F32;
  int64_t m = 1, n = 1, k = 1;
  bool transposeA = false, transposeB = false, add = false;
  int64_t slack = 0;
};

/// Multiples of 1/4 with sums below 2^7: exact in every type that holds them, bf16 included.
double value(int64_t i, int64_t seed) { return double((i * 7919 + seed) % 5 - 2) / 4; }

void check(const Case &test) {
  const auto &[typeA, typeB, typeC, accumulate, m, n, k, transposeA, transposeB, add, slack] = test;
  Product product{m, n, k};
  product.a = {nullptr, typeA, std::max<int64_t>(1, transposeA ? m : k) + slack, transposeA};
  product.b = {nullptr, typeB, std::max<int64_t>(1, transposeB ? k : n) + slack, transposeB};
  product.c = {nullptr, typeC, std::max<int64_t>(1, n) + slack, false};
  product.accumulate = accumulate;
  product.addToC = add;
  int64_t sizeA = std::max<int64_t>(1, transposeA ? k : m) * product.a.ld,
          sizeB = std::max<int64_t>(1, transposeB ? n : k) * product.b.ld,
          sizeC = std::max<int64_t>(1, m) * product.c.ld;
  std::vector<std::byte> a(size_t(sizeA * 8)), b(size_t(sizeB * 8)), c(size_t(sizeC * 8));
  for (int64_t i = 0; i < sizeA; ++i)
    set(typeA, a.data(), i, value(i, 1));
  for (int64_t i = 0; i < sizeB; ++i)
    set(typeB, b.data(), i, value(i, 3));
  for (int64_t i = 0; i < sizeC; ++i) // where nothing is added, what was there is poison
    set(typeC, c.data(), i,
        add && i / product.c.ld < m && i % product.c.ld < n ? value(i, 2) : std::numeric_limits<double>::quiet_NaN());
  std::vector<std::byte> before = c, scratch;
  product.a.data = a.data();
  product.b.data = b.data();
  product.c.data = c.data();
  Status status = host::multiply(product, scratch);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_LE(int64_t(scratch.size()), std::max(*host::productScratch(typeA, typeB, typeC, accumulate),
                                              host::fitsTiles(product)     ? host::tileScratch()
                                              : host::fitsVectors(product) ? host::vectorScratch()
                                                                           : 0));

  std::string what = std::string(name(typeA)) + " " + name(typeB) + " " + name(typeC) + " by " + name(accumulate) +
                     ": " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                     (transposeA ? " A^T" : "") + (transposeB ? " B^T" : "") + (add ? " add" : "");
  for (int64_t i = 0; i < std::max<int64_t>(1, m); ++i)
    for (int64_t j = 0; j < product.c.ld; ++j) {
      int64_t at = i * product.c.ld + j;
      if (i >= m || j >= n) {
        ASSERT_TRUE(std::isnan(get(typeC, c.data(), at))) << what << ": wrote outside of C";
        continue;
      }
      double sum = add ? get(typeC, before.data(), at) : 0;
      for (int64_t x = 0; x < k; ++x)
        sum += get(typeA, a.data(), transposeA ? x * product.a.ld + i : i * product.a.ld + x) *
               get(typeB, b.data(), transposeB ? j * product.b.ld + x : x * product.b.ld + j);
      std::byte rounded[8];
      set(typeC, rounded, 0, sum);
      ASSERT_EQ(get(typeC, c.data(), at), get(typeC, rounded, 0)) << what << " at " << i << "," << j;
    }
}

constexpr DType floats[] = {DType::F32, DType::F64, DType::F16, DType::BF16};

} // namespace

TEST(Product, AllTypesTransposesAndAdding) {
  host::useOneThread();
  for (DType a : floats)
    for (DType b : floats)
      for (DType c : floats)
        for (DType accumulate : {DType::F32, DType::F64})
          for (bool transposeA : {false, true})
            for (bool transposeB : {false, true})
              for (bool add : {false, true})
                for (int64_t k : {0, 1, 9})
                  check({a, b, c, accumulate, 5, 7, k, transposeA, transposeB, add, 3});
}

// The right operand may be the codes of a weight: one that is read as another type, or widened without its sign, is
// another sum.
TEST(Product, CodesOnTheRight) {
  host::useOneThread();
  for (DType a : {DType::F32, DType::BF16, DType::F16})
    for (DType c : {DType::F32, a})
      for (bool transposeA : {false, true})
        for (bool transposeB : {false, true})
          for (bool add : {false, true})
            for (int64_t m : {0, 1, 5, 17})
              for (int64_t n : {0, 1, 7, 50})
                for (int64_t k : {0, 1, 9, 33})
                  check({a, DType::I8, c, DType::F32, m, n, k, transposeA, transposeB, add, 3});
}

TEST(Product, AllSmallShapes) {
  host::useOneThread();
  for (DType type : floats)
    for (int64_t m : {0, 1, 2, 17})
      for (int64_t n : {0, 1, 3, 50})
        for (int64_t k : {0, 1, 4, 33})
          for (bool add : {false, true})
            for (bool transposeB : {false, true})
              check(
                  {type, type, type, type == DType::F64 ? DType::F64 : DType::F32, m, n, k, false, transposeB, add, 1});
}

// Past the blocks of the widened types: a depth block must add to the one before.
TEST(Product, SeveralBlocks) {
  host::useOneThread();
  for (DType type : {DType::F64, DType::BF16})
    for (bool add : {false, true}) {
      DType sums = type == DType::F64 ? DType::F64 : DType::F32;
      check({type, type, type, sums, 3, 5, 1100, false, true, add, 0});
      check({type, type, type, sums, 530, 4, 6, true, false, add, 0});
      check({type, type, type, sums, 4, 1030, 6, false, false, add, 2});
    }
  check({DType::F32, DType::F32, DType::F32, DType::F32, 130, 503, 40, false, true, true, 0});
  // Without tiles, which take neither so few columns nor so little depth.
  check({DType::F32, DType::I8, DType::F32, DType::F32, 530, 4, 6, true, false, true, 0});
  check({DType::F32, DType::I8, DType::F32, DType::F32, 13, 6, 1100, false, true, false, 0});
  check({DType::F32, DType::I8, DType::F32, DType::F32, 13, 1030, 6, false, false, true, 2});
}

// Past the blocks of few rows, their vectors and the rows of B that they take at a time: what is left over at an end
// would be left out or taken twice.
TEST(Product, FewRows) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (DType c : {DType::F32, type})
      for (int64_t m : {1, 3, 8})
        for (bool transposeA : {false, true})
          for (bool transposeB : {false, true})
            for (bool add : {false, true})
              for (auto [n, k] : {std::pair<int64_t, int64_t>{1061, 38}, {35, 1045}, {16, 16}, {7, 3}})
                for (DType b : {type, DType::I8})
                  check({type, b, c, DType::F32, m, n, k, transposeA, transposeB, add, 2});
}

// Machines without AVX-512 take the same path in vectors of half the width.
TEST(Product, FewRowsInNarrowVectors) {
  if (!host::hasFewRows())
    GTEST_SKIP() << "this machine has no AVX2 with FMA and F16C";
  for (DType type : {DType::F32, DType::BF16, DType::F16, DType::I8})
    for (bool transposed : {false, true}) {
      const int64_t rows = 3, columns = 141, depth = 107, ld = 145; // two cache lines of i8 and more
      std::vector<float> a(rows * depth), sums(rows * columns, 0.5f);
      std::vector<std::byte> b(size_t(columns * ld * byteSize(type)));
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = float(value(int64_t(i), 1));
      for (int64_t i = 0; i < columns * ld; ++i)
        set(type, b.data(), i, value(i, 3));
      host::FewRows product{rows, columns, depth, a.data(), b.data(), type, ld, transposed, sums.data()};
      host::multiplyFewRows(product, false);
      for (int64_t i = 0; i < rows * columns; ++i) {
        double sum = 0.5;
        for (int64_t x = 0; x < depth; ++x)
          sum += double(a[size_t(i / columns * depth + x)]) *
                 get(type, b.data(), transposed ? i % columns * ld + x : x * ld + i % columns);
        ASSERT_EQ(sums[size_t(i)], sum) << name(type) << (transposed ? " transposed " : " ") << i;
      }
    }
}

// Past every block of the tile registers, and one row, column and depth beside each: a panel that is left out, taken
// twice or packed from the wrong place is another sum.
TEST(Product, LargeAndOdd) {
  host::useOneThread();
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true})
        for (bool add : {false, true})
          for (auto [m, n, k] : {std::array<int64_t, 3>{65, 129, 64},
                                 {81, 64, 145},
                                 {257, 66, 161},
                                 {65, 79, 801},
                                 {64, 400, 288},
                                 {9, 130, 131}})
            for (DType b : {type, DType::I8})
              check({type, b, DType::F32, DType::F32, m, n, k, transposeA, transposeB, add, 3});
}

// Rows of B, or of a transposed A, that are a multiple of 2048 bytes apart are VectorProduct's where there is nothing
// wider than AVX2, so past its panels and blocks too.
TEST(Product, RowsFarApart) {
  host::useOneThread();
  for (bool transposeA : {false, true})
    for (bool add : {false, true})
      for (auto [m, n, k, slack] : {std::array<int64_t, 4>{9, 512, 50, 0},
                                    {14, 1000, 401, 24},
                                    {389, 500, 7, 12},
                                    {400, 260, 30, 252},
                                    {10, 9, 20, 503},
                                    {9, 17, 8, 495},
                                    {500, 20, 400, 12},
                                    {512, 70, 33, 0}})
        check({DType::F32, DType::F32, DType::F32, DType::F32, m, n, k, transposeA, false, add, slack});
}

// A transposed B of many columns is VectorProduct's too there: past its groups of 6 columns, blocks of 24
// columns, of 64 and 384 rows and 768 deep.
TEST(Product, ManyTransposedColumns) {
  host::useOneThread();
  for (bool transposeA : {false, true})
    for (bool add : {false, true})
      for (auto [m, n, k, slack] : {std::array<int64_t, 4>{9, 256, 9, 0},
                                    {14, 301, 801, 3},
                                    {389, 257, 30, 12},
                                    {130, 1000, 8, 504},
                                    {67, 266, 1537, 0},
                                    {24, 259, 40, 8}})
        check({DType::F32, DType::F32, DType::F32, DType::F32, m, n, k, transposeA, true, add, slack});
}

// Threads cut such a product, as they do one of 16 bits, into parts of their own number: an element keeps its bits, and
// has the same where the columns of B lie in memory as rows. Machines with AVX-512 do not choose this way, but can go
// it.
TEST(Product, BitsOfVectorsDependOnNoOtherRowsAndColumns) {
  if (!host::hasFewRows())
    GTEST_SKIP() << "this machine has no AVX2 with FMA and F16C";
  const int64_t m = 400, n = 512, k = 800;
  for (DType type : {DType::F32, DType::BF16, DType::F16, DType::I8}) {
    const DType typeA = type == DType::I8 ? DType::F32 : type;
    std::vector<std::byte> a(size_t(m * k * byteSize(typeA))), b(size_t(k * n * byteSize(type))), turned(b.size()),
        scratch;
    for (int64_t i = 0; i < m * k; ++i)
      set(typeA, a.data(), i, std::sin(double(i)));
    for (int64_t x = 0; x < k; ++x)
      for (int64_t j = 0; j < n; ++j) {
        const double value = type == DType::I8 ? double((x * n + j) % 255 - 127) : std::cos(double(x * n + j));
        set(type, b.data(), x * n + j, value);
        set(type, turned.data(), j * k + x, value);
      }
    auto multiply = [&](bool transposeB, int64_t row, int64_t rows, int64_t column, int64_t columns) {
      std::vector<float> c(size_t(m * n), 0.25f);
      Product product{rows, columns, k};
      product.a = {a.data() + row * k * byteSize(typeA), typeA, k, false};
      product.b = {(transposeB ? turned.data() + column * k * byteSize(type) : b.data() + column * byteSize(type)),
                   type, transposeB ? k : n, transposeB};
      product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, n, false};
      product.addToC = true;
      host::multiplyVectors(product, scratch);
      return c;
    };
    const std::vector<float> whole = multiply(false, 0, m, 0, n);
    double sum = 0.25;
    for (int64_t x = 0; x < k; ++x)
      sum += get(typeA, a.data(), x) * get(type, b.data(), x * n);
    EXPECT_NEAR(whole[0], sum, 1e-4 * std::max(1.0, std::abs(sum)));
    EXPECT_EQ(multiply(true, 0, m, 0, n), whole) << name(type);
    for (bool transposeB : {false, true})
      for (auto [row, rows, column, columns] : {std::array<int64_t, 4>{0, 11, 64, 19},
                                                {37, 8, 0, 5},
                                                {5, 23, 101, 49},
                                                {300, 70, 7, 26},
                                                {16, 90, 20, 100}}) {
        const std::vector<float> part = multiply(transposeB, row, rows, column, columns);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j)
            ASSERT_EQ(part[size_t(i * n + j)], whole[size_t((row + i) * n + column + j)])
                << name(type) << (transposeB ? " transposed " : " ") << row + i << "," << column + j;
        EXPECT_EQ(part[size_t(rows * n)], 0.25f) << "beyond the rows";
        EXPECT_EQ(part[size_t(columns)], 0.25f) << "beyond the columns";
      }
  }
}

// Sums of 16-bit floats are f32: 4096 ones are 4096, where a sum in bf16 would end at 256 and one in f16 at 2048.
TEST(Product, SumsAreWide) {
  for (DType type : {DType::F16, DType::BF16}) {
    Product product{1, 1, 4096};
    std::vector<std::byte> ones(2 * 4096), scratch;
    for (int64_t i = 0; i < 4096; ++i)
      set(type, ones.data(), i, 1);
    std::byte c[2];
    product.a = {ones.data(), type, 4096, false};
    product.b = {ones.data(), type, 1, false};
    product.c = {c, type, 1, false};
    ASSERT_TRUE(host::multiply(product, scratch).ok());
    EXPECT_EQ(get(type, c, 0), 4096);
  }
}

TEST(Product, TypesWithoutAProductAreRefused) {
  for (DType type : {DType::I32, DType::Bool})
    EXPECT_THAT(host::productScratch(DType::F32, type, DType::F32, DType::F32).status().text(),
                testing::HasSubstr(std::string("error[unsupported]: the host backend has no product of f32 and ") +
                                   name(type)));
  EXPECT_FALSE(host::productScratch(DType::F16, DType::F16, DType::F16, DType::F16).ok());
  EXPECT_FALSE(host::productScratch(DType::I8, DType::F32, DType::F32, DType::F32).ok());
  EXPECT_FALSE(host::productScratch(DType::F32, DType::I8, DType::F32, DType::F64).ok());
  EXPECT_FALSE(host::productScratch(DType::F64, DType::I8, DType::F64, DType::F32).ok());
}
