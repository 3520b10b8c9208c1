// Matrix products. Every element is summed over k in order, in double (or, where asked for, in f32), whatever the
// blocking and however the operands are stored, so that a cut of m or n changes no bit of it.
#include "compiler/Interpreter/Evaluators.h"

#include "llvm/Support/Parallel.h"

namespace hpc::interpreter {

namespace {
/// A tile of the result, small enough that its sums stay in registers.
constexpr int64_t tileRows = 2, tileColumns = 8;

/// One matrix inside a batched operand.
struct Matrix {
  const double *data;
  int64_t rowStride, columnStride;
};

/// `rows` rows of lhs from `row` times a packed panel [k, tileColumns], into result rows of width n; `width` columns
/// count. Real is what sums are kept in.
template <int64_t rows, typename Real>
void multiplyTile(const Matrix &lhs, int64_t row, const Real *panel, int64_t k, double *result, int64_t n,
                  int64_t width) {
  Real sums[rows][tileColumns] = {};
  const double *left = lhs.data + row * lhs.rowStride;
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < tileColumns; ++j)
        sums[i][j] += Real(left[i * lhs.rowStride + p * lhs.columnStride]) * panel[p * tileColumns + j];
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(sums[i], width, result + (row + i) * n);
}

/// result[m, n] = lhs[m, k] rhs[k, n]. Threads share the tiles of a large product.
template <typename Real>
void multiply(const Matrix &lhs, const Matrix &rhs, double *result, int64_t m, int64_t k, int64_t n,
              std::vector<Real> &panels) {
  constexpr int64_t rowsOfBlock = 64, panelsAtOnce = 16, fewestTerms = 1 << 20; // of a product that is worth a thread
  const int64_t rows = llvm::divideCeil(m, rowsOfBlock), columns = llvm::divideCeil(n, tileColumns);
  panels.resize(size_t(std::min(panelsAtOnce, columns) * k * tileColumns));
  for (int64_t start = 0; start < columns; start += panelsAtOnce) {
    const int64_t count = std::min(panelsAtOnce, columns - start);
    auto widthOf = [&](int64_t panel) { return std::min(tileColumns, n - (start + panel) * tileColumns); };
    for (int64_t panel = 0; panel < count; ++panel)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < tileColumns; ++j)
          panels[(panel * k + p) * tileColumns + j] =
              Real(j < widthOf(panel) ? rhs.data[p * rhs.rowStride + ((start + panel) * tileColumns + j) * rhs.columnStride] : 0.0);
    auto multiplyBlock = [&](size_t block) {
      const int64_t panel = int64_t(block) % count, width = widthOf(panel);
      const Real *packed = panels.data() + panel * k * tileColumns;
      double *to = result + (start + panel) * tileColumns;
      int64_t row = int64_t(block) / count * rowsOfBlock, end = std::min(row + rowsOfBlock, m);
      for (; row + tileRows <= end; row += tileRows)
        multiplyTile<tileRows>(lhs, row, packed, k, to, n, width);
      for (; row < end; ++row)
        multiplyTile<1>(lhs, row, packed, k, to, n, width);
    };
    const size_t blocks = size_t(count * rows);
    if (k > 0 && m * n >= fewestTerms / k)
      llvm::parallelFor(0, blocks, multiplyBlock);
    else
      for (size_t block = 0; block < blocks; ++block)
        multiplyBlock(block);
  }
}

template <typename Real> Tensor product(nn::MatmulOp op, const Tensor &lhs, const Tensor &rhs) {
  Tensor result = emptyLike(op.getResult());
  ArrayRef<int64_t> lhsShape = lhs.shape, rhsShape = rhs.shape, shape = result.shape;
  int64_t m = shape[shape.size() - 2], n = shape.back();
  int64_t k = op.getTransposeLhs() ? lhsShape[lhsShape.size() - 2] : lhsShape.back();
  Matrix left{nullptr, op.getTransposeLhs() ? 1 : k, op.getTransposeLhs() ? m : 1};
  Matrix right{nullptr, op.getTransposeRhs() ? 1 : n, op.getTransposeRhs() ? k : 1};
  ArrayRef<int64_t> batch = shape.drop_back(2);
  std::vector<Real> panels;
  if (elementCount(rhsShape.drop_back(2)) == 1 && !op.getTransposeLhs() &&
      elementCount(lhsShape) == elementCount(batch) * m * k) {
    // One rhs for all: the batch only adds rows.
    left.data = lhs.floats.data();
    right.data = rhs.floats.data();
    multiply(left, right, result.floats.data(), elementCount(batch) * m, k, n, panels);
    return result;
  }
  // Offsets of matrices count in matrices: strides of the batch shapes times the size of a matrix.
  std::array<SmallVector<int64_t>, 2> strides = {broadcastStrides(lhsShape.drop_back(2), batch),
                                                 broadcastStrides(rhsShape.drop_back(2), batch)};
  forEachElement<2>(batch, strides, {0, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
    left.data = lhs.floats.data() + at[0] * m * k;
    right.data = rhs.floats.data() + at[1] * k * n;
    multiply(left, right, result.floats.data() + i * m * n, m, k, n, panels);
  });
  return result;
}
} // namespace

Tensor asFloats(const Tensor &integers) {
  Tensor floats(DType::F32, integers.shape);
  floats.floats.assign(integers.ints.begin(), integers.ints.end());
  return floats;
}

static Results evaluateMatmul(nn::MatmulOp op, Operands operands, const EvalOptions &options) {
  const Tensor &lhs = *operands[0];
  Tensor codes = operands[1]->dtype == DType::I8 ? asFloats(*operands[1]) : Tensor();
  const Tensor &rhs = operands[1]->dtype == DType::I8 ? codes : *operands[1];
  if (!lhs.isFloat() || !rhs.isFloat())
    return Status::error(ErrorKind::Unsupported,
                         describeOp(op) + " of " + name(lhs.dtype) + ": matrix products take floats only");
  return one(sumsInSingle(options, dtypeOf(op.getType())) ? product<float>(op, lhs, rhs) : product<double>(op, lhs, rhs));
}

void addContractions(Evaluators &evaluators) { evaluators.add<nn::MatmulOp>(evaluateMatmul); }

} // namespace hpc::interpreter
