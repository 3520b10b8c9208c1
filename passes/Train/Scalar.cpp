// A sum over all dims is one reduction, so that cut values are partial sums and whole ones count once.
#include "passes/Train/Scalar.h"

namespace hpc::train {

Value constant(OpBuilder &builder, Location location, double value, Type type) {
  auto tensor = RankedTensorType::get({}, type);
  return nn::ConstantOp::create(builder, location,
                                DenseElementsAttr::get(tensor, Attribute(builder.getFloatAttr(type, value))));
}

Value castTo(OpBuilder &builder, Location location, Value value, Type type) {
  RankedTensorType tensor = nn::tensorType(value);
  if (tensor.getElementType() == type)
    return value;
  return nn::CastOp::create(builder, location, RankedTensorType::get(tensor.getShape(), type), value);
}

Type updateType(Type type) {
  return type.getIntOrFloatBitWidth() < 32 ? Float32Type::get(type.getContext()) : type;
}

Value sumOfSquares(OpBuilder &builder, Location location, Value value, Type type) {
  value = castTo(builder, location, value, type);
  Value squares = nn::MulOp::create(builder, location, value, value);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, nn::tensorType(value).getRank()));
  if (dims.empty())
    return squares;
  Value sum = nn::ReduceOp::create(builder, location, ReduceKind::Sum, squares, dims);
  return nn::ReshapeOp::create(builder, location, RankedTensorType::get({}, type), sum);
}

} // namespace hpc::train
