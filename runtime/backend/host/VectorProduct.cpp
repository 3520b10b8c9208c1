// Panels of A (six rows) and of B (sixteen columns) are packed, widened to f32, one step of k after the other; twelve
// vectors hold the sums of a panel of each. A transposed B is TransposedProduct's.
#include "runtime/backend/host/VectorProduct.h"

#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/VectorPanels.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::host {

namespace {

using namespace vectors;

constexpr int panelRows = 6;
static_assert(panelColumns == 2 * lanes);
constexpr int64_t alignment = 64;
constexpr int64_t leftNumbers = rowsAtOnce * depthAtOnce, rightNumbers = columnsAtOnce * depthAtOnce;

/// Memory that is read soon: `step` bytes of it are asked for with each step of k.
struct Ahead {
  const std::byte *from = nullptr;
  int64_t step = 0;
};

/// c[rows, 16], rows `ld` apart, = or += a panel of A times a panel of B.
template <int rows>
HPC_AVX2 void multiplyPanels(int64_t depth, const float *a, const float *b, Ahead ahead, bool add, float *c,
                             int64_t ld) {
  askForRows(c, ld, rows);
  Float sums[rows][2] = {};
  if (add)
    for (int i = 0; i < rows; ++i)
      std::memcpy(sums[i], c + i * ld, sizeof(sums[i]));
  HPC_ALIGNED for (int64_t x = 0; x < depth; ++x) {
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
constexpr MultiplyPanels ofRows[] = {nullptr,           multiplyPanels<1>, multiplyPanels<2>,        multiplyPanels<3>,
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

/// oneDNN 2.6.3 reads operands as they lie in memory where A, or a part of it, has fewer than 384 rows. Of a transposed
/// A or a B whose rows are a multiple of 2048 bytes apart, which fall on few lines of the cache, it then computes 31 to
/// 55 GFLOP/s where others have 85 (Zen 3); of a transposed B of many columns 30 to 50 where A has 16 rows and 57 to 75
/// where it has 64, where these vectors have 85 and 92. With fewer columns it is as fast, and A need not be packed.
bool isSlowElsewhere(const Product &product) {
  constexpr int64_t manyColumns = 256;
  return product.a.transpose || (product.b.transpose ? product.n >= manyColumns : product.b.ld % 512 == 0);
}

/// The panels of B that multiplyPanels() reads: packed before, or now.
struct RightPanels {
  const ConstMatrix &b;
  float *packed; ///< room for columnsAtOnce columns, depthAtOnce deep

  /// Columns column .. column+columns-1 at depths x .. x+depth-1, of which no panel is packed yet.
  void begin(int64_t column, int64_t columns, int64_t x, int64_t depth) const {
    if (!b.packed)
      return pack<panelColumns>(b, false, column, columns, x, depth, packed);
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
  /// What is packed before and follows the panel at `column`, which memory gives no faster than over all rows: the part
  /// that row i of `rows` is to ask for.
  Ahead ahead(int64_t column, int64_t i, int64_t rows, int64_t x, int64_t depth) const {
    if (!b.packed)
      return {};
    constexpr int64_t bytes = panelColumns * int64_t(sizeof(float));
    const int64_t step = ceilDiv(bytes, ceilDiv(rows, panelRows)), call = i / panelRows;
    return {b.data + (column + panelColumns) * b.ld * int64_t(sizeof(float)) + x * bytes + call * depth * step, step};
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
  if (b.transpose && !b.packed)
    return multiplyTransposed(product, left, left + leftNumbers);
  const RightPanels right{b, left + leftNumbers};
  for (int64_t row = 0; row < m; row += rowsAtOnce)
    for (int64_t x = 0; x < k; x += depthAtOnce) {
      const int64_t rows = std::min(rowsAtOnce, m - row), depth = std::min(depthAtOnce, k - x);
      const bool add = addToC || x > 0;
      pack<panelRows>(a, !a.transpose, row, rows, x, depth, left);
      for (int64_t column = 0; column < n; column += columnsAtOnce) {
        const int64_t columns = std::min(columnsAtOnce, n - column);
        right.begin(column, columns, x, depth);
        float *const to = reinterpret_cast<float *>(c.data) + row * c.ld + column;
        for (int64_t j = 0; j < columns; j += panelColumns)
          for (int64_t i = 0; i < rows; i += panelRows) {
            const int64_t height = std::min<int64_t>(panelRows, rows - i), width = columns - j;
            const float *const ofA = left + i * depth, *const ofB = right.panel(column, j, columns, x, depth);
            if (width < panelColumns)
              multiplyNarrow(height, width, depth, ofA, ofB, add, to + i * c.ld + j, c.ld);
            else
              ofRows[height](depth, ofA, ofB, right.ahead(column + j, i, rows, x, depth), add, to + i * c.ld + j, c.ld);
          }
      }
    }
}

} // namespace hpc::host
