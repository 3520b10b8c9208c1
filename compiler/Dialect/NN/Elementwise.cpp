// Elementwise ops: broadcasting, and what their partial sums and casts may do.
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/RoundedTerms.h"

namespace hpc::nn {

/// The NumPy broadcast of shapes; nullopt when they do not broadcast.
static std::optional<SmallVector<int64_t>> broadcastShape(ArrayRef<ArrayRef<int64_t>> shapes) {
  size_t rank = 0;
  for (ArrayRef<int64_t> shape : shapes)
    rank = std::max(rank, shape.size());
  SmallVector<int64_t> result(rank, 1);
  for (ArrayRef<int64_t> shape : shapes)
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t &size = result[rank - shape.size() + dim];
      if (shape[dim] == 1)
        continue;
      if (size != 1 && size != shape[dim])
        return std::nullopt;
      size = shape[dim];
    }
  return result;
}

RankedTensorType broadcastType(ValueRange values, Type elementType) {
  auto shape = broadcastShape(llvm::map_to_vector(values, [](Value value) { return shapeOf(value); }));
  if (!shape)
    return {};
  return RankedTensorType::get(*shape, elementType ? elementType : tensorType(values[0]).getElementType());
}

LogicalResult verifyElementwise(Operation *op) {
  auto shape = broadcastShape(llvm::map_to_vector(op->getOperands(), [](Value value) { return shapeOf(value); }));
  if (!shape)
    return op->emitOpError("(C1) operand shapes do not broadcast: ") << op->getOperandTypes();
  ArrayRef<int64_t> result = shapeOf(op->getResult(0));
  if (result != ArrayRef<int64_t>(*shape))
    return op->emitOpError("(C1) result ")
           << op->getResult(0).getType() << " must have the operands' broadcast shape ["
           << llvm::join(llvm::map_range(*shape, [](int64_t size) { return std::to_string(size); }), ", ") << "]";
  return success();
}

/// A constant whose elements are all zero (of either sign).
static bool isLiteralZero(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().isZero();
  return isa<IntegerType>(elements.getElementType()) && elements.getSplatValue<APInt>().isZero();
}

ShardingRule SelectOp::getShardingRule() {
  LinearClause linear{LinearClause::Sum, {}};
  if (!isLiteralZero(getOnTrue()))
    linear.operands.push_back(1);
  if (!isLiteralZero(getOnFalse()))
    linear.operands.push_back(2);
  return elementwiseRule(*this, std::move(linear));
}
LogicalResult SelectOp::verify() { return verifyElementwise(*this); }

/// A constant of real numbers, none of them zero.
static bool isLiteralNonzero(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !isa<FloatType>(elements.getElementType()))
    return false;
  return elements.isSplat() ? !elements.getSplatValue<APFloat>().isZero()
                            : llvm::none_of(elements.getValues<APFloat>(), [](const APFloat &number) { return number.isZero(); });
}

/// A term divided by 0 is an infinity of its own sign, and infinities of both signs add up to NaN where the sum divided by
/// 0 is an infinity. So only a divisor that is known lets terms pass.
LinearClause linearInDividend(Operation *op) {
  return isLiteralNonzero(op->getOperand(1)) ? LinearClause{LinearClause::Product, {0}} : LinearClause{};
}

ShardingRule CastOp::getShardingRule() {
  auto from = dyn_cast<FloatType>(tensorType(getOperand()).getElementType());
  auto to = dyn_cast<FloatType>(tensorType(getResult()).getElementType());
  // Every number of `from` is one of `to`: not f16 to bf16, nor the other way.
  bool widens = from && to &&
                APFloat::isRepresentableBy(from.getFloatSemantics(), to.getFloatSemantics());
  return elementwiseRule(*this, widens || roundsTerms(*this) ? LinearClause{LinearClause::Sum, {0}} : LinearClause{});
}
LogicalResult CastOp::verify() { return verifyElementwise(*this); }

ShardingRule BitcastOp::getShardingRule() { return elementwiseRule(*this); }
LogicalResult BitcastOp::verify() {
  Type from = tensorType(getOperand()).getElementType(), to = tensorType(getResult()).getElementType();
  if (shapeOf(getOperand()) != shapeOf(getResult()))
    return emitOpError("(C1) ") << getOperand().getType() << " and " << getResult().getType() << " must have one shape";
  bool areNumbers = from.isIntOrFloat() && to.isIntOrFloat() && !from.isInteger(1) && !to.isInteger(1);
  if (!areNumbers || from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return emitOpError("(C2) ") << from << " and " << to << " must be numbers of as many bits";
  return success();
}

} // namespace hpc::nn
