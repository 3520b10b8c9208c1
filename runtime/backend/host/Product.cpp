// Tile registers where the machine has them and the product is large; few rows by themselves; vectors where there are no
// tiles and they are the better way; else oneDNN for f32, and for all other types blocks of A, B and C in the type of the
// sums, so that memory for them is small.
#include "runtime/backend/host/Product.h"

#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/TileProduct.h"
#include "runtime/backend/host/VectorProduct.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstring>
#include <dnnl.h>

// From libgomp, on which oneDNN depends; <omp.h> would need -fopenmp and so a second OpenMP runtime.
extern "C" void omp_set_num_threads(int);

namespace hpc::host {

namespace {

constexpr int64_t block = 512; ///< rows, columns and depth that are multiplied at once

/// oneDNN 2.6.3 dies of SIGFPE on a zero extent; callers have none.
Status multiplyF32(bool transposeA, bool transposeB, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                   const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  dnnl_status_t status =
      dnnl_sgemm(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
  if (status == dnnl_success)
    return Status::success();
  return Status::error(ErrorKind::Internal, "oneDNN refuses a product of m=" + std::to_string(m) +
                                                " n=" + std::to_string(n) + " k=" + std::to_string(k) + " (status " +
                                                std::to_string(int(status)) + ")");
}

/// Row-major blocks without gaps: c += a * b.
Status multiplyBlock(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c) {
  return multiplyF32(false, false, m, n, k, a, k, b, n, 1.0f, c, n);
}

Status multiplyBlock(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *c) {
  // Four rows of C at a time read each row of B once.
  for (int64_t i = 0; i < m; i += 4) {
    const int64_t rows = std::min<int64_t>(4, m - i);
    for (int64_t x = 0; x < k; ++x)
      for (int64_t row = i; row < i + rows; ++row) {
        const double factor = a[row * k + x];
        for (int64_t j = 0; j < n; ++j)
          c[row * n + j] += factor * b[x * n + j];
      }
  }
  return Status::success();
}

template <typename Sum, typename T> Sum widen(T value) { return Sum(value); }
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
template <typename Sum> Sum widen(Half value) { return Sum(halfToFloat(value.bits)); }
template <typename Sum> Sum widen(BFloat value) { return Sum(bfloatToFloat(value.bits)); }

template <typename T, typename Sum> T narrow(Sum value) {
  if constexpr (std::is_same_v<T, Half>)
    return {floatToHalf(float(value))};
  else if constexpr (std::is_same_v<T, BFloat>)
    return {floatToBfloat(float(value))};
  else
    return T(value);
}

/// Calls f with a value of the C++ type of `dtype`. Only float types have products, and i8 as the right operand.
template <typename F> void withType(DType dtype, F f) {
  switch (dtype) {
  case DType::F64:
    return f(double());
  case DType::F16:
    return f(Half());
  case DType::BF16:
    return f(BFloat());
  case DType::I8:
    return f(int8_t());
  default:
    return f(float());
  }
}

/// Elements [row .. row+rows) x [column .. column+columns) of the matrix that the product sees.
template <typename Sum, typename Byte>
void load(const MatrixOf<Byte> &from, int64_t row, int64_t rows, int64_t column, int64_t columns, Sum *to) {
  const int64_t rowStride = from.transpose ? 1 : from.ld, columnStride = from.transpose ? from.ld : 1;
  withType(from.dtype, [&](auto type) {
    using T = decltype(type);
    const T *start = reinterpret_cast<const T *>(from.data) + row * rowStride + column * columnStride;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        to[i * columns + j] = widen<Sum>(start[i * rowStride + j * columnStride]);
  });
}

template <typename Sum>
void store(const Sum *from, const Matrix &to, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  withType(to.dtype, [&](auto type) {
    using T = decltype(type);
    T *start = reinterpret_cast<T *>(to.data) + row * to.ld + column;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        start[i * to.ld + j] = narrow<T>(from[i * columns + j]);
  });
}

template <typename Sum> Status multiplyBlocks(const Product &product, std::byte *scratch) {
  Sum *a = reinterpret_cast<Sum *>(scratch), *b = a + block * block, *c = b + block * block;
  for (int64_t column = 0; column < product.n; column += block)
    for (int64_t row = 0; row < product.m; row += block) {
      const int64_t rows = std::min(block, product.m - row), columns = std::min(block, product.n - column);
      if (product.addToC)
        load(product.c, row, rows, column, columns, c);
      else
        std::fill(c, c + rows * columns, Sum(0));
      for (int64_t x = 0; x < product.k; x += block) {
        const int64_t depth = std::min(block, product.k - x);
        load(product.a, row, rows, x, depth, a);
        load(product.b, x, depth, column, columns, b);
        HPC_RETURN_IF_ERROR(multiplyBlock(rows, columns, depth, a, b, c));
      }
      store(c, product.c, row, rows, column, columns);
    }
  return Status::success();
}

bool isOfFewRows(const Product &product) {
  auto isNarrow = [](DType type) { return type == DType::F32 || type == DType::BF16 || type == DType::F16; };
  return product.m <= fewRows && product.accumulate == DType::F32 && isNarrow(product.a.dtype) &&
         (isNarrow(product.b.dtype) || product.b.dtype == DType::I8) && isNarrow(product.c.dtype) && hasFewRows();
}

/// Few rows: numbers of f32 on the stack, of A and of C.
constexpr int64_t columnsAtOnce = 1024, mostSums = fewRows * columnsAtOnce, mostDepth = 1024;

/// The length of a chain of sums along k, since one chain along a long k loses digits; it depends on k alone, so that
/// the bits of an element do not depend on the cut. If B's rows are rows in memory, chains are parts for threads too,
/// of which some sixteen are enough; a column that is a row in memory is read as a whole.
int64_t chainOf(const Product &product) {
  constexpr int64_t manyParts = 16, leastDepth = 64, unit = 16;
  if (product.b.transpose)
    return mostDepth;
  return std::min(roundUp(std::max(ceilDiv(product.k, manyParts), leastDepth), unit), mostDepth);
}

/// A and C become f32 in blocks, B is read where it lies.
void multiplyFew(const Product &product) {
  alignas(64) float sums[mostSums], part[mostSums], a[fewRows * mostDepth];
  const int64_t chain = chainOf(product), rows = product.m;
  for (int64_t column = 0; column < product.n; column += columnsAtOnce) {
    const int64_t columns = std::min(columnsAtOnce, product.n - column);
    if (product.addToC)
      load(product.c, 0, rows, column, columns, sums);
    else
      std::fill(sums, sums + rows * columns, 0.0f);
    for (int64_t x = 0; x < product.k; x += chain) {
      const int64_t depth = std::min(chain, product.k - x);
      load(product.a, 0, rows, x, depth, a);
      const int64_t start = product.b.transpose ? column * product.b.ld + x : x * product.b.ld + column;
      multiplyFewRows({rows, columns, depth, a, product.b.data + start * byteSize(product.b.dtype), product.b.dtype,
                       product.b.ld, product.b.transpose, part});
      for (int64_t i = 0; i < rows * columns; ++i)
        sums[i] += part[i];
    }
    store(sums, product.c, 0, rows, column, columns);
  }
}

bool isPlainF32(DType a, DType b, DType c, DType accumulate) {
  return a == DType::F32 && b == DType::F32 && c == DType::F32 && accumulate == DType::F32;
}

} // namespace

int64_t depthOfParts(const Product &product) {
  constexpr int64_t leastBytes = 32 << 10; // of B in a part: a microsecond of memory
  constexpr int64_t mostSumsOfPart = 20 << 10; // those of all parts stay in the cache
  const auto &[m, n, k, a, b, c, accumulate, addToC, mayUseTiles] = product;
  if (m == 0 || n == 0 || b.transpose || !isOfFewRows(product) || n > std::min(mostSums, mostSumsOfPart / m))
    return 0;
  const int64_t depth = chainOf(product);
  return depth < k && depth * n * byteSize(b.dtype) >= leastBytes ? depth : 0;
}

int64_t columnsOfParts(const Product &product) {
  constexpr int64_t bytes = 256 << 10, line = 16; // of B in a part: some ten microseconds of memory; numbers of a cache line
  if (!product.b.transpose || !isOfFewRows(product) || product.k == 0)
    return 0;
  return roundUp(ceilDiv(bytes, product.k * byteSize(product.b.dtype)), line);
}

void sumDepth(const Product &product, int64_t first, int64_t depth, float *sums) {
  alignas(64) float a[fewRows * mostDepth];
  load(product.a, 0, product.m, first, depth, a);
  const std::byte *b = product.b.data + first * product.b.ld * byteSize(product.b.dtype);
  multiplyFewRows({product.m, product.n, depth, a, b, product.b.dtype, product.b.ld, false, sums});
}

int64_t sumsOfPart(int64_t m, int64_t n) {
  constexpr int64_t usual = 4096, line = 16; // not a multiple of a page, since addParts() reads all parts side by side
  return std::max(m * n, usual) + line;
}

void addParts(const Product &product, const float *sums, int64_t parts, int64_t first, int64_t last) {
  const int64_t columns = last - first;
  alignas(64) float total[mostSums];
  for (int64_t row = 0; row < product.m; ++row) {
    if (product.addToC)
      load(product.c, row, 1, first, columns, total);
    else
      std::fill(total, total + columns, 0.0f);
    addRowParts(sums + row * product.n + first, parts, sumsOfPart(product.m, product.n), columns, total);
    store(total, product.c, row, 1, first, columns);
  }
}

void useOneThread() { omp_set_num_threads(1); }

int64_t oneDnnScratch(int64_t m, int64_t n, int64_t k) {
  if (m == 0 || n == 0 || k == 0)
    return 0;
  // oneDNN 2.6.3 packs panels of at most 9984 x 384 and 384 x 384 (row-major products have its m and n swapped), or
  // uses a fixed 72 KiB and no panels. Measured by counting posix_memalign for products from 16^3 to 30000^2 x 128.
  int64_t depth = std::min<int64_t>(roundUp(k, 8), 384);
  int64_t panels = std::min<int64_t>(roundUp(n, 48), 9984) + std::min<int64_t>(roundUp(m, 8), 384);
  return std::max<int64_t>(80 << 10, panels * depth * 4 + (20 << 10));
}

Expected<int64_t> productScratch(DType a, DType b, DType c, DType accumulate) {
  bool isInt8 = b == DType::I8 && a != DType::F64 && accumulate == DType::F32;
  bool floats = isFloat(a) && (isFloat(b) || isInt8) && isFloat(c);
  if (!floats || (accumulate != DType::F32 && accumulate != DType::F64))
    return Status::error(ErrorKind::Unsupported, std::string("the host backend has no product of ") + name(a) +
                                                     " and " + name(b) + " into " + name(c) + " with sums in " +
                                                     name(accumulate) +
                                                     "; operands may be f16, bf16, f32 or f64, sums f32 or f64; "
                                                     "the right one may be i8 where sums are f32");
  return isPlainF32(a, b, c, accumulate) ? 0 : 3 * block * block * byteSize(accumulate);
}

Status multiply(const Product &product, std::vector<std::byte> &scratch) {
  const auto &[m, n, k, a, b, c, accumulate, addToC, mayUseTiles] = product;
  if (m == 0 || n == 0 || (k == 0 && addToC))
    return Status::success();
  if (fitsTiles(product)) {
    // Tiles may have turned infinities into NaN; if C holds no sum yet, the code below computes it again.
    if (multiplyTiles(product, scratch) || addToC)
      return Status::success();
  }
  if (k > 0 && isOfFewRows(product)) {
    multiplyFew(product);
    return Status::success();
  }
  if (fitsVectors(product)) {
    multiplyVectors(product, scratch);
    return Status::success();
  }
  if (k > 0 && isPlainF32(a.dtype, b.dtype, c.dtype, accumulate))
    return multiplyF32(a.transpose, b.transpose, m, n, k, reinterpret_cast<const float *>(a.data), a.ld,
                       reinterpret_cast<const float *>(b.data), b.ld, addToC ? 1.0f : 0.0f,
                       reinterpret_cast<float *>(c.data), c.ld);
  if (k == 0) { // zeros are zero bytes in every float type
    for (int64_t row = 0; row < m; ++row)
      std::memset(c.data + row * c.ld * byteSize(c.dtype), 0, size_t(n * byteSize(c.dtype)));
    return Status::success();
  }
  Expected<int64_t> bytes = productScratch(a.dtype, b.dtype, c.dtype, accumulate);
  if (!bytes.ok())
    return bytes.status();
  scratch.resize(std::max(scratch.size(), size_t(*bytes)));
  return accumulate == DType::F64 ? multiplyBlocks<double>(product, scratch.data())
                                  : multiplyBlocks<float>(product, scratch.data());
}

} // namespace hpc::host
