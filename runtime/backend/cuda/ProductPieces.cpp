// Rows i, i + count, i + 2 count, ... of a matrix are a matrix whose rows are `count` times as far apart, which is a
// multiple of 16 bytes; from column i * shift on they begin at such a multiple. What lies before it is an edge.
#include "runtime/backend/cuda/ProductPieces.h"

namespace hpc::cuda {

namespace {
constexpr int64_t bytesOfAccess = 16;
constexpr int64_t columnsOfAccess = 8;

/// The beginning of a part, and its size in each dim.
struct Range {
  int64_t row, column, step; ///< of C, of C, of the sum
  int64_t rows, columns, steps;
};

struct Cut {
  const GemmCall &call;
  const plan::Gemm &whole = call.plan;
  int64_t count = 1, shift = 0; ///< of the matrix with odd rows
  std::vector<ProductPiece> pieces = {};

  static bool isAligned(const plan::Operand &operand) {
    return operand.place.byteOffset % bytesOfAccess == 0 && operand.ld * byteSize(operand.dtype) % bytesOfAccess == 0;
  }
  /// The largest column at which rows begin.
  int64_t edge() const { return (count - 1) * shift; }
  static int64_t inAccesses(int64_t size) { return size / columnsOfAccess * columnsOfAccess; }

  void findRowsOf(const plan::Operand &operand) {
    const int64_t unit = bytesOfAccess / byteSize(operand.dtype);
    while (count * operand.ld % unit != 0)
      count *= 2;
    shift = (unit - operand.ld % unit) % unit;
  }
  plan::Gemm &add(const Range &r, bool addToC) {
    auto offset = [](const plan::Operand &operand, int64_t row, int64_t column) {
      return (operand.transpose ? column * operand.ld + row : row * operand.ld + column) * byteSize(operand.dtype);
    };
    ProductPiece piece{whole, r.rows, r.columns, r.steps, addToC,
                       {offset(whole.a, r.row, r.step), offset(whole.b, r.step, r.column), offset(whole.c, r.row, r.column)}};
    piece.plan.m = r.rows;
    piece.plan.n = r.columns;
    piece.plan.k = r.steps;
    piece.plan.addToC = int64_t(addToC);
    piece.plan.batch.clear();
    plan::Operand *operands[] = {&piece.plan.a, &piece.plan.b, &piece.plan.c};
    for (size_t i = 0; i < 3; ++i) {
      operands[i]->stride.clear();
      operands[i]->place.byteOffset += piece.offset[i];
    }
    return pieces.emplace_back(std::move(piece)).plan;
  }

  /// C has odd rows: those of one kind are a member of a batch. The edges are computed for all rows before.
  void alongResult() {
    const auto [m, n, k] = std::array{call.m, call.n, call.k};
    findRowsOf(whole.c);
    const int64_t rows = m / count, columns = inAccesses(n - edge());
    if (call.addToC || rows == 0 || columns < n / 2)
      return;
    if (edge() > 0)
      add({0, 0, 0, m, edge(), k}, false);
    if (columns < n)
      add({0, columns, 0, m, n - columns, k}, false);
    if (rows * count < m)
      add({rows * count, 0, 0, m - rows * count, n, k}, false);
    plan::Gemm &inner = add({0, 0, 0, rows, columns, k}, false);
    inner.batch = {count};
    inner.a.stride = {whole.a.ld};
    inner.b.stride = {shift * whole.b.ld};
    inner.c.stride = {whole.c.ld + shift};
    inner.a.ld *= count;
    inner.c.ld *= count;
  }

  /// A has odd rows, which are summed along: likewise, and the edges are added.
  void alongSum() {
    const auto [m, n, k] = std::array{call.m, call.n, call.k};
    findRowsOf(whole.a);
    const int64_t rows = m / count, steps = inAccesses(k - edge());
    if (rows == 0 || steps < k / 2)
      return;
    if (rows * count < m)
      add({rows * count, 0, 0, m - rows * count, n, k}, call.addToC);
    plan::Gemm &inner = add({0, 0, 0, rows, n, steps}, call.addToC);
    inner.batch = {count};
    inner.a.stride = {whole.a.ld + shift};
    inner.b.stride = {shift * whole.b.ld};
    inner.c.stride = {whole.c.ld};
    inner.a.ld *= count;
    inner.c.ld *= count;
    for (int64_t i = 0; i < count; ++i)
      for (auto [first, last] : {std::pair(int64_t(0), i * shift), {i * shift + steps, k}})
        if (first < last) {
          plan::Gemm &piece = add({i, 0, first, rows, n, last - first}, true);
          piece.a.ld *= count;
          piece.c.ld *= count;
        }
  }

  /// A is transposed and has odd rows, over which is summed: those of one kind after the other.
  void overSum() {
    const auto [m, n, k] = std::array{call.m, call.n, call.k};
    findRowsOf(whole.a);
    if (k < count || edge() > m / 2)
      return;
    for (int64_t i = 0; i < count; ++i)
      for (auto [first, last] : {std::pair(int64_t(0), i * shift), {i * shift, m}})
        if (first < last) {
          plan::Gemm &piece = add({first, 0, i, last - first, n, (k - i + count - 1) / count}, call.addToC || i > 0);
          piece.a.ld *= count;
          piece.b.ld *= count;
        }
  }
};
} // namespace

std::vector<ProductPiece> alignedPieces(const GemmCall &call, int64_t least) {
  const plan::Gemm &whole = call.plan;
  const auto [m, n, k] = std::array{call.m, call.n, call.k};
  int64_t batch = 1;
  for (int64_t size : whole.batch)
    batch *= size;
  if (byteSize(whole.a.dtype) != 2 || byteSize(whole.b.dtype) != 2 || batch != 1 || call.epilogue || m <= 0 || n <= 0 ||
      k <= 0 || least / 2 / m / n > k)
    return {};
  for (const plan::Operand *operand : {&whole.a, &whole.b, &whole.c})
    for (int64_t offset : operand->offset.values)
      if ((operand->place.byteOffset + offset) % bytesOfAccess != 0)
        return {};
  Cut cut{call};
  const bool isA = Cut::isAligned(whole.a), isB = Cut::isAligned(whole.b);
  const bool isC = Cut::isAligned(whole.c) && n % columnsOfAccess == 0;
  const bool isSum = k % columnsOfAccess == 0, addsInF32 = whole.c.dtype == DType::F32;
  if (!isC && isA && isB && isSum && !whole.a.transpose && whole.b.transpose)
    cut.alongResult();
  else if (isC && isB && !whole.b.transpose && addsInF32 && !whole.a.transpose && (!isA || !isSum))
    cut.alongSum();
  else if (isC && isB && !whole.b.transpose && addsInF32 && whole.a.transpose && !isA)
    cut.overSum();
  return std::move(cut.pieces);
}

} // namespace hpc::cuda
