// Casts from and to types that are only stored: floats of 8 and 4 bits and small integers, as bits in a byte.
#include "compiler/Import/OnnxOps/Narrow.h"

#include "compiler/Import/OnnxOps/Dims.h"

#include <cmath>

namespace hpc::onnx {
namespace {

Value wholeNumber(NodeImport &n, DType type, int64_t value) {
  Tensor tensor(type, {});
  tensor.ints[0] = wrapTo(type, value);
  return n.b.known(std::move(tensor));
}

/// Bits of |x| of f32 as the code of the nearest number of the type, ties to even, beyond the largest as well.
Value roundedCode(NodeImport &n, const NarrowType &type, Value magnitude, Value bits) {
  int drop = 23 - type.mantissa;
  auto number = [&](int64_t value) { return wholeNumber(n, DType::U32, value); };
  auto shifted = [&](Value x) { return n.b.binary<nn::ShiftRightOp>(x, number(drop)); };
  Value isOdd = n.b.binary<nn::AndOp>(shifted(bits), number(1));
  Value rounded = shifted(n.b.add(n.b.add(bits, number((int64_t(1) << (drop - 1)) - 1)), isOdd));
  Value normal = n.b.sub(rounded, number(int64_t(127 - type.bias) << type.mantissa));
  // Below the least normal number codes count its fractions; the next one up is that number's own code.
  Value steps = n.b.mul(magnitude, n.b.scalar(std::ldexp(1.0, type.bias - 1 + type.mantissa), DType::F32));
  Value small = n.b.cast(n.b.unary<nn::RoundOp>(steps), DType::U32);
  Value isSmall =
      n.b.compare(nn::ComparePredicate::lt, magnitude, n.b.scalar(std::ldexp(1.0, 1 - type.bias), DType::F32));
  return n.b.select(isSmall, small, normal);
}

/// A power of two: the exponent of f32, which has the same bias, rounded as asked.
Value exponentCode(NodeImport &n, Value bits, const std::string &mode) {
  auto number = [&](int64_t value) { return wholeNumber(n, DType::U32, value); };
  Value exponent = n.b.binary<nn::ShiftRightOp>(bits, number(23)),
        fraction = n.b.binary<nn::AndOp>(bits, number(0x7fffff));
  if (mode == "down")
    return exponent;
  Value goesUp = mode == "up" ? n.b.compare(nn::ComparePredicate::gt, fraction, number(0))
                              : n.b.compare(nn::ComparePredicate::ge, fraction, number(0x400000));
  return n.b.add(exponent, n.b.cast(goesUp, DType::U32));
}

/// f32 -> the bits of a float of the type. Numbers that are too large become the largest number, or (not `saturate`)
/// infinity, or NaN if the type has no infinity.
Value encoded(NodeImport &n, const NarrowType &type, Value x, bool saturate, const std::string &roundMode) {
  auto number = [&](int64_t value) { return wholeNumber(n, DType::U32, value); };
  Value magnitude = n.b.unary<nn::AbsOp>(x), bits = n.b.bitcast(magnitude, DType::U32);
  Value code = type.hasSign ? roundedCode(n, type, magnitude, bits) : exponentCode(n, bits, roundMode);
  int beyond = saturate || type.nan < 0 ? type.largest : type.infinity >= 0 ? type.infinity : type.nan;
  Value isBeyond = n.b.compare(nn::ComparePredicate::gt, code, number(type.largest));
  code = n.b.select(isBeyond, number(beyond), code);
  if (type.hasSign) {
    Value sign = n.b.binary<nn::ShiftRightOp>(n.b.bitcast(x, DType::U32), number(31));
    if (!type.hasMinusZero) // 0 and NaN have no sign
      sign = n.b.select(n.b.binary<nn::OrOp>(n.b.compare(nn::ComparePredicate::eq, code, number(0)),
                                             n.b.compare(nn::ComparePredicate::ge, code, number(type.nan))),
                        number(0), sign);
    code = n.b.binary<nn::OrOp>(code, n.b.binary<nn::ShiftLeftOp>(sign, number(type.bits - 1)));
  }
  Value isNan = n.b.unary<nn::IsNanOp>(x);
  // float4e2m1 has no NaN; it becomes -0, as ml_dtypes makes it.
  return n.b.cast(n.b.select(isNan, number(type.nan >= 0 ? type.nan : 1 << (type.bits - 1)), code), DType::U8);
}

/// An integer cut to the type's bits, with its sign.
Value wrapped(NodeImport &n, const NarrowType &type, Value x) {
  int64_t sign = int64_t(1) << (type.bits - 1);
  Value low = n.b.binary<nn::AndOp>(n.b.cast(x, DType::I32), wholeNumber(n, DType::I32, 2 * sign - 1));
  if (type.isSigned())
    low = n.b.sub(n.b.binary<nn::XorOp>(low, wholeNumber(n, DType::I32, sign)), wholeNumber(n, DType::I32, sign));
  return n.b.cast(low, type.storage);
}

} // namespace

Value fromNarrow(NodeImport &n, Value x) {
  const NarrowType *type = n.b.narrowType(x);
  if (!type)
    return x;
  if (!type->isFloat())
    return n.b.cast(x, DType::I32); // a value of its own: x is known to hold the narrow type
  Tensor table(DType::F32, {int64_t(1) << type->bits});
  for (int64_t code = 0; code < table.size(); ++code)
    table.floats[size_t(code)] = decoded(*type, int(code));
  return n.b.gather(n.b.known(std::move(table)), n.b.cast(x, DType::I64), 0);
}

Value toNarrow(NodeImport &n, Value x, const NarrowType &type, bool saturate, const std::string &roundMode) {
  Value result = type.isFloat() ? encoded(n, type, n.b.cast(x, DType::F32), saturate, roundMode) : wrapped(n, type, x);
  return n.b.asNarrow(result, type);
}

Value clampedNarrow(NodeImport &n, Value x, const NarrowType &type) {
  int64_t values = int64_t(1) << type.bits, least = type.isSigned() ? -values / 2 : 0;
  Value above = n.b.binary<nn::MaxOp>(x, n.b.scalar(double(least), x));
  return toNarrow(n, n.b.binary<nn::MinOp>(above, n.b.scalar(double(least + values - 1), x)), type);
}

} // namespace hpc::onnx
