// Splats, read as double.
#include "passes/Raise/Scalars.h"

#include <cmath>

namespace hpc {

std::optional<double> scalarOf(Value value) {
  Operation *op = value.getDefiningOp();
  // Every pattern calls this for every operand: a chain of views as long as the program must not be walked each time.
  constexpr int maxViews = 16;
  for (int views = 0; views < maxViews && isa_and_present<nn::ReshapeOp, nn::BroadcastOp>(op); ++views)
    op = op->getOperand(0).getDefiningOp();
  auto constant = dyn_cast_if_present<nn::ConstantOp>(op);
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType())) {
    APFloat number = elements.getSplatValue<APFloat>();
    bool losesInfo = false;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  if (elements.getElementType().isInteger(1))
    return elements.getSplatValue<bool>();
  auto type = dyn_cast<IntegerType>(elements.getElementType());
  if (!type)
    return std::nullopt;
  APInt number = elements.getSplatValue<APInt>();
  return type.isUnsigned() ? double(number.getZExtValue()) : double(number.getSExtValue());
}

bool isNear(double number, double expected, Type elementType) {
  elementType = getElementTypeOrSelf(elementType);
  double tolerance = elementType.isBF16() ? 1.6e-2 : elementType.isF16() ? 2e-3 : 1e-6;
  return std::abs(number - expected) <= tolerance * std::abs(expected);
}

Value makeScalar(OpBuilder &builder, Location loc, Value like, double number) {
  Type element = getElementTypeOrSelf(like.getType());
  Attribute value = isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, number))
                                            : Attribute(builder.getIntegerAttr(element, int64_t(number)));
  return nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(RankedTensorType::get({}, element), value));
}

} // namespace hpc
