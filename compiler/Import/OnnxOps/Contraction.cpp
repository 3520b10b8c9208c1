// Matrix products. A bias is added after the product, never inside: in a partial contraction it would count once per
// rank.
#include "compiler/Import/OnnxOps/Dims.h"

namespace hpc::onnx {

Value matmulOf(NodeImport &n, Value x, Value y) {
  int64_t ranks[] = {n.b.rank(x), n.b.rank(y)};
  if (ranks[0] == 0 || ranks[1] == 0)
    return n.b.fail("a matrix product of a scalar; both operands need one dim or more");
  if (ranks[0] == 1)
    x = n.b.reshape(x, {1, n.b.shape(x)[0]});
  if (ranks[1] == 1)
    y = n.b.reshape(y, {n.b.shape(y)[0], 1});
  Value product = n.b.matmul(x, y);
  SmallVector<int64_t> shape = n.b.shape(product);
  if (shape.size() < 2)
    return product;
  if (ranks[1] == 1)
    shape.pop_back();
  if (ranks[0] == 1)
    shape.erase(shape.end() - (ranks[1] == 1 ? 1 : 2));
  return n.b.reshape(product, shape);
}

namespace {

Results matmul(NodeImport &n) { return {matmulOf(n, n.in(0), n.in(1))}; }

/// alpha * A B + beta * C
Results gemm(NodeImport &n) {
  if (n.b.rank(n.in(0)) != 2 || n.b.rank(n.in(1)) != 2)
    return {n.b.fail("its operands must have two dims")};
  Value result = n.b.matmul(n.in(0), n.in(1), n.integer("transA", 0), n.integer("transB", 0));
  double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  if (alpha != 1)
    result = n.b.mul(result, n.b.scalar(alpha, result));
  if (!n.has(2) || beta == 0)
    return {result};
  SmallVector<int64_t> shape = n.b.shape(result);
  Value bias = beta == 1 ? n.in(2) : n.b.mul(n.in(2), n.b.scalar(beta, n.in(2)));
  Value sum = n.b.add(result, bias);
  return {n.b.shape(sum) == shape ? sum : n.b.fail("its C does not broadcast to the product's shape")};
}

const OnnxOp table[] = {{"MatMul", 1, matmul}, {"Gemm", 7, gemm}};

} // namespace

ArrayRef<OnnxOp> contractionOps() { return table; }

} // namespace hpc::onnx
