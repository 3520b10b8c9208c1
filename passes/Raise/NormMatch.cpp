// The pieces of a norm, each in its usual spellings.
#include "passes/Raise/NormMatch.h"

#include "passes/Raise/Scalars.h"

namespace hpc {

/// x of a cast from f16 or bf16 to f32, or back where `isBack`.
static Value castOperand(Value value, bool isBack) {
  auto cast = value.getDefiningOp<nn::CastOp>();
  if (!cast)
    return {};
  Value wide = isBack ? cast.getOperand() : value, narrow = isBack ? value : cast.getOperand();
  Type type = getElementTypeOrSelf(narrow);
  return getElementTypeOrSelf(wide).isF32() && (type.isF16() || type.isBF16()) ? cast.getOperand() : Value();
}

/// x of a mean over x's last dim: the sum times 1/n or divided by n. For 16 bits it is a mean in f32, rounded once.
static Value meanOperand(Value value) {
  if (Value wide = castOperand(value, true)) {
    Value operand = meanOperand(wide), narrow = operand ? castOperand(operand, false) : Value();
    return narrow && getElementTypeOrSelf(narrow) == getElementTypeOrSelf(value) ? narrow : Value();
  }
  bool isDivision = value.getDefiningOp<nn::DivOp>();
  std::optional<WithScalar> scaled = matchWithScalar<nn::MulOp>(value);
  if (auto division = value.getDefiningOp<nn::DivOp>())
    if (std::optional<double> number = scalarOf(division.getRhs()))
      scaled = WithScalar{division.getLhs(), *number};
  auto sum = scaled ? scaled->other.getDefiningOp<nn::ReduceOp>() : nn::ReduceOp();
  if (!sum || sum.getKind() != ReduceKind::Sum || sum.getType() != value.getType())
    return {};
  ArrayRef<int64_t> shape = nn::shapeOf(sum.getOperand());
  if (shape.empty() || sum.getAxes() != ArrayRef<int64_t>(int64_t(shape.size()) - 1))
    return {};
  double count = double(shape.back());
  return isNear(scaled->number, isDivision ? count : 1 / count, value.getType()) ? sum.getOperand() : Value();
}

/// x of x * x or pow(x, 2).
static Value squareOperand(Value value) {
  if (auto product = value.getDefiningOp<nn::MulOp>())
    return product.getLhs() == product.getRhs() ? product.getLhs() : Value();
  auto power = value.getDefiningOp<nn::PowOp>();
  return power && scalarOf(power.getRhs()) == 2.0 ? power.getLhs() : Value();
}

/// x of sqrt(x) or pow(x, 1/2).
static Value rootOperand(Value value) {
  if (auto root = value.getDefiningOp<nn::SqrtOp>())
    return root.getOperand();
  auto power = value.getDefiningOp<nn::PowOp>();
  return power && scalarOf(power.getRhs()) == 0.5 ? power.getLhs() : Value();
}

/// x of 1 / x.
static Value reciprocalOperand(Value value) {
  if (auto reciprocal = value.getDefiningOp<nn::ReciprocalOp>())
    return reciprocal.getOperand();
  auto division = value.getDefiningOp<nn::DivOp>();
  return division && scalarOf(division.getLhs()) == 1.0 ? division.getRhs() : Value();
}

/// x of 1 / sqrt(x), sqrt(1 / x) or pow(x, -1/2).
static Value inverseRootOperand(Value value) {
  if (Value denominator = reciprocalOperand(value))
    return rootOperand(denominator);
  if (Value under = rootOperand(value))
    return reciprocalOperand(under);
  auto power = value.getDefiningOp<nn::PowOp>();
  return power && scalarOf(power.getRhs()) == -0.5 ? power.getLhs() : Value();
}

/// x of x - mean(x).
static Value centeredOperand(Value value) {
  auto difference = value.getDefiningOp<nn::SubOp>();
  return difference && meanOperand(difference.getRhs()) == difference.getLhs() ? difference.getLhs() : Value();
}

/// `numerator` over the root of `under`.
static std::optional<NormMatch> matchRatio(Value numerator, Value under) {
  std::optional<WithScalar> shifted = under ? matchWithScalar<nn::AddOp>(under) : std::nullopt;
  Value mean = shifted && shifted->number >= 0 ? meanOperand(shifted->other) : Value();
  Value base = mean ? squareOperand(mean) : Value();
  if (!base || base.getType() != numerator.getType())
    return std::nullopt;
  Value input = centeredOperand(numerator);
  if (input && (base == numerator || centeredOperand(base) == input))
    return NormMatch{input, shifted->number, true};
  return base == numerator ? std::optional(NormMatch{numerator, shifted->number, false}) : std::nullopt;
}

std::optional<NormMatch> matchNorm(Operation *root) {
  std::optional<NormMatch> match;
  if (auto division = dyn_cast<nn::DivOp>(root))
    match = matchRatio(division.getLhs(), rootOperand(division.getRhs()));
  else if (auto product = dyn_cast<nn::MulOp>(root))
    for (unsigned side : {1u, 0u})
      if (!match)
        match = matchRatio(product->getOperand(1 - side), inverseRootOperand(product->getOperand(side)));
  return match && match->input.getType() == root->getResult(0).getType() ? match : std::nullopt;
}

} // namespace hpc
