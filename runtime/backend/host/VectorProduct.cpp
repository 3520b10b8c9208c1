// Panels of A (six rows) and of B (sixteen columns) are packed, widened to f32, one step of k after the other; twelve
// vectors hold the sums of a panel of each.
#include "runtime/backend/host/VectorProduct.h"

#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/Vectors.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::host {

namespace {

constexpr int lanes = 8, panelRows = 6;
static_assert(panelColumns == 2 * lanes);
/// What is packed of B lies in L2, and is packed once for so many rows, which lie there or in L3.
constexpr int64_t depthAtOnce = 768, mostColumnsAtOnce = 64, rowsAtOnce = 384;
constexpr int64_t alignment = 64;
constexpr int64_t leftNumbers = rowsAtOnce * depthAtOnce, rightNumbers = mostColumnsAtOnce * depthAtOnce;

/// A transposed B is asked for one block ahead, which then has to lie in L2 beside this one.
int64_t columnsAtOnce(const ConstMatrix &b) { return b.transpose ? mostColumnsAtOnce / 2 : mostColumnsAtOnce; }

#define HPC_AVX2 [[gnu::target("avx2,fma,f16c")]]

using Float = Vectors<lanes>::Float;

/// Lane i of vector j becomes lane j of vector i.
HPC_INLINE void transpose(Float (&v)[lanes]) {
  Float pairs[lanes], fours[lanes];
  for (int i = 0; i < lanes; i += 2) {
    pairs[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < lanes; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * j + 1] = __builtin_shufflevector(pairs[i + j], pairs[i + 2 + j], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < lanes / 2; ++i) {
    v[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// What is packed of a matrix: `count` lines (rows of A, columns of B), `depth` deep.
template <typename T> struct Source {
  const T *data;
  int64_t ld;
  bool along; ///< a line lies in memory one number after the other; else the lines of one depth do
  int64_t count, depth;
};

/// to[x * width + i] = line i at depth x; 0 of lines that are not there.
template <int width, typename T> HPC_INLINE void packPanel(const Source<T> &from, float *to) {
  int64_t x = 0;
  if (!from.along && from.count == width && width % lanes == 0) {
    for (; x < from.depth; ++x)
      for (int i = 0; i < width; i += lanes) {
        Float v;
        Vectors<lanes>::load(from.data + x * from.ld + i, v);
        std::memcpy(to + x * width + i, &v, sizeof(v));
      }
    return;
  }
  for (; from.along && x + lanes <= from.depth; x += lanes)
    for (int first = 0; first < width; first += lanes) {
      Float v[lanes] = {};
      for (int i = 0; i < lanes && first + i < std::min<int64_t>(width, from.count); ++i)
        Vectors<lanes>::load(from.data + (first + i) * from.ld + x, v[i]);
      transpose(v);
      for (int step = 0; step < lanes; ++step)
        std::memcpy(to + (x + step) * width + first, &v[step], sizeof(float) * size_t(std::min(lanes, width - first)));
    }
  const int64_t line = from.along ? from.ld : 1, step = from.along ? 1 : from.ld;
  for (; x < from.depth; ++x)
    for (int64_t i = 0; i < width; ++i)
      to[x * width + i] = i < from.count ? widen(from.data[i * line + x * step]) : 0.0f;
}

template <int width, typename T> HPC_INLINE void packPanels(const Source<T> &from, float *to) {
  for (int64_t i = 0; i < from.count; i += width)
    packPanel<width>(Source<T>{from.data + i * (from.along ? from.ld : 1), from.ld, from.along,
                               std::min<int64_t>(width, from.count - i), from.depth},
                     to + i * from.depth);
}

template <int width, typename T>
HPC_AVX2 void packAs(const ConstMatrix &matrix, bool along, int64_t at, int64_t count, int64_t x, int64_t depth,
                     float *to) {
  const T *data = reinterpret_cast<const T *>(matrix.data) + (along ? at * matrix.ld + x : x * matrix.ld + at);
  packPanels<width>(Source<T>{data, matrix.ld, along, count, depth}, to);
}

/// Lines at .. at+count-1 at depths x .. x+depth-1.
template <int width>
void pack(const ConstMatrix &matrix, bool along, int64_t at, int64_t count, int64_t x, int64_t depth, float *to) {
  switch (matrix.dtype) {
  case DType::BF16:
    return packAs<width, BFloat>(matrix, along, at, count, x, depth, to);
  case DType::F16:
    return packAs<width, _Float16>(matrix, along, at, count, x, depth, to);
  case DType::I8:
    return packAs<width, int8_t>(matrix, along, at, count, x, depth, to);
  default:
    return packAs<width, float>(matrix, along, at, count, x, depth, to);
  }
}

/// Memory that is read soon: `step` bytes of it are asked for with each step of k.
struct Ahead {
  const std::byte *from = nullptr;
  int64_t step = 0;
};

/// c[rows, 16], rows `ld` apart, = or += a panel of A times a panel of B.
template <int rows>
HPC_AVX2 void multiplyPanels(int64_t depth, const float *a, const float *b, Ahead ahead, bool add, float *c, int64_t ld) {
  Float sums[rows][2] = {};
  if (add)
    for (int i = 0; i < rows; ++i)
      std::memcpy(sums[i], c + i * ld, sizeof(sums[i]));
  for (int64_t x = 0; x < depth; ++x) {
    Float right[2];
    std::memcpy(right, b + x * panelColumns, sizeof(right));
    __builtin_prefetch(ahead.from + x * ahead.step, 0, 2);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < 2; ++j)
        sums[i][j] = __builtin_elementwise_fma(Float(a[x * panelRows + i]), right[j], sums[i][j]);
  }
  for (int i = 0; i < rows; ++i)
    std::memcpy(c + i * ld, sums[i], sizeof(sums[i]));
}

using MultiplyPanels = void (*)(int64_t, const float *, const float *, Ahead, bool, float *, int64_t);
constexpr MultiplyPanels ofRows[] = {nullptr,           multiplyPanels<1>, multiplyPanels<2>, multiplyPanels<3>,
                                     multiplyPanels<4>, multiplyPanels<5>, multiplyPanels<panelRows>};

/// The same for the last panel of B, of whose columns some are not there.
void multiplyNarrow(int64_t rows, int64_t columns, int64_t depth, const float *a, const float *b, bool add, float *c,
                    int64_t ld) {
  alignas(64) float sums[panelRows * panelColumns] = {};
  for (int64_t i = 0; add && i < rows; ++i)
    std::copy_n(c + i * ld, columns, sums + i * panelColumns);
  ofRows[rows](depth, a, b, {}, add, sums, panelColumns);
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(sums + i * panelColumns, columns, c + i * ld);
}

bool hasVectors() {
  static const bool has = hasFewRows() && !__builtin_cpu_supports("avx512f");
  return has;
}

bool hasTypes(const Product &product) {
  auto isFloat = [](DType type) { return type == DType::F32 || type == DType::F16 || type == DType::BF16; };
  return isFloat(product.a.dtype) && (isFloat(product.b.dtype) || product.b.dtype == DType::I8) &&
         product.c.dtype == DType::F32 && product.accumulate == DType::F32;
}

/// oneDNN 2.6.3 reads operands as they lie in memory where A, or a part of it, has fewer than 384 rows. Of a transposed A
/// or a B whose rows are a multiple of 2048 bytes apart, which fall on few lines of the cache, it then computes 31 to 55
/// GFLOP/s where others have 85 (Zen 3); of a transposed B 30 to 50 where A has 16 rows and 57 to 75 where it has 64, where
/// these vectors have 55 to 70 and 68 to 82. With fewer columns what is packed of A is used too seldom.
bool isSlowElsewhere(const Product &product) {
  constexpr int64_t manyColumns = 256;
  return product.a.transpose || (product.b.transpose ? product.n >= manyColumns : product.b.ld % 512 == 0);
}

/// The panels of B that multiplyPanels() reads: packed before, or now.
struct RightPanels {
  const ConstMatrix &b;
  int64_t n;
  float *packed; ///< room for mostColumnsAtOnce columns, depthAtOnce deep

  /// Columns column .. column+columns-1 at depths x .. x+depth-1, of which no panel is packed yet.
  void begin(int64_t column, int64_t columns, int64_t x, int64_t depth) const {
    if (!b.packed)
      return pack<panelColumns>(b, b.transpose, column, columns, x, depth, packed);
    // What is packed before leaves out the columns that are not there.
    if (const int64_t width = columns % panelColumns) {
      const int64_t first = columns - width;
      const float *from = reinterpret_cast<const float *>(b.data) + (column + first) * b.ld + x * width;
      packPanel<panelColumns>(Source<float>{from, width, false, width, depth}, packed + first * depth);
    }
  }
  const float *panel(int64_t column, int64_t j, int64_t columns, int64_t x, int64_t depth) const {
    if (b.packed && columns - j >= panelColumns)
      return reinterpret_cast<const float *>(b.data) + (column + j) * b.ld + x * panelColumns;
    return packed + j * depth;
  }
  /// What is multiplied later than the panel at `column`, which memory gives no faster than over all rows: the part
  /// that row i of `rows` is to ask for. Of what is packed it is the next panel, of a transposed B the same panel of the
  /// next block, whose lines are taken to follow each other.
  Ahead ahead(int64_t column, int64_t columns, int64_t i, int64_t rows, int64_t x, int64_t depth) const {
    const int64_t bytes = byteSize(b.dtype), calls = ceilDiv(rows, panelRows), call = i / panelRows;
    if (b.packed) {
      const int64_t step = ceilDiv(panelColumns * bytes, calls);
      return {b.data + (column + panelColumns) * b.ld * bytes + x * panelColumns * bytes + call * depth * step, step};
    }
    const int64_t lines = ceilDiv(panelColumns, calls), line = column + columns + call * lines;
    if (!b.transpose || call * lines >= panelColumns || line >= n)
      return {};
    return {b.data + (line * b.ld + x) * bytes, lines * bytes};
  }
};

} // namespace

bool fitsVectors(const Product &product) {
  if (product.b.packed)
    return true;
  const bool isF32 = product.a.dtype == DType::F32 && product.b.dtype == DType::F32;
  return hasTypes(product) && product.m > fewRows && product.n >= panelColumns && product.k >= lanes &&
         (!isF32 || isSlowElsewhere(product)) && hasVectors();
}

bool wantsPacked(const Product &product) {
  return hasTypes(product) && product.b.dtype == DType::F32 && product.m > fewRows && product.n >= panelColumns &&
         product.k >= lanes && hasVectors();
}

void packVectors(const ConstMatrix &b, int64_t k, int64_t n, int64_t first, int64_t last, float *to) {
  for (int64_t panel = first; panel < last; ++panel) {
    const int64_t column = panel * panelColumns, width = std::min(panelColumns, n - column);
    if (width == panelColumns)
      pack<panelColumns>(b, b.transpose, column, width, 0, k, to + column * k);
    else
      for (int64_t x = 0; x < k; ++x)
        for (int64_t j = 0; j < width; ++j)
          std::memcpy(to + column * k + x * width + j,
                      b.data + (b.transpose ? (column + j) * b.ld + x : x * b.ld + column + j) * int64_t(sizeof(float)),
                      sizeof(float));
  }
}

int64_t vectorScratch() { return (leftNumbers + rightNumbers) * int64_t(sizeof(float)) + alignment; }

void multiplyVectors(const Product &product, std::vector<std::byte> &scratch) {
  scratch.resize(std::max(scratch.size(), size_t(vectorScratch())));
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(scratch.data()) % alignment;
  float *const left = reinterpret_cast<float *>(scratch.data() + (misaligned ? alignment - misaligned : 0));
  const auto &[m, n, k, a, b, c, accumulate, addToC, mayUseTiles] = product;
  const RightPanels right{b, n, left + leftNumbers};
  for (int64_t row = 0; row < m; row += rowsAtOnce)
    for (int64_t x = 0; x < k; x += depthAtOnce) {
      const int64_t rows = std::min(rowsAtOnce, m - row), depth = std::min(depthAtOnce, k - x);
      const bool add = addToC || x > 0;
      pack<panelRows>(a, !a.transpose, row, rows, x, depth, left);
      for (int64_t column = 0; column < n; column += columnsAtOnce(b)) {
        const int64_t columns = std::min(columnsAtOnce(b), n - column);
        right.begin(column, columns, x, depth);
        float *const to = reinterpret_cast<float *>(c.data) + row * c.ld + column;
        for (int64_t j = 0; j < columns; j += panelColumns)
          for (int64_t i = 0; i < rows; i += panelRows) {
            const int64_t height = std::min<int64_t>(panelRows, rows - i), width = columns - j;
            const float *const ofA = left + i * depth, *const ofB = right.panel(column, j, columns, x, depth);
            if (width < panelColumns)
              multiplyNarrow(height, width, depth, ofA, ofB, add, to + i * c.ld + j, c.ld);
            else
              ofRows[height](depth, ofA, ofB, right.ahead(column + j, columns, i, rows, x, depth), add, to + i * c.ld + j,
                             c.ld);
          }
      }
    }
}

} // namespace hpc::host
