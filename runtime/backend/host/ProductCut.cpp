// The cost of a part: its multiply-adds, and its operands, which are read and packed for it alone.
#include "runtime/backend/host/ProductCut.h"

#include "runtime/base/IntegerMath.h"

#include <algorithm>

namespace hpc::host {

namespace {

/// Multiply-adds that take as long as packing an element of A or B (measured).
constexpr double packing = 32;
/// Parts of a cut by shape with less work are not cut further.
constexpr double leastWork = 8e6;
/// Work of which a sleeping helper misses half before it has woken.
constexpr double leastShared = 4e6;
/// Units of rows and of columns that all ways compute without waste.
constexpr int64_t rowUnit = 32, columnUnit = 64;
/// TileProduct packs B once for so many rows of A.
constexpr double rowsAtOnce = 256;

ProductCut cutOf(int64_t products, int64_t m, int64_t n, int64_t rows, int64_t columns) {
  return {products, rows, columns, rows ? ceilDiv(m, rows) : 0, columns ? ceilDiv(n, columns) : 0};
}

double workOf(double m, double n, double k) { return m * n * k + packing * (m * k + k * n + m * n); }

} // namespace

ProductPart partOf(const ProductCut &cut, int64_t m, int64_t n, int64_t index) {
  const int64_t perProduct = cut.rowParts * cut.columnParts, within = index % perProduct;
  ProductPart part;
  part.product = index / perProduct;
  part.row = within / cut.columnParts * cut.rows;
  part.column = within % cut.columnParts * cut.columns;
  part.rows = std::min(cut.rows, m - part.row);
  part.columns = std::min(cut.columns, n - part.column);
  return part;
}

ProductCut cutByShape(int64_t products, int64_t m, int64_t n, int64_t k) {
  constexpr double fewParts = 16, mostParts = 64;
  const double work = workOf(double(m), double(n), double(k)), all = work * double(std::max<int64_t>(products, 1));
  // More than a few where each is still many milliseconds of work.
  const double wanted = std::max(std::min(fewParts, all / leastWork), std::min(mostParts, all / (fewParts * leastWork)));
  int64_t rows = m, columns = n;
  auto count = [&] { return double(products) * double(ceilDiv(m, rows)) * double(ceilDiv(n, columns)); };
  while (rows > 0 && columns > 0 && count() * 2 <= wanted) {
    // The longer side: the packing of a part grows with its rim.
    if (columns > columnUnit && (columns >= rows || rows <= rowUnit))
      columns = roundUp(ceilDiv(columns, 2), columnUnit);
    else if (rows > rowUnit)
      rows = roundUp(ceilDiv(rows, 2), rowUnit);
    else
      break;
  }
  return cutOf(products, m, n, rows, columns);
}

bool paysForThreads(int64_t products, int64_t m, int64_t n, int64_t k) {
  return workOf(double(m), double(n), double(k)) * double(products) >= leastShared;
}

ProductCut cutByThreads(int64_t products, int64_t m, int64_t n, int64_t k, int64_t threads) {
  ProductCut best = cutOf(products, m, n, m, n);
  if (threads == 1 || best.parts() == 0 || !paysForThreads(products, m, n, k))
    return best;
  auto seconds = [&](const ProductCut &cut) {
    const double rows = double(cut.rows), columns = double(cut.columns), depth = double(k);
    const double packed = rows * depth + columns * depth * double(ceilDiv(cut.rows, int64_t(rowsAtOnce)));
    return double(ceilDiv(cut.parts(), threads)) * (rows * columns * depth + packing * packed);
  };
  double least = seconds(best);
  for (int64_t rowParts = 1; rowParts <= std::min(4 * threads, ceilDiv(m, rowUnit)); ++rowParts)
    for (int64_t columnParts = 1; columnParts <= std::min(4 * threads, ceilDiv(n, columnUnit)); ++columnParts) {
      const ProductCut cut = cutOf(products, m, n, roundUp(ceilDiv(m, rowParts), rowUnit),
                                   roundUp(ceilDiv(n, columnParts), columnUnit));
      if (double cost = seconds(cut); cost < least) {
        least = cost;
        best = cut;
      }
    }
  return best;
}

} // namespace hpc::host
