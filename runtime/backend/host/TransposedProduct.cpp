// A transposed B needs no packing: its columns are rows in memory, and a number of one is multiplied with sixteen rows
// of A, which lie beside each other; twelve vectors hold the sums of six columns.
#include "runtime/backend/host/VectorPanels.h"
#include "runtime/base/IntegerMath.h"

namespace hpc::host::vectors {

namespace {

constexpr int panelRows = 2 * lanes;
constexpr int64_t groupColumns = 6;
/// What is packed of A for so many rows lies in L2, beside the columns of a block and those of the next one.
constexpr int64_t rowsOfBlock = 64, columnsOfBlock = 4 * groupColumns;
static_assert(rowsAtOnce % panelRows == 0 && rowsOfBlock % panelRows == 0 && columnsOfBlock <= columnsAtOnce);

/// `count` lines of B that are read soon, `ld` bytes apart: they are asked for one after the other, `step` bytes with
/// each step of k.
struct LinesAhead {
  const std::byte *from = nullptr;
  int64_t ld = 0, step = 0, count = 1;
};

/// c[rows, columns], rows `ldc` apart, = or += a panel of A, of whose rows 1 .. vectors * lanes are there, times lines
/// of B.
template <int columns, int vectors>
HPC_AVX2 void multiplyLines(int64_t depth, const float *a, const float *b, int64_t ldb, LinesAhead ahead, bool add,
                            float *c, int64_t ldc, int64_t rows) {
  askForRows(c, ldc, rows);
  Float sums[columns][vectors] = {};
  if (add)
    for (int64_t i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        sums[j][i / lanes][i % lanes] = c[i * ldc + j];
  int64_t x = 0;
  for (int64_t line = 1; line <= ahead.count; ++line) {
    const std::byte *soon = ahead.from + (line - 1) * ahead.ld;
    const int64_t end = depth * line / ahead.count;
    HPC_ALIGNED for (; x < end; ++x, soon += ahead.step) {
      Float left[vectors];
      std::memcpy(left, a + x * panelRows, sizeof(left));
      __builtin_prefetch(soon, 0, 2);
      for (int j = 0; j < columns; ++j)
        for (int i = 0; i < vectors; ++i)
          sums[j][i] = __builtin_elementwise_fma(left[i], Float(b[j * ldb + x]), sums[j][i]);
    }
  }
  for (int vector = 0; vector < vectors; ++vector) {
    Float lines[lanes] = {};
    for (int j = 0; j < columns; ++j)
      lines[j] = sums[j][vector];
    transpose(lines);
    for (int64_t i = vector * lanes; i < std::min<int64_t>(rows, (vector + 1) * lanes); ++i)
      std::memcpy(c + i * ldc, &lines[i % lanes], columns * sizeof(float));
  }
}

using MultiplyLines = void (*)(int64_t, const float *, const float *, int64_t, LinesAhead, bool, float *, int64_t,
                               int64_t);
template <int vectors>
constexpr MultiplyLines ofColumns[groupColumns + 1] = {nullptr,
                                                       multiplyLines<1, vectors>,
                                                       multiplyLines<2, vectors>,
                                                       multiplyLines<3, vectors>,
                                                       multiplyLines<4, vectors>,
                                                       multiplyLines<5, vectors>,
                                                       multiplyLines<6, vectors>};

struct Lines {
  const float *data;
  int64_t ld;
};

template <typename T>
HPC_AVX2 Lines widened(const std::byte *from, int64_t ld, int64_t columns, int64_t depth, float *room) {
  for (int64_t j = 0; j < columns; ++j) {
    const T *const line = reinterpret_cast<const T *>(from) + j * ld;
    float *const to = room + j * depth;
    int64_t x = 0;
    for (; x + lanes <= depth; x += lanes) {
      Float wide;
      Vectors<lanes>::load(line + x, wide);
      std::memcpy(to + x, &wide, sizeof(wide));
    }
    for (; x < depth; ++x)
      to[x] = widen(line[x]);
  }
  return {room, depth};
}

/// Columns of B as lines of f32: where they lie, or widened to `room`.
Lines linesOf(const ConstMatrix &b, int64_t column, int64_t columns, int64_t x, int64_t depth, float *room) {
  const std::byte *const from = b.data + (column * b.ld + x) * byteSize(b.dtype);
  switch (b.dtype) {
  case DType::BF16:
    return widened<BFloat>(from, b.ld, columns, depth, room);
  case DType::F16:
    return widened<_Float16>(from, b.ld, columns, depth, room);
  case DType::I8:
    return widened<int8_t>(from, b.ld, columns, depth, room);
  default:
    return {reinterpret_cast<const float *>(from), b.ld};
  }
}

/// What panel i of `panels` asks for of the same group of columns, at column `column`, in the next block. Where there
/// is nothing to ask for it is a line that is there: address 0 would be looked for in the page tables at each step.
LinesAhead linesAhead(const Product &product, int64_t column, int64_t x, int64_t i, int64_t panels) {
  const ConstMatrix &b = product.b;
  const int64_t lines = ceilDiv(groupColumns, panels), first = column + columnsOfBlock + i * lines;
  const int64_t bytes = byteSize(b.dtype), end = std::min(column + columnsOfBlock + groupColumns, product.n);
  const int64_t count = std::min(end - first, lines);
  if (count <= 0)
    return {b.data};
  return {b.data + (first * b.ld + x) * bytes, b.ld * bytes, bytes * count, count};
}

} // namespace

void multiplyTransposed(const Product &product, float *left, float *right) {
  const auto &[m, n, k, a, b, c, accumulate, addToC, mayUseTiles] = product;
  for (int64_t firstRow = 0; firstRow < m; firstRow += rowsAtOnce)
    for (int64_t x = 0; x < k; x += depthAtOnce) {
      const int64_t rows = std::min(rowsAtOnce, m - firstRow), depth = std::min(depthAtOnce, k - x);
      const bool add = addToC || x > 0;
      pack<panelRows>(a, !a.transpose, firstRow, rows, x, depth, left);
      for (int64_t column = 0; column < n; column += columnsOfBlock) {
        const int64_t columns = std::min(columnsOfBlock, n - column);
        const Lines lines = linesOf(b, column, columns, x, depth, right);
        for (int64_t block = 0; block < rows; block += rowsOfBlock) {
          const int64_t blockEnd = std::min(block + rowsOfBlock, rows), panels = ceilDiv(blockEnd - block, panelRows);
          for (int64_t j = 0; j < columns; j += groupColumns)
            for (int64_t i = block; i < blockEnd; i += panelRows) {
              const int64_t width = std::min(groupColumns, columns - j),
                            height = std::min<int64_t>(panelRows, rows - i);
              const LinesAhead ahead =
                  block > 0 ? LinesAhead{b.data} : linesAhead(product, column + j, x, i / panelRows, panels);
              float *const to = reinterpret_cast<float *>(c.data) + (firstRow + i) * c.ld + column + j;
              const MultiplyLines multiply = height > lanes ? ofColumns<2>[width] : ofColumns<1>[width];
              multiply(depth, &left[i * depth], &lines.data[j * lines.ld], lines.ld, ahead, add, to, c.ld, height);
            }
        }
      }
    }
}

} // namespace hpc::host::vectors
