// Rows i, i + count, i + 2 count, ... of C are a matrix whose rows are `count` times as far apart, which is a multiple of
// 16 bytes; it begins `i * shift` columns to the right, at such a multiple. All these matrices are one batched product.
#include "runtime/backend/cuda/ProductPieces.h"

namespace hpc::cuda {

namespace {
constexpr int64_t bytesOfAccess = 16;
constexpr int64_t columnsOfAccess = 8;

/// Whether rows begin at multiples of an access.
bool isAligned(const plan::Operand &operand) {
  return operand.place.byteOffset % bytesOfAccess == 0 && operand.ld * byteSize(operand.dtype) % bytesOfAccess == 0;
}

struct Cut {
  const GemmCall &call;

  /// Rows and columns of C from here on.
  ProductPiece piece(int64_t row, int64_t column, int64_t rows, int64_t columns) const {
    const plan::Gemm &whole = call.plan;
    ProductPiece piece{whole, rows, columns, call.k,
                       {row * whole.a.ld * byteSize(whole.a.dtype), column * whole.b.ld * byteSize(whole.b.dtype),
                        (row * whole.c.ld + column) * byteSize(whole.c.dtype)}};
    piece.plan.m = rows;
    piece.plan.n = columns;
    piece.plan.batch.clear();
    plan::Operand *operands[] = {&piece.plan.a, &piece.plan.b, &piece.plan.c};
    for (size_t i = 0; i < 3; ++i) {
      operands[i]->stride.clear();
      operands[i]->place.byteOffset += piece.offset[i];
    }
    return piece;
  }
};
} // namespace

std::vector<ProductPiece> alignedPieces(const GemmCall &call, int64_t least) {
  const plan::Gemm &whole = call.plan;
  const auto [m, n, k] = std::array{call.m, call.n, call.k};
  int64_t batch = 1;
  for (int64_t size : whole.batch)
    batch *= size;
  const bool isOfKind = byteSize(whole.a.dtype) == 2 && byteSize(whole.b.dtype) == 2 && batch == 1 && !call.addToC &&
                        !call.epilogue && !whole.a.transpose && whole.b.transpose && k % columnsOfAccess == 0 &&
                        isAligned(whole.a) && isAligned(whole.b) && whole.c.place.byteOffset % bytesOfAccess == 0;
  const bool isSlow = n % columnsOfAccess != 0 || !isAligned(whole.c);
  if (!isOfKind || !isSlow || m <= 0 || n <= 0 || k <= 0 || least / 2 / m / n > k)
    return {};
  const int64_t unit = bytesOfAccess / byteSize(whole.c.dtype); // elements of an access
  int64_t count = 1;
  while (count * whole.c.ld % unit != 0)
    count *= 2;
  const int64_t shift = (unit - whole.c.ld % unit) % unit, most = (count - 1) * shift;
  const int64_t rows = m / count, columns = (n - most) / columnsOfAccess * columnsOfAccess;
  if (rows == 0 || columns < n / 2)
    return {};

  std::vector<ProductPiece> pieces;
  const Cut cut{call};
  if (most > 0)
    pieces.push_back(cut.piece(0, 0, m, most));
  if (columns < n)
    pieces.push_back(cut.piece(0, columns, m, n - columns));
  if (rows * count < m)
    pieces.push_back(cut.piece(rows * count, 0, m - rows * count, n));
  ProductPiece &inner = pieces.emplace_back(cut.piece(0, 0, rows, columns));
  inner.plan.batch = {count};
  inner.plan.a.stride = {whole.a.ld};
  inner.plan.b.stride = {shift * whole.b.ld};
  inner.plan.c.stride = {whole.c.ld + shift};
  inner.plan.a.ld *= count;
  inner.plan.c.ld *= count;
  return pieces;
}

} // namespace hpc::cuda
