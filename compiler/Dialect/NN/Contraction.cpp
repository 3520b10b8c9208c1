// Matrix products.
#include "compiler/Dialect/NN/NN.h"

namespace hpc::nn {

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs, Value rhs, bool transposeLhs,
                     bool transposeRhs) {
  ArrayRef<int64_t> left = shapeOf(lhs), right = shapeOf(rhs);
  size_t rank = std::max(left.size(), right.size());
  SmallVector<int64_t> shape(rank, 1);
  for (ArrayRef<int64_t> operand : {left, right})
    for (size_t dim = 0; dim + 2 < operand.size(); ++dim)
      if (operand[dim] != 1)
        shape[rank - operand.size() + dim] = operand[dim];
  shape[rank - 2] = left[left.size() - (transposeLhs ? 1 : 2)];
  shape[rank - 1] = right[right.size() - (transposeRhs ? 2 : 1)];
  build(builder, state, RankedTensorType::get(shape, tensorType(lhs).getElementType()), lhs, rhs, transposeLhs,
        transposeRhs);
}

ShardingRule MatmulOp::getShardingRule() {
  std::string text = std::string(getTransposeLhs() ? "...km" : "...mk") + (getTransposeRhs() ? ",...nk" : ",...kn") +
                     "->...mn; linear 0,1";
  return buildRule(text, *this);
}

int64_t MatmulOp::getFlops() {
  ArrayRef<int64_t> left = shapeOf(getLhs());
  return 2 * tensorType(getResult()).getNumElements() * left[left.size() - (getTransposeLhs() ? 2 : 1)];
}

SmallVector<unsigned> MatmulOp::getNarrowOperands() { return {0, 1}; }

LogicalResult MatmulOp::verify() {
  ArrayRef<int64_t> left = shapeOf(getLhs()), right = shapeOf(getRhs()), result = shapeOf(getResult());
  if (left.size() < 2 || right.size() < 2)
    return emitOpError("(C1) operands need rank 2 or more, got ")
           << getLhs().getType() << " and " << getRhs().getType();
  Type type = tensorType(getLhs()).getElementType(), other = tensorType(getRhs()).getElementType();
  if (!isa<FloatType>(type) || (type != other && !other.isSignlessInteger(8)) ||
      !isa<FloatType>(tensorType(getResult()).getElementType()))
    return emitOpError("(C3) operands need one float element type (or the right one i8) and the result a float one, got ")
           << getLhs().getType() << " times " << getRhs().getType() << " to " << getResult().getType();
  int64_t k = left[left.size() - (getTransposeLhs() ? 2 : 1)],
          otherK = right[right.size() - (getTransposeRhs() ? 1 : 2)];
  int64_t m = left[left.size() - (getTransposeLhs() ? 1 : 2)], n = right[right.size() - (getTransposeRhs() ? 2 : 1)];
  size_t rank = std::max(left.size(), right.size());
  bool fits = k == otherK && result.size() == rank && result[rank - 2] == m && result[rank - 1] == n;
  for (size_t fromRight = 2; fits && fromRight < rank; ++fromRight) {
    int64_t a = fromRight < left.size() ? left[left.size() - 1 - fromRight] : 1;
    int64_t b = fromRight < right.size() ? right[right.size() - 1 - fromRight] : 1;
    fits = (a == b || a == 1 || b == 1) && result[rank - 1 - fromRight] == (a == 1 ? b : a);
  }
  if (!fits)
    return emitOpError("(C2) ") << getLhs().getType() << " times " << getRhs().getType() << " does not give "
                                << getResult().getType();
  return success();
}

} // namespace hpc::nn
