// Identities of the reductions by element type, and the operand dims that they have to fill.
#include "passes/Partition/ReducedPadding.h"

#include "compiler/Dialect/NN/Ports.h"

namespace hpc {

using namespace dist;

/// Lowest or highest value of a type.
static TypedAttr extreme(Type type, bool highest) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return FloatAttr::get(type, APFloat::getInf(cast<FloatType>(type).getFloatSemantics(), /*Negative=*/!highest));
  unsigned width = integer.getWidth();
  bool isNatural = integer.isUnsigned() || width == 1;
  return IntegerAttr::get(type, isNatural ? (highest ? APInt::getMaxValue(width) : APInt::getMinValue(width))
                                : highest ? APInt::getSignedMaxValue(width)
                                          : APInt::getSignedMinValue(width));
}

static TypedAttr identityOf(ReduceKind reduction, Type type) {
  Builder builder(type.getContext());
  switch (reduction) {
  case ReduceKind::Sum:
    return builder.getZeroAttr(type);
  case ReduceKind::Max:
    return extreme(type, /*highest=*/false);
  case ReduceKind::Min:
    return extreme(type, /*highest=*/true);
  case ReduceKind::Prod:
    return builder.getOneAttr(type);
  }
  llvm_unreachable("a reduction without an identity");
}

std::optional<TailFill> tailFillOf(const OpSharding &sharding, unsigned operand, Type elementType, const Mesh &mesh) {
  std::optional<TailFill> fill;
  for (auto [d, dim] : llvm::enumerate(sharding.rule.operands[operand]))
    for (int index : dim) {
      const ShardingFactor &factor = sharding.rule.factors[index];
      const DimSharding &cut = sharding.factors[index];
      if (!factor.reduction || factor.isLookup || !isCut(cut) || !hasPadding(cut, mesh))
        continue;
      if (!fill)
        fill = TailFill{{}, identityOf(*factor.reduction, elementType)};
      if (!llvm::is_contained(fill->dims, int64_t(d)))
        fill->dims.push_back(int64_t(d));
    }
  return fill;
}

bool hasPadding(Value value, TypedAttr fill) {
  bool isZero = fill == Builder(fill.getContext()).getZeroAttr(fill.getType());
  return isZero && (isa<BlockArgument>(value) || isa<nn::ParameterOp>(value.getDefiningOp())) && !nn::isWritten(value);
}

} // namespace hpc
