// Every way in which this machine's vectors multiply, the best one or not: each type, layout and rim, the bits of an
// element, and what IEEE says of infinities. A way that the machine lacks is not seen here.
#include "runtime/backend/host/VectorProduct.h"
#include "test/unit/runtime/host/ProductCase.h"

#include <array>

using namespace hpc;
using host::Product;
using test::get;
using test::set;

namespace {

struct Operands {
  DType a, b;
};

/// f(name, way, types) for each way that there is, and types that it takes.
template <typename F> void forWays(F f) {
  const std::pair<const char *, const host::VectorWay *> ways[] = {{"AVX2", &host::vectors::avx2},
                                                                   {"AVX-512", &host::vectors::avx512},
                                                                   {"AVX-512 in pairs", &host::vectors::avx512Pairs}};
  for (const auto &[name, way] : ways)
    for (DType a : {DType::F32, DType::F16, DType::BF16})
      for (DType b : {DType::F32, DType::F16, DType::BF16, DType::I8})
        if (host::machineHas(*way) && host::takesTypes(*way, a, b))
          f(name + std::string(" ") + hpc::name(a) + " " + hpc::name(b), *way, Operands{a, b});
}

} // namespace

// Past panels of rows and columns, groups of lines, blocks of rows, columns and depth, and within each of them; rows
// that begin at odd numbers.
TEST(ProductVectors, EveryNumberIsInItsPlace) {
  forWays([](const std::string &name, const host::VectorWay &way, Operands types) {
    SCOPED_TRACE(name);
    auto multiply = [&](const Product &product, std::vector<std::byte> &scratch) {
      host::multiplyVectors(product, scratch, &way);
      return Status::success();
    };
    for (bool transposeA : {false, true})
      for (bool transposeB : {false, true})
        for (bool add : {false, true})
          for (auto [m, n, k, slack] : {std::array<int64_t, 4>{1, 1, 1, 0},
                                        {9, 16, 8, 0},
                                        {11, 33, 13, 3},
                                        {17, 40, 31, 2},
                                        {25, 70, 801, 1},
                                        {33, 67, 1537, 0},
                                        {10, 530, 12, 3},
                                        {70, 131, 20, 1},
                                        {401, 20, 9, 0}})
            for (DType c : {DType::F32, DType::F16, DType::BF16})
              test::check({types.a, types.b, c, DType::F32, m, n, k, transposeA, transposeB, add, slack}, multiply,
                          [](const Product &product) { return host::vectorScratch(product.c.dtype); });
  });
}

// Threads cut a product into parts of their own number: an element keeps its bits, and has the same where the columns
// of B lie in memory as rows, or B in panels.
TEST(ProductVectors, BitsDependOnNoOtherRowsAndColumns) {
  const int64_t m = 400, n = 517, k = 800;
  forWays([&](const std::string &name, const host::VectorWay &way, Operands types) {
    if (types.b != types.a && types.b != DType::I8)
      return;
    std::vector<std::byte> a(size_t(m * k * byteSize(types.a))), b(size_t(k * n * byteSize(types.b))), turned(b.size()),
        scratch;
    for (int64_t i = 0; i < m * k; ++i)
      set(types.a, a.data(), i, std::sin(double(i)));
    for (int64_t x = 0; x < k; ++x)
      for (int64_t j = 0; j < n; ++j) {
        const double value = types.b == DType::I8 ? double((x * n + j) % 255 - 127) : std::cos(double(x * n + j));
        set(types.b, b.data(), x * n + j, value);
        set(types.b, turned.data(), j * k + x, value);
      }
    auto multiply = [&](bool transposeB, int64_t row, int64_t rows, int64_t column, int64_t columns) {
      std::vector<float> c(size_t(m * n), 0.25f);
      Product product{rows, columns, k};
      product.a = {a.data() + row * k * byteSize(types.a), types.a, k, false};
      product.b = {
          (transposeB ? turned.data() + column * k * byteSize(types.b) : b.data() + column * byteSize(types.b)),
          types.b, transposeB ? k : n, transposeB};
      product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, n, false};
      product.addToC = true;
      host::multiplyVectors(product, scratch, &way);
      return c;
    };
    const std::vector<float> whole = multiply(false, 0, m, 0, n);
    double sum = 0.25;
    for (int64_t x = 0; x < k; ++x)
      sum += get(types.a, a.data(), x) * get(types.b, b.data(), x * n);
    EXPECT_NEAR(whole[0], sum, 1e-4 * std::max(1.0, std::abs(sum)));
    EXPECT_EQ(multiply(true, 0, m, 0, n), whole) << name;
    for (bool transposeB : {false, true}) {
      std::vector<std::byte> panels(b.size());
      host::packVectors(way, {transposeB ? turned.data() : b.data(), types.b, transposeB ? k : n, transposeB}, k, n, 0,
                        (n + way.panelColumns - 1) / way.panelColumns, panels.data());
      std::vector<float> c(size_t(m * n), 0.25f);
      Product product{m, n, k};
      product.a = {a.data(), types.a, k, false};
      product.b = {panels.data(), types.b, k, false, true};
      product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, n, false};
      product.addToC = true;
      host::multiplyVectors(product, scratch, &way);
      EXPECT_EQ(c, whole) << name << " packed";
    }
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
                << name << (transposeB ? " transposed " : " ") << row + i << "," << column + j;
        EXPECT_EQ(part[size_t(rows * n)], 0.25f) << "beyond the rows";
        EXPECT_EQ(part[size_t(columns)], 0.25f) << "beyond the columns";
      }
  });
}

// Rims are filled with zeros, which must meet nothing but zeros: an infinity beside one would be NaN.
TEST(ProductVectors, InfinitiesStayInTheirRowsAndColumns) {
  forWays([](const std::string &name, const host::VectorWay &way, Operands types) {
    if (types.b == DType::I8)
      return;
    const int64_t m = 13, n = 37, k = 9;
    for (bool transposeB : {false, true}) {
      std::vector<std::byte> a(size_t(m * k * byteSize(types.a))), b(size_t(k * n * byteSize(types.b))), scratch;
      std::vector<float> c(size_t(m * n), NAN);
      for (int64_t i = 0; i < m * k; ++i)
        set(types.a, a.data(), i, i == 4 * k + k - 1 ? INFINITY : 1);
      for (int64_t i = 0; i < k * n; ++i)
        set(types.b, b.data(), i, i == (transposeB ? 6 * k + k - 1 : (k - 1) * n + 6) ? -INFINITY : 2);
      Product product{m, n, k};
      product.a = {a.data(), types.a, k};
      product.b = {b.data(), types.b, transposeB ? k : n, transposeB};
      product.c = {reinterpret_cast<std::byte *>(c.data()), DType::F32, n};
      host::multiplyVectors(product, scratch, &way);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          ASSERT_EQ(c[size_t(i * n + j)], j == 6   ? -INFINITY
                                          : i == 4 ? INFINITY
                                                   : 2.0f * k)
              << name << (transposeB ? " transposed at " : " at ") << i << "," << j;
    }
  });
}
