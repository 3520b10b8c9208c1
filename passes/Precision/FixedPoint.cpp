// Powers of two come from the exponent's bits, so that scaling rounds nothing.
#include "passes/Precision/FixedPoint.h"

#include <cmath>

namespace hpc::precision {

static constexpr int64_t exactBits = 53; // of f64

static int64_t log2Ceil(int64_t number) { return int64_t(llvm::Log2_64_Ceil(uint64_t(std::max<int64_t>(number, 1)))); }

int64_t bitsOfFactors(int64_t terms) { return (exactBits - log2Ceil(terms)) / 2; }
int64_t bitsOfTerms(int64_t terms) { return exactBits - log2Ceil(terms); }

/// The largest power of two that is not above each number of an f32 tensor (none is negative), at least 2^-126.
/// Infinite where the number is not finite.
static Value powerOfTwoBelow(GradientBuilder &b, Value tensor) {
  auto type = nn::tensorType(tensor);
  auto bitsType = RankedTensorType::get(type.getShape(), b.builder.getI32Type());
  auto constant = [&](int32_t value) -> Value {
    auto scalar = RankedTensorType::get({}, b.builder.getI32Type());
    return nn::ConstantOp::create(b.builder, b.loc, DenseElementsAttr::get(scalar, APInt(32, uint64_t(value))));
  };
  Value bits = nn::BitcastOp::create(b.builder, b.loc, bitsType, tensor);
  Value exponent = nn::AndOp::create(b.builder, b.loc, bits, constant(0x7F800000));
  exponent = nn::MaxOp::create(b.builder, b.loc, exponent, constant(0x00800000));
  return nn::BitcastOp::create(b.builder, b.loc, RankedTensorType::get(type.getShape(), type.getElementType()), exponent);
}

static Value rounded(GradientBuilder &b, Value value) { return b.unary<nn::RoundOp>(value); }

Scaled scaleByLargest(GradientBuilder &b, Value tensor, ArrayRef<int64_t> axes, int64_t bits, bool withRest) {
  Type f32 = b.builder.getF32Type(), f64 = b.builder.getF64Type();
  Value narrow = b.cast(tensor, f32);
  Value largest = b.reduce(ReduceKind::Max, b.unary<nn::AbsOp>(narrow), axes);
  Value power = b.cast(powerOfTwoBelow(b, largest), f64);
  const double steps = std::ldexp(1.0, int(bits - 1)); // numbers are below 2 * power
  Value perUnit = b.div(b.number(power, steps), power);
  Value inUnits = b.mul(b.cast(narrow, f64), perUnit), numbers = rounded(b, inUnits), rest;
  if (withRest)
    rest = rounded(b, b.scaled(b.sub(inUnits, numbers), std::ldexp(1.0, int(bits))));
  return {numbers, rest, b.scaled(power, 1 / steps)};
}

SmallVector<Value> splitIntoWords(GradientBuilder &b, Value tensor, int64_t terms, double typical, int numWords) {
  Value rest = b.cast(tensor, b.builder.getF64Type());
  // The first word's grid, by how much is to be above it and below.
  double grid = std::ldexp(typical, numWords == 2 ? -20 : 24);
  const double limit = std::ldexp(grid, int(exactBits - 1 - log2Ceil(terms)));
  Value isSmall = b.compare(nn::ComparePredicate::lt, b.unary<nn::AbsOp>(rest), b.number(rest, limit));
  rest = b.select(isSmall, rest, b.number(rest, std::numeric_limits<double>::quiet_NaN()));
  SmallVector<Value> words;
  for (int word = 0; word < numWords; ++word, grid = std::ldexp(grid, -40)) {
    words.push_back(b.scaled(rounded(b, b.scaled(rest, 1 / grid)), grid));
    if (word + 1 < numWords)
      rest = b.sub(rest, words.back());
  }
  return words;
}

Value joinWords(GradientBuilder &b, ArrayRef<Value> sums) {
  Value total;
  for (Value sum : sums) {
    Value narrow = b.cast(sum, b.builder.getF32Type());
    total = total ? b.add(total, narrow) : narrow;
  }
  return total;
}

} // namespace hpc::precision
