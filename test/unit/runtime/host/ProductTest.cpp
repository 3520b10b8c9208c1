// Products against loops in double precision: all float types, transposes, adding to C, shapes down to zero and past a
// block. ProductTilesTest has what is particular to the tile registers, ProductVectorsTest all ways of vectors.
#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/TileProduct.h"
#include "runtime/backend/host/VectorProduct.h"
#include "test/unit/runtime/host/ProductCase.h"

#include <array>
#include <gmock/gmock.h>

using namespace hpc;
using host::Product;

namespace {

using test::Case;
using test::get;
using test::set;
using test::value;

int64_t mostScratch(const Product &product) {
  const int64_t ours = host::fitsTiles(product)     ? host::tileScratch()
                       : host::fitsVectors(product) ? host::vectorScratch(product.c.dtype)
                                                    : 0;
  return std::max(*host::productScratch(product.a.dtype, product.b.dtype, product.c.dtype, product.accumulate), ours);
}

void check(const Case &test) { test::check(test, host::multiply, mostScratch); }

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
      std::vector<float> a(rows * depth), sums(rows * columns, std::nanf(""));
      std::vector<std::byte> b(size_t(columns * ld * byteSize(type)));
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = float(value(int64_t(i), 1));
      for (int64_t i = 0; i < columns * ld; ++i)
        set(type, b.data(), i, value(i, 3));
      host::FewRows product{rows, columns, depth, a.data(), b.data(), type, ld, transposed, sums.data()};
      host::multiplyFewRows(product, false);
      for (int64_t i = 0; i < rows * columns; ++i) {
        double sum = 0;
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

// Rows of B, or of a transposed A, that are a multiple of 2048 bytes apart are VectorProduct's where there are no
// tiles, so past its panels and blocks too.
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

// A transposed B of many columns is VectorProduct's too there: past its groups of 6 or 8 columns, blocks
// of four groups, of 64 and 384 rows and 768 deep.
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
