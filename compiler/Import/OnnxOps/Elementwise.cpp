// Elementwise arithmetic, comparison and logic. An op that nn has costs one line of the table at the end.
#include "compiler/Import/OnnxOps/Narrow.h"
#include "compiler/Import/OnnxOps/Slopes.h"

#include <limits>

namespace hpc::onnx {
namespace {

template <typename Op> Results unary(NodeImport &n) { return {n.b.unary<Op>(n.in(0))}; }
template <typename Op> Results binary(NodeImport &n) { return {n.b.binary<Op>(n.in(0), n.in(1))}; }
Results add(NodeImport &n) { return {n.b.add(n.in(0), n.in(1))}; }

/// Max, Min, Sum over any number of inputs.
template <typename Op> Results variadic(NodeImport &n) {
  Value result = n.in(0);
  for (size_t i = 1; i < n.numInputs(); ++i)
    result = n.b.binary<Op>(result, n.in(i));
  return {result};
}

Results sum(NodeImport &n) { return n.numInputs() > 2 ? stepsInF32(n, variadic<nn::AddOp>) : variadic<nn::AddOp>(n); }

Results mean(NodeImport &n) {
  Value sum = variadic<nn::AddOp>(n)[0];
  return {n.b.div(sum, n.b.scalar(double(n.numInputs()), sum))};
}

template <nn::ComparePredicate predicate> Results compare(NodeImport &n) {
  return {n.b.compare(predicate, n.in(0), n.in(1))};
}

/// PyTorch's exporter writes an Identity for detach(), which ONNX has no word for.
Results identity(NodeImport &n) {
  Value x = n.any(0);
  bool isDetach = !n.torchArguments("aten.detach").empty();
  if (n.mode.training && isDetach && n.b.status().ok() && !n.b.isSequence(x) && isFloat(n.b.dtype(x)))
    return {n.b.unary<nn::DetachOp>(x)};
  return {x};
}

/// Base and exponent may have different types; the result has the base's.
Results pow(NodeImport &n) {
  Value base = n.in(0), exponent = n.in(1);
  DType type = n.b.dtype(base);
  if (isFloat(type) || !isFloat(n.b.dtype(exponent)))
    return {n.b.binary<nn::PowOp>(base, n.b.cast(exponent, type))};
  Value power = n.b.binary<nn::PowOp>(n.b.cast(base, n.b.dtype(exponent)), exponent);
  return {n.b.cast(power, type)};
}

Results mod(NodeImport &n) { return n.integer("fmod", 0) ? binary<nn::FmodOp>(n) : binary<nn::ModOp>(n); }

/// Infinities of both signs, or of one.
Results isInf(NodeImport &n) {
  bool negative = n.integer("detect_negative", 1), positive = n.integer("detect_positive", 1);
  Value result = n.b.unary<nn::IsInfOp>(n.in(0));
  if (negative && positive)
    return {result};
  auto sign = negative ? nn::ComparePredicate::lt : nn::ComparePredicate::gt;
  Value limit = n.b.scalar(negative || positive ? 0 : std::numeric_limits<double>::infinity(), n.in(0));
  return {n.b.binary<nn::AndOp>(result, n.b.compare(sign, n.in(0), limit))};
}

/// All bits flipped: exclusive or with a number that has all bits set.
Results bitwiseNot(NodeImport &n) {
  Value x = n.in(0);
  if (isFloat(n.b.dtype(x)))
    return {n.b.fail("its input must be whole numbers")};
  Tensor ones(n.b.dtype(x), {});
  ones.ints[0] = wrapTo(ones.dtype, -1);
  return {n.b.binary<nn::XorOp>(x, n.b.known(std::move(ones)))};
}

Results bitShift(NodeImport &n) {
  std::string direction = n.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return {n.b.fail("its direction '" + direction + "' must be LEFT or RIGHT")};
  return direction == "LEFT" ? binary<nn::ShiftLeftOp>(n) : binary<nn::ShiftRightOp>(n);
}

Results bitCast(NodeImport &n) {
  int64_t code = n.integer("to", 0);
  auto type = dtypeOfCode(code);
  if (!type)
    return {n.unsupported("bits as " + typeNameOfCode(code))};
  DType from = n.b.dtype(n.in(0));
  if (byteSize(from) != byteSize(*type))
    return {n.b.fail(std::string("bits of ") + name(from) + " as " + name(*type) + ", which has another width")};
  if (from == DType::Bool || *type == DType::Bool) // one byte, 0 or 1
    return {n.b.cast(n.in(0), *type)};
  return {n.b.bitcast(n.in(0), *type)};
}

Results where(NodeImport &n) { return {n.b.select(n.in(0), n.in(1), n.in(2))}; }

/// To a type that is computed with, or to `narrow`.
Value castTo(NodeImport &n, Value x, std::optional<DType> type, const NarrowType *narrow) {
  if (narrow && n.b.narrowType(x) == narrow)
    return x;
  x = fromNarrow(n, x);
  return narrow ? toNarrow(n, x, *narrow, n.integer("saturate", 1), n.text("round_mode", "up")) : n.b.cast(x, *type);
}

Results cast(NodeImport &n) {
  int64_t code = n.integer("to", 0);
  std::optional<DType> type = dtypeOfCode(code);
  const NarrowType *narrow = narrowTypeOfCode(code);
  if (!type && !narrow)
    return {n.unsupported("a cast to " + typeNameOfCode(code))};
  return {castTo(n, n.in(0), type, narrow)};
}

Results castLike(NodeImport &n) { return {castTo(n, n.in(0), n.b.dtype(n.in(1)), n.b.narrowType(n.in(1)))}; }

/// Before opset 11 bounds are attributes, and those left out are the largest f32: infinities become numbers.
Results oldClip(NodeImport &n) {
  constexpr double largest = std::numeric_limits<float>::max();
  Value x = n.in(0);
  return {clamped(n, x, n.b.scalar(n.number("min", -largest), x), n.b.scalar(n.number("max", largest), x))};
}

/// min(max(x, low), high): the upper bound wins where they cross, and a NaN among the three is the result, as in the
/// standard's reference evaluator.
Results clip(NodeImport &n) {
  Value x = n.in(0);
  for (size_t bound : {1, 2})
    if (n.has(bound) && n.b.rank(n.in(bound)) != 0 && elementCount(n.b.shape(n.in(bound))) != 1)
      return {n.b.fail("its bounds must be one number each")};
  return {clamped(n, x, n.has(1) ? n.in(1) : Value(), n.has(2) ? n.in(2) : Value())};
}

const OnnxOp elementwiseTable[] = {
    {"Neg", 6, unary<nn::NegOp>},
    {"Abs", 6, unary<nn::AbsOp>},
    {"Exp", 6, unary<nn::ExpOp>},
    {"Log", 6, unary<nn::LogOp>},
    {"Sqrt", 6, unary<nn::SqrtOp>},
    {"Reciprocal", 6, unary<nn::ReciprocalOp>},
    {"Tanh", 6, unary<nn::TanhOp>},
    {"Erf", 9, unary<nn::ErfOp>},
    {"Sin", 7, unary<nn::SinOp>},
    {"Cos", 7, unary<nn::CosOp>},
    {"Tan", 7, unary<nn::TanOp>},
    {"Asin", 7, unary<nn::AsinOp>},
    {"Acos", 7, unary<nn::AcosOp>},
    {"Atan", 7, unary<nn::AtanOp>},
    {"Sinh", 9, unary<nn::SinhOp>},
    {"Cosh", 9, unary<nn::CoshOp>},
    {"Asinh", 9, unary<nn::AsinhOp>},
    {"Acosh", 9, unary<nn::AcoshOp>},
    {"Atanh", 9, unary<nn::AtanhOp>},
    {"Sigmoid", 6, unary<nn::SigmoidOp>},
    {"Relu", 6, unary<nn::ReluOp>},
    {"Floor", 6, unary<nn::FloorOp>},
    {"Ceil", 6, unary<nn::CeilOp>},
    {"Round", 11, unary<nn::RoundOp>},
    {"Sign", 9, unary<nn::SignOp>},
    {"Not", 1, unary<nn::NotOp>},
    {"IsNaN", 9, unary<nn::IsNanOp>},
    {"IsInf", 10, isInf},
    {"Add", 7, add},
    {"Sub", 7, binary<nn::SubOp>},
    {"Mul", 7, binary<nn::MulOp>},
    {"Div", 7, binary<nn::DivOp>},
    {"Mod", 10, mod},
    {"Pow", 7, pow},
    {"And", 7, binary<nn::AndOp>},
    {"Or", 7, binary<nn::OrOp>},
    {"Xor", 7, binary<nn::XorOp>},
    {"BitwiseAnd", 18, binary<nn::AndOp>},
    {"BitwiseOr", 18, binary<nn::OrOp>},
    {"BitwiseXor", 18, binary<nn::XorOp>},
    {"BitwiseNot", 18, bitwiseNot},
    {"BitShift", 11, bitShift},
    {"BitCast", 26, bitCast},
    {"Max", 8, variadic<nn::MaxOp>},
    {"Min", 8, variadic<nn::MinOp>},
    {"Sum", 8, sum},
    {"Mean", 8, inF32<mean>},
    {"Equal", 7, compare<nn::ComparePredicate::eq>},
    {"Less", 7, compare<nn::ComparePredicate::lt>},
    {"LessOrEqual", 12, compare<nn::ComparePredicate::le>},
    {"Greater", 7, compare<nn::ComparePredicate::gt>},
    {"GreaterOrEqual", 12, compare<nn::ComparePredicate::ge>},
    {"Where", 9, where},
    {"Cast", 6, cast},
    {"CastLike", 15, castLike},
    {"Clip", 6, oldClip},
    {"Clip", 11, clip},
    {"Identity", 1, identity},
};

} // namespace

ArrayRef<OnnxOp> elementwiseOps() { return elementwiseTable; }

} // namespace hpc::onnx
