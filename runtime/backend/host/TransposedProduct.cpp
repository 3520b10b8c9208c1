// A transposed B needs no packing: its columns are rows in memory, and a step of one is multiplied with as many rows of
// A as two vectors hold, which lie beside each other.
#include "runtime/backend/host/VectorProduct.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::host::vectors {

namespace {

/// The packed rows of A fit into L2, beside the columns of a block and those of the next one.
constexpr int64_t rowsOfBlock = 64, groupsOfBlock = 4;
static_assert(rowsOfBlock % mostPanelRows == 0 && rowsAtOnce % rowsOfBlock == 0);

struct Lines {
  const float *data;
  int64_t ld; ///< steps
};

/// Columns of B as lines of steps: where they lie, or widened to `room`. Pairs of bf16 lie there where whole pairs are
/// from one line to the next and in the depth.
Lines linesOf(const VectorWay &way, const ConstMatrix &b, int64_t column, int64_t columns, int64_t x, int64_t depth,
              float *room) {
  const bool isAsItIs = byteSize(b.dtype) * way.depthOfStep == int64_t(sizeof(float)) && b.ld % way.depthOfStep == 0 &&
                        depth % way.depthOfStep == 0;
  if (isAsItIs)
    return {reinterpret_cast<const float *>(b.data + (column * b.ld + x) * byteSize(b.dtype)), b.ld / way.depthOfStep};
  way.widenLines(b, column, columns, x, depth, room);
  return {room, way.stepsOf(depth)};
}

/// The part of the next block's group of columns, for columns from `column` on, that panel i of `panels` prefetches.
Ahead linesAhead(const VectorWay &way, const Product &product, int64_t column, int64_t x, int64_t i, int64_t panels) {
  const auto &[m, n, k, a, b, c, accumulate, addToC, mayUseTiles] = product;
  const int64_t columnsOfBlock = groupsOfBlock * way.lineColumns;
  const int64_t lines = ceilDiv(way.lineColumns, panels), first = column + columnsOfBlock + i * lines;
  const int64_t bytes = byteSize(b.dtype), end = std::min(column + columnsOfBlock + way.lineColumns, n);
  const int64_t count = std::min(end - first, lines);
  if (count <= 0)
    return {b.data};
  return {b.data + (first * b.ld + x) * bytes, b.ld * bytes, std::min(depthAtOnce, k - x) * bytes, count};
}

} // namespace

void multiplyTransposed(const Product &product, const VectorWay &way, float *left, float *right) {
  const auto &[m, n, k, a, b, c, accumulate, addToC, mayUseTiles] = product;
  const int64_t columnsOfBlock = groupsOfBlock * way.lineColumns, panelRows = way.panelColumns;
  for (int64_t firstRow = 0; firstRow < m; firstRow += rowsAtOnce)
    for (int64_t x = 0; x < k; x += depthAtOnce) {
      const int64_t rows = std::min(rowsAtOnce, m - firstRow), depth = std::min(depthAtOnce, k - x),
                    steps = way.stepsOf(depth);
      const bool add = addToC || x > 0;
      way.packColumns(a, !a.transpose, firstRow, rows, x, depth, left);
      for (int64_t column = 0; column < n; column += columnsOfBlock) {
        const int64_t columns = std::min(columnsOfBlock, n - column);
        const Lines lines = linesOf(way, b, column, columns, x, depth, right);
        for (int64_t block = 0; block < rows; block += rowsOfBlock) {
          const int64_t blockEnd = std::min(block + rowsOfBlock, rows), panels = ceilDiv(blockEnd - block, panelRows);
          for (int64_t j = 0; j < columns; j += way.lineColumns)
            for (int64_t i = block; i < blockEnd; i += panelRows) {
              const int64_t width = std::min(way.lineColumns, columns - j), height = std::min(panelRows, rows - i);
              const Ahead ahead =
                  block > 0 ? Ahead{b.data} : linesAhead(way, product, column + j, x, i / panelRows, panels);
              float *const to = reinterpret_cast<float *>(c.data) + (firstRow + i) * c.ld + column + j;
              way.lines[height > way.lanes ? 2 : 1][width](steps, &left[i * steps], &lines.data[j * lines.ld], lines.ld,
                                                           ahead, add, to, c.ld, height);
            }
        }
      }
    }
}

} // namespace hpc::host::vectors
