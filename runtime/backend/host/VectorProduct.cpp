// Panels of A and of B are packed, one step of k after the other; vectors hold the sums of a panel of each. A
// transposed B is TransposedProduct's.
#include "runtime/backend/host/VectorProduct.h"

#include "runtime/backend/host/FewRows.h"
#include "runtime/backend/host/TileProduct.h"
#include "runtime/backend/host/VectorPanels.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstring>

namespace hpc::host {

namespace {

using namespace vectors;

constexpr int64_t alignment = 64, wordBytes = sizeof(float);
constexpr int64_t leftNumbers = (rowsAtOnce + mostPanelRows) * depthAtOnce, rightNumbers = columnsAtOnce * depthAtOnce;
/// Sums of a C of 16 bits are put together beside it.
constexpr int64_t columnsOfSums = 512, sumsNumbers = rowsAtOnce * columnsOfSums;
/// Below, panels are little but rim.
constexpr int64_t leastColumns = 16, leastDepth = 8;

/// The same for the last panel of B, of whose columns some are not there.
void multiplyNarrow(const VectorWay &way, int64_t rows, int64_t columns, int64_t steps, const float *a, const float *b,
                    bool add, float *c, int64_t ld) {
  alignas(64) float sums[mostPanelRows * mostPanelRows] = {};
  for (int64_t i = 0; add && i < rows; ++i)
    std::copy_n(c + i * ld, columns, sums + i * way.panelColumns);
  way.panels[rows](steps, a, b, {reinterpret_cast<const std::byte *>(b)}, add, sums, way.panelColumns);
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(sums + i * way.panelColumns, columns, c + i * ld);
}

/// Whether these vectors are a way to compute it at all; tiles are faster.
bool hasWay(const Product &product) {
  const DType c = product.c.dtype;
  return (c == DType::F32 || c == DType::F16 || c == DType::BF16) && product.accumulate == DType::F32 &&
         product.m > fewRows && product.n >= leastColumns && product.k >= leastDepth && !hasTiles() &&
         bestWay(product.a.dtype, product.b.dtype);
}

/// oneDNN 2.6.3 does not pack operands where A, or a part of it, has fewer than 384 rows. With AVX2
/// it is then slow (measured): for a transposed A; for a B whose rows are a multiple of 2048 bytes
/// apart, which share few lines of the cache; and for a transposed B of many columns. With fewer
/// columns it is as fast as these vectors, and A need not be packed. With AVX-512 it is a little
/// faster on a whole product and often slower on a transposed B. But it is called for many parts of
/// a large product (ProductCut), and packs the operands again in each: there these vectors are
/// faster.
bool isSlowElsewhere(const Product &product) {
  constexpr int64_t manyColumns = 256;
  constexpr double muchWork = 2e9;
  return product.a.transpose || (product.b.transpose ? product.n >= manyColumns : product.b.ld % 512 == 0) ||
         (bestWay(product.a.dtype, product.b.dtype) != &avx2 &&
          double(product.m) * double(product.n) * double(product.k) > muchWork);
}

/// Bytes that a step of B takes where it is stored: as many as a word, or less.
int64_t bytesOfStep(const VectorWay &way, const ConstMatrix &b) { return byteSize(b.dtype) * way.depthOfStep; }

/// The panels of B that are multiplied: packed before, or now.
struct RightPanels {
  const VectorWay &way;
  const Product &product;
  float *packed; ///< room for columnsAtOnce columns, depthAtOnce deep

  /// Columns column .. column+columns-1 at depths x .. x+depth-1, of which no panel is packed yet.
  void begin(int64_t column, int64_t columns, int64_t x, int64_t depth) const {
    const ConstMatrix &b = product.b;
    if (!b.packed)
      return way.packColumns(b, b.transpose, column, columns, x, depth, packed);
    const int64_t steps = way.stepsOf(depth);
    for (int64_t j = 0; j < columns; j += way.panelColumns) {
      const int64_t width = std::min(way.panelColumns, columns - j);
      if (isWide() && width == way.panelColumns)
        continue; // is multiplied where it lies
      float *const to = packed + j * steps;
      const ConstMatrix panel{stored(column + j, x, width), b.dtype};
      if (isWide())
        std::memcpy(to, panel.data, size_t(steps * width * wordBytes));
      else
        way.widenLines(panel, 0, 1, 0, steps * width * way.depthOfStep, to);
      // Panels that were packed before leave out the columns that are not there.
      for (int64_t step = steps - 1; step >= 0 && width < way.panelColumns; --step) {
        float *const row = to + step * way.panelColumns;
        std::memmove(row, to + step * width, size_t(width * wordBytes));
        std::fill(row + width, row + way.panelColumns, 0.0f);
      }
    }
  }
  const float *panel(int64_t column, int64_t j, int64_t columns, int64_t x, int64_t depth) const {
    if (product.b.packed && isWide() && columns - j >= way.panelColumns)
      return reinterpret_cast<const float *>(stored(column + j, x, way.panelColumns));
    return packed + j * way.stepsOf(depth);
  }
  /// The memory that is read after the block at `column`, of which each panel of the product prefetches a part: the
  /// part of panel `call` of `calls`. For a B that was packed before the run it is the panel read after the one at
  /// column + j: the next one, or that of the next block if blocks are widened first.
  Ahead ahead(int64_t column, int64_t j, int64_t x, int64_t depth, int64_t call, int64_t calls) const {
    const ConstMatrix &b = product.b;
    if (b.packed) {
      const int64_t panels = ceilDiv(std::min(columnsAtOnce, product.n - column), way.panelColumns),
                    panelsOfA = calls / panels, next = column + j + (isWide() ? way.panelColumns : columnsAtOnce),
                    bytes = ceilDiv(way.stepsOf(depth) * way.panelColumns * bytesOfStep(way, b), panelsOfA);
      return {stored(next, x, way.panelColumns) + call % panelsOfA * bytes, 0, bytes};
    }
    const int64_t columns = std::min(columnsAtOnce, product.n - column - columnsAtOnce), size = byteSize(b.dtype),
                  first = depth * call / calls, last = depth * (call + 1) / calls;
    if (columns <= 0 || first == last || last - first > way.mostLinesAhead)
      return {b.data};
    return {b.data + ((x + first) * b.ld + column + columnsAtOnce) * size, b.ld * size, columns * size, last - first};
  }

private:
  bool isWide() const { return bytesOfStep(way, product.b) == wordBytes; }
  /// The address of depth x of the packed panel at `column`, which has `width` columns; ld is the depth of all panels.
  const std::byte *stored(int64_t column, int64_t x, int64_t width) const {
    const ConstMatrix &b = product.b;
    return b.data + (column * b.ld + x * width) * byteSize(b.dtype);
  }
};

/// C of f32.
void multiplyWide(const Product &product, const VectorWay &way, float *left, float *right) {
  const auto &[m, n, k, a, b, c, accumulate, addToC, mayUseTiles] = product;
  if (b.transpose && !b.packed)
    return multiplyTransposed(product, way, left, right);
  const RightPanels panels{way, product, right};
  for (int64_t row = 0; row < m; row += rowsAtOnce)
    for (int64_t x = 0; x < k; x += depthAtOnce) {
      const int64_t rows = std::min(rowsAtOnce, m - row), depth = std::min(depthAtOnce, k - x),
                    steps = way.stepsOf(depth);
      const bool add = addToC || x > 0;
      way.packRows(a, !a.transpose, row, rows, x, depth, left);
      for (int64_t column = 0; column < n; column += columnsAtOnce) {
        const int64_t columns = std::min(columnsAtOnce, n - column);
        panels.begin(column, columns, x, depth);
        float *const to = reinterpret_cast<float *>(c.data) + row * c.ld + column;
        const int64_t panelsOfA = ceilDiv(rows, way.panelRows), calls = panelsOfA * ceilDiv(columns, way.panelColumns);
        int64_t call = 0;
        for (int64_t j = 0; j < columns; j += way.panelColumns)
          for (int64_t i = 0; i < rows; i += way.panelRows, ++call) {
            const int64_t height = std::min(way.panelRows, rows - i), width = columns - j;
            const float *const ofA = left + i * steps, *const ofB = panels.panel(column, j, columns, x, depth);
            if (width < way.panelColumns)
              multiplyNarrow(way, height, width, steps, ofA, ofB, add, to + i * c.ld + j, c.ld);
            else
              way.panels[height](steps, ofA, ofB, panels.ahead(column, j, x, depth, call, calls), add,
                                 to + i * c.ld + j, c.ld);
          }
      }
    }
}

template <typename T> HPC_AVX2 void widenRow(const T *from, int64_t count, float *to) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    Eight wide;
    Vectors<8>::load(from + j, wide);
    std::memcpy(to + j, &wide, sizeof(wide));
  }
  for (; j < count; ++j)
    to[j] = widen(from[j]);
}

template <typename T> HPC_AVX2 void roundRow(const float *from, int64_t count, T *to) {
  Eight wide = {};
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    Vectors<8>::load(from + j, wide);
    Vectors<8>::store(wide, to + j);
  }
  T last[8];
  std::copy_n(from + j, count - j, reinterpret_cast<float *>(&wide));
  Vectors<8>::store(wide, last);
  std::copy_n(last, count - j, to + j);
}

/// C of 16 bits: a part of its sums after the other, each of all of k.
template <typename T>
void multiplyRounded(const Product &product, const VectorWay &way, float *left, float *right, float *sums) {
  for (int64_t row = 0; row < product.m; row += rowsAtOnce)
    for (int64_t column = 0; column < product.n; column += columnsOfSums) {
      Product part = product;
      moveTo(part.a, row, 0);
      moveTo(part.b, 0, column);
      part.m = std::min(rowsAtOnce, product.m - row);
      part.n = std::min(columnsOfSums, product.n - column);
      T *const c = reinterpret_cast<T *>(product.c.data) + row * product.c.ld + column;
      for (int64_t i = 0; product.addToC && i < part.m; ++i)
        widenRow(c + i * product.c.ld, part.n, sums + i * columnsOfSums);
      part.c = {reinterpret_cast<std::byte *>(sums), DType::F32, columnsOfSums};
      multiplyWide(part, way, left, right);
      for (int64_t i = 0; i < part.m; ++i)
        roundRow(sums + i * columnsOfSums, part.n, c + i * product.c.ld);
    }
}

} // namespace

bool fitsVectors(const Product &product) {
  if (product.b.packed)
    return true;
  const bool isF32 = product.a.dtype == DType::F32 && product.b.dtype == DType::F32;
  return hasWay(product) && (!isF32 || isSlowElsewhere(product));
}

bool wantsPacked(const Product &product) {
  if (!hasWay(product))
    return false;
  const VectorWay &way = *bestWay(product.a.dtype, product.b.dtype);
  // Lines that are widened in any case are as fast as panels, and packing needs space for a second copy.
  const bool isAsGoodInLines = product.b.transpose && bytesOfStep(way, product.b) < wordBytes;
  return product.k % way.depthOfStep == 0 && !isAsGoodInLines;
}

/// A panel of numbers that keep their type, which has `Bytes` bytes.
template <typename Bytes>
static void orderPanel(const ConstMatrix &b, int64_t k, int64_t column, int64_t width, int64_t depthOfStep,
                       std::byte *place) {
  const Bytes *const from = reinterpret_cast<const Bytes *>(b.data) + column * (b.transpose ? b.ld : 1);
  Bytes *const to = reinterpret_cast<Bytes *>(place);
  const int64_t rowStride = b.transpose ? 1 : b.ld, columnStride = b.transpose ? b.ld : 1;
  for (int64_t x = 0; x < k; ++x) {
    Bytes *const row = to + x / depthOfStep * depthOfStep * width + x % depthOfStep;
    if (depthOfStep == 1 && columnStride == 1)
      std::copy_n(from + x * rowStride, width, row);
    else
      for (int64_t j = 0; j < width; ++j)
        row[j * depthOfStep] = from[x * rowStride + j * columnStride];
  }
}

void packVectors(const VectorWay &way, const ConstMatrix &b, int64_t k, int64_t n, int64_t first, int64_t last,
                 std::byte *to) {
  std::vector<float> whole;
  for (int64_t panel = first; panel < last; ++panel) {
    const int64_t column = panel * way.panelColumns, width = std::min(way.panelColumns, n - column);
    std::byte *const place = to + column * k * byteSize(b.dtype);
    if (bytesOfStep(way, b) < wordBytes) {
      byteSize(b.dtype) == 1 ? orderPanel<uint8_t>(b, k, column, width, way.depthOfStep, place)
                             : orderPanel<uint16_t>(b, k, column, width, way.depthOfStep, place);
      continue;
    }
    if (width == way.panelColumns) {
      way.packColumns(b, b.transpose, column, width, 0, k, reinterpret_cast<float *>(place));
      continue;
    }
    whole.resize(size_t(way.stepsOf(k) * way.panelColumns));
    way.packColumns(b, b.transpose, column, width, 0, k, whole.data());
    for (int64_t step = 0; step < way.stepsOf(k); ++step)
      std::memcpy(place + step * width * wordBytes, &whole[size_t(step * way.panelColumns)], size_t(width * wordBytes));
  }
}

int64_t vectorScratch(DType c) {
  return (leftNumbers + rightNumbers + (c == DType::F32 ? 0 : sumsNumbers)) * wordBytes + alignment;
}

void multiplyVectors(const Product &product, std::vector<std::byte> &scratch, const VectorWay *given) {
  scratch.resize(std::max(scratch.size(), size_t(vectorScratch(product.c.dtype))));
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(scratch.data()) % alignment;
  float *const left = reinterpret_cast<float *>(scratch.data() + (misaligned ? alignment - misaligned : 0)),
               *const right = left + leftNumbers, *const sums = right + rightNumbers;
  const VectorWay &way = given ? *given : *bestWay(product.a.dtype, product.b.dtype);
  switch (product.c.dtype) {
  case DType::BF16:
    return multiplyRounded<BFloat>(product, way, left, right, sums);
  case DType::F16:
    return multiplyRounded<_Float16>(product, way, left, right, sums);
  default:
    return multiplyWide(product, way, left, right);
  }
}

} // namespace hpc::host
