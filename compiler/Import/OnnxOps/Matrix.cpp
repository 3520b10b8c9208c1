// Determinants and sampling grids: small matrices, worked out step by step in the program.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

namespace hpc::onnx {
namespace {

constexpr int64_t maxDeterminant = 32; // each step is some twenty ops

/// Rows begin..begin+count-1 and columns from `column` on of [..., m, m].
Value block(NodeImport &n, Value x, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  size_t last = sizes.size() - 1;
  starts[last - 1] = row, sizes[last - 1] = rows;
  starts[last] = column, sizes[last] = columns;
  return n.b.slice(x, starts, steps, sizes);
}

/// Gaussian elimination with row pivots, a step for each row: the product of the pivots, negated for every exchange.
Results determinant(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> shape = n.b.shape(x);
  size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2] || !isFloat(n.b.dtype(x)))
    return {n.b.fail("its input must be square matrices of floats")};
  int64_t size = shape.back(), row = int64_t(rank) - 2;
  if (size > maxDeterminant)
    return {n.unsupported("a determinant of " + countText(size, "row") + "; at most " + std::to_string(maxDeterminant) +
                          " are unrolled")};
  shape.resize(rank - 2);
  if (size == 0)
    return {n.b.broadcast(n.b.scalar(1, x), shape)};
  Value result;
  for (int64_t left = size; left > 0 && n.b.status().ok(); --left) {
    Value column = block(n, x, 0, left, 0, 1), position = countAlong(n, int64_t(rank), row, left);
    // The largest of the first column, by its first position; a NaN is the largest.
    Value magnitude = n.b.unary<nn::AbsOp>(column);
    Value top = n.b.reduce(ReduceKind::Max, magnitude, {row});
    Value isTop =
        n.b.binary<nn::OrOp>(n.b.compare(nn::ComparePredicate::eq, magnitude, top), n.b.unary<nn::IsNanOp>(magnitude));
    Value which = n.b.reduce(ReduceKind::Min, n.b.select(isTop, position, n.b.scalar(double(left), position)), {row});
    Value isPivot = n.b.compare(nn::ComparePredicate::eq, position, which);
    Value pivotRow = n.b.reduce(ReduceKind::Sum, n.b.select(isPivot, x, n.b.scalar(0, x)), {row});
    Value pivot = block(n, pivotRow, 0, 1, 0, 1);
    Value wasFirst = n.b.compare(nn::ComparePredicate::eq, which, n.b.scalar(0, which));
    Value factor = n.b.select(wasFirst, pivot, n.b.unary<nn::NegOp>(pivot));
    result = result ? n.b.mul(result, factor) : factor;
    if (left == 1)
      break;
    // The first row replaces the pivot's row; after a pivot of 0 the result is 0 whatever the rows are.
    Value exchanged = n.b.select(isPivot, block(n, x, 0, 1, 0, left), x);
    Value divisor =
        n.b.select(n.b.compare(nn::ComparePredicate::eq, pivot, n.b.scalar(0, pivot)), n.b.scalar(1, pivot), pivot);
    Value ratio = n.b.div(block(n, exchanged, 1, left - 1, 0, 1), divisor);
    x = n.b.sub(block(n, exchanged, 1, left - 1, 1, left - 1), n.b.mul(ratio, block(n, pivotRow, 0, 1, 1, left - 1)));
  }
  return {n.b.reshape(result, shape)};
}

/// theta [N, 2, 3] or [N, 3, 4] and size (N, C, (D,) H, W): where each point of the output lies in the input, from -1
/// to 1.
Results affineGrid(NodeImport &n) {
  Value theta = n.in(0);
  SmallVector<int64_t> size = n.b.integers(n.in(1), "size"), shape = n.b.shape(theta);
  bool corners = n.integer("align_corners", 0);
  int64_t dims = int64_t(size.size()) - 2;
  if (!n.b.status().ok())
    return {theta};
  if (!isFloat(n.b.dtype(theta)))
    return {n.b.fail(std::string("its theta is ") + name(n.b.dtype(theta)) + "; positions are floats")};
  if ((dims != 2 && dims != 3) || shape != SmallVector<int64_t>{size[0], dims, dims + 1})
    return {n.b.fail("its theta must be [N, 2, 3] with a size of 4 numbers, or [N, 3, 4] with 5")};
  ArrayRef<int64_t> space = ArrayRef<int64_t>(size).drop_front(2);
  if (llvm::any_of(space, [](int64_t each) { return each < 1; }))
    return {n.b.fail("its size must be 1 or more along every dim of space")};
  int64_t points = elementCount(space);
  if (Status status = checkFolded(elementCount({points, dims + 1})); !status.ok())
    return {n.unsupported(status.message())};
  // Homogeneous coordinates (x, y, (z,) 1) of every point; x runs along the last dim.
  Tensor grid(n.b.dtype(theta), {points, dims + 1});
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point;
    for (int64_t axis = 0; axis < dims; ++axis) {
      int64_t count = space[size_t(dims - 1 - axis)], at = rest % count;
      rest /= count;
      double place = corners ? (count == 1 ? -1 : -1 + 2.0 * double(at) / double(count - 1))
                             : (2.0 * double(at) + 1) / double(count) - 1;
      grid.floats[size_t(point * (dims + 1) + axis)] = place;
    }
    grid.floats[size_t(point * (dims + 1) + dims)] = 1;
  }
  round(grid);
  SmallVector<int64_t> result = {size[0]};
  llvm::append_range(result, space);
  result.push_back(dims);
  Value base = n.b.broadcast(n.b.known(std::move(grid)), {size[0], points, dims + 1});
  return {n.b.reshape(n.b.matmul(base, theta, false, true), result)};
}

const OnnxOp matrixTable[] = {{"Det", 11, inF32<determinant>}, {"AffineGrid", 20, affineGrid}};

} // namespace

ArrayRef<OnnxOp> matrixOps() { return matrixTable; }

} // namespace hpc::onnx
