// Matrix products. Every element is summed over k in order, in double, whatever the blocking and however the operands
// are stored, so that a cut of m or n changes no bit of it.
#include "compiler/Interpreter/Evaluators.h"

namespace hpc::interpreter {

namespace {
constexpr int64_t panelWidth = 64;

/// One matrix inside a batched operand.
struct Matrix {
  const double *data;
  int64_t rowStride, columnStride;
};

/// result[m, n] = lhs[m, k] rhs[k, n]; n is taken in panels of rhs that are packed to [k, panelWidth].
void multiply(const Matrix &lhs, const Matrix &rhs, double *result, int64_t m, int64_t k, int64_t n,
              std::vector<double> &panel) {
  panel.resize(k * panelWidth);
  for (int64_t first = 0; first < n; first += panelWidth) {
    int64_t width = std::min(panelWidth, n - first);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < panelWidth; ++j)
        panel[p * panelWidth + j] = j < width ? rhs.data[p * rhs.rowStride + (first + j) * rhs.columnStride] : 0.0;
    for (int64_t i = 0; i < m; ++i) {
      double sums[panelWidth] = {};
      for (int64_t p = 0; p < k; ++p) {
        double left = lhs.data[i * lhs.rowStride + p * lhs.columnStride];
        const double *right = panel.data() + p * panelWidth;
        for (int64_t j = 0; j < panelWidth; ++j)
          sums[j] += left * right[j];
      }
      std::copy_n(sums, width, result + i * n + first);
    }
  }
}
} // namespace

static Results evaluateMatmul(nn::MatmulOp op, Operands operands) {
  const Tensor &lhs = *operands[0], &rhs = *operands[1];
  if (!lhs.isFloat() || !rhs.isFloat())
    return Status::error(ErrorKind::Unsupported,
                         describe(op) + " of " + name(lhs.dtype) + ": matrix products take floats only");
  Tensor result = emptyLike(op.getResult());
  ArrayRef<int64_t> lhsShape = lhs.shape, rhsShape = rhs.shape, shape = result.shape;
  int64_t m = shape[shape.size() - 2], n = shape.back();
  int64_t k = op.getTransposeLhs() ? lhsShape[lhsShape.size() - 2] : lhsShape.back();
  Matrix left{nullptr, op.getTransposeLhs() ? 1 : k, op.getTransposeLhs() ? m : 1};
  Matrix right{nullptr, op.getTransposeRhs() ? 1 : n, op.getTransposeRhs() ? k : 1};
  ArrayRef<int64_t> batch = shape.drop_back(2);
  // Offsets of matrices count in matrices: strides of the batch shapes times the size of a matrix.
  std::array<SmallVector<int64_t>, 2> strides = {broadcastStrides(lhsShape.drop_back(2), batch),
                                                 broadcastStrides(rhsShape.drop_back(2), batch)};
  std::vector<double> panel;
  forEachElement<2>(batch, strides, {0, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
    left.data = lhs.floats.data() + at[0] * m * k;
    right.data = rhs.floats.data() + at[1] * k * n;
    multiply(left, right, result.floats.data() + i * m * n, m, k, n, panel);
  });
  return one(std::move(result));
}

void addContractions(Evaluators &evaluators) { evaluators.add<nn::MatmulOp>(evaluateMatmul); }

} // namespace hpc::interpreter
