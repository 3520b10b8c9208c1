// Gradients of matrix products, which are matrix products. Leading dims that one operand lacks are summed over: as part of
// the product where they lie beside its rows, else behind it.
#include "compiler/Dialect/NN/GradientBuilder.h"

namespace hpc::nn {

namespace {
/// How many of the last leading dims of `of` are there in `of` and the result but not (or with size 1) in `other`.
size_t trailingDimsBesides(Value of, Value other) {
  ArrayRef<int64_t> own = shapeOf(of).drop_back(2), theirs = shapeOf(other).drop_back(2);
  size_t count = 0;
  while (count < own.size() && (count >= theirs.size() || theirs[theirs.size() - 1 - count] == 1))
    ++count;
  return count;
}

/// [lead.., x, m, k] as [lead.., x * m, k] for the last `count` leading dims.
Value mergeIntoRows(GradientBuilder &b, Value value, size_t count) {
  ArrayRef<int64_t> shape = shapeOf(value);
  size_t rank = shape.size();
  SmallVector<int64_t> merged(shape.drop_back(2 + count));
  merged.push_back(ShapedType::getNumElements(shape.slice(rank - 2 - count, count + 1)));
  merged.push_back(shape.back());
  return b.reshape(value, merged);
}

/// [lead.., 1 .., k, n] without the last `count` leading dims, of size 1 or not there.
Value withoutDims(GradientBuilder &b, Value value, size_t count) {
  ArrayRef<int64_t> shape = shapeOf(value);
  count = std::min(count, shape.size() - 2);
  SmallVector<int64_t> rest(shape.drop_back(2 + count));
  llvm::append_range(rest, shape.take_back(2));
  return b.reshape(value, rest);
}
} // namespace

void MatmulOp::buildGradients(GradientBuilder &b) {
  Value lhs = getLhs(), rhs = getRhs();
  bool transposeLhs = getTransposeLhs(), transposeRhs = getTransposeRhs();
  Type element = tensorType(lhs).getElementType();
  Value g = b.cast(b.cotangent(), element); // a product takes one type
  // dA = dC B^T and dB = A^T dC, transposed where the operand is stored so.
  if (b.wants(0))
    b.give(0, transposeLhs ? b.matmul(rhs, g, transposeRhs, true, element)
                           : b.matmul(g, rhs, false, !transposeRhs, element));
  if (!b.wants(1))
    return;
  // x [B, S, k] times w [k, n] is [B * S, k] times w: so the sum over B and S is that of a product.
  SmallVector<int64_t> shape(shapeOf(rhs));
  if (size_t count = transposeLhs ? 0 : trailingDimsBesides(lhs, rhs)) {
    lhs = mergeIntoRows(b, lhs, count);
    g = mergeIntoRows(b, g, count);
    rhs = withoutDims(b, rhs, count);
  }
  Value gradient = transposeRhs ? b.matmul(g, lhs, true, transposeLhs, element)
                                : b.matmul(lhs, g, !transposeLhs, false, element);
  b.give(1, b.reshape(b.sumTo(gradient, shapeOf(rhs)), shape));
}

} // namespace hpc::nn
