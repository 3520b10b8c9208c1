// Matrix products. A bias is added after the product, never inside: in a partial contraction it would count once per
// rank.
#include "compiler/Import/OnnxOps/Dims.h"

namespace hpc::onnx {

Value matmulOf(NodeImport &n, Value x, Value y, bool isWide) {
  int64_t ranks[] = {n.b.rank(x), n.b.rank(y)};
  if (ranks[0] == 0 || ranks[1] == 0)
    return n.b.fail("a matrix product of a scalar; both operands need one dim or more");
  if (ranks[0] == 1)
    x = n.b.reshape(x, {1, n.b.shape(x)[0]});
  if (ranks[1] == 1)
    y = n.b.reshape(y, {n.b.shape(y)[0], 1});
  Value product = isWide ? n.b.wideMatmul(x, y) : n.b.matmul(x, y);
  SmallVector<int64_t> shape = n.b.shape(product);
  if (shape.size() < 2)
    return product;
  if (ranks[1] == 1)
    shape.pop_back();
  if (ranks[0] == 1)
    shape.erase(shape.end() - (ranks[1] == 1 ? 1 : 2));
  return n.b.reshape(product, shape);
}

Value scaledProduct(NodeImport &n, Value x, Value y, bool transposeX, bool transposeY, double alpha) {
  if (alpha == 1)
    return n.b.matmul(x, y, transposeX, transposeY);
  Value product = n.b.wideMatmul(x, y, transposeX, transposeY);
  return n.b.mul(product, n.b.scalar(alpha, product));
}

namespace {

Results matmul(NodeImport &n) { return {matmulOf(n, n.in(0), n.in(1))}; }

/// alpha * A B + beta * C
Results gemm(NodeImport &n) {
  if (n.b.rank(n.in(0)) != 2 || n.b.rank(n.in(1)) != 2)
    return {n.b.fail("its operands must have two dims")};
  double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  Value result = scaledProduct(n, n.in(0), n.in(1), n.integer("transA", 0), n.integer("transB", 0), alpha);
  if (!n.has(2) || beta == 0)
    return {n.b.cast(result, n.b.dtype(n.in(0)))};
  SmallVector<int64_t> shape = n.b.shape(result);
  Value own = n.b.isKnown(result) ? n.in(2) : n.b.parameter(n.in(2)), bias = alpha == 1 ? own : n.b.widened(own);
  if (beta != 1)
    bias = n.b.mul(bias, n.b.scalar(beta, bias));
  Value sum = n.b.cast(n.b.add(result, bias), n.b.dtype(n.in(0)));
  return {n.b.shape(sum) == shape ? sum : n.b.fail("its C does not broadcast to the product's shape")};
}

const OnnxOp contractionTable[] = {{"MatMul", 1, matmul}, {"Gemm", 7, gemm}};

} // namespace

ArrayRef<OnnxOp> contractionOps() { return contractionTable; }

} // namespace hpc::onnx
