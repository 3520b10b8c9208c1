// Identities of the reductions by element type, and the operand dims that they have to fill.
#include "passes/Partition/ReducedPadding.h"

#include "compiler/Dialect/NN/NN.h"

#include <limits>

namespace hpc {

using namespace dist;

/// Lowest or highest value of a type, as a double that does not round beyond it.
static double extreme(Type type, bool highest) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return highest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  unsigned width = integer.getWidth();
  if (width == 1)
    return highest ? 1 : 0;
  APInt value = integer.isUnsigned() ? (highest ? APInt::getMaxValue(width) : APInt::getMinValue(width))
                                     : (highest ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width));
  APFloat number(0.0);
  number.convertFromAPInt(value, !integer.isUnsigned(), APFloat::rmTowardZero);
  return number.convertToDouble();
}

static double identityOf(Reduction reduction, Type type) {
  switch (reduction) {
  case Reduction::Max:
    return extreme(type, /*highest=*/false);
  case Reduction::Min:
    return extreme(type, /*highest=*/true);
  default:
    return 0;
  }
}

std::optional<TailFill> tailFillOf(const OpSharding &sharding, unsigned operand, Type elementType, const Mesh &mesh) {
  std::optional<TailFill> fill;
  for (auto [d, dim] : llvm::enumerate(sharding.rule.operands[operand]))
    for (int index : dim) {
      const ShardingFactor &factor = sharding.rule.factors[index];
      const DimSharding &cut = sharding.factors[index];
      if (factor.reduction == Reduction::None || factor.isIndex || !isCut(cut) || !hasPadding(cut, mesh))
        continue;
      if (!fill)
        fill = TailFill{{}, identityOf(factor.reduction, elementType)};
      if (!llvm::is_contained(fill->dims, int64_t(d)))
        fill->dims.push_back(int64_t(d));
    }
  return fill;
}

bool hasZeroPadding(Value value, double fill) {
  return fill == 0 && (isa<BlockArgument>(value) || isa<nn::ParameterOp>(value.getDefiningOp()));
}

} // namespace hpc
