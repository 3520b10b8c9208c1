// The meaning of every elementwise op on one element, one line an op; then the loops.
// Each has up to three forms: on floats, on integers, and on u64, where the latter differ. What C++ leaves open is
// defined here.
#include "compiler/Interpreter/Evaluators.h"

#include <cmath>

namespace hpc::interpreter {

namespace {

using Natural = uint64_t;

// ---- definitions on one element -----------------------------------------------------------------

int64_t wrappingAdd(int64_t a, int64_t b) { return int64_t(Natural(a) + Natural(b)); }
int64_t wrappingSub(int64_t a, int64_t b) { return int64_t(Natural(a) - Natural(b)); }
int64_t wrappingMul(int64_t a, int64_t b) { return int64_t(Natural(a) * Natural(b)); }
int64_t negate(int64_t a) { return wrappingSub(0, a); }
/// Truncates; x / 0 is 0, the lowest over -1 wraps to itself.
int64_t divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? negate(a) : a / b; }
/// Sign of the dividend; x % 0 is 0.
int64_t remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
/// Sign of the divisor.
int64_t modulo(int64_t a, int64_t b) {
  int64_t rest = remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
/// Counts out of range, negative ones included, shift everything out; narrow types are held widened, so that 64 bits
/// are theirs as well.
int64_t shiftLeft(int64_t a, int64_t count) { return Natural(count) >= 64 ? 0 : int64_t(Natural(a) << count); }
int64_t shiftRight(int64_t a, int64_t count) { return a >> std::min<Natural>(Natural(count), 63); }
Natural naturalShiftRight(Natural a, Natural count) { return count >= 64 ? 0 : a >> count; }
Natural naturalDivide(Natural a, Natural b) { return b == 0 ? 0 : a / b; }
Natural naturalRemainder(Natural a, Natural b) { return b == 0 ? 0 : a % b; }
Natural naturalPower(Natural base, Natural exponent) {
  Natural result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1)
      result *= base;
  return result;
}
/// A negative exponent gives what truncating the reciprocal gives: 0, or +-1 for a base of +-1.
int64_t power(int64_t base, int64_t exponent) {
  if (exponent >= 0)
    return int64_t(naturalPower(Natural(base), Natural(exponent)));
  return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
}
double modulo(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest == 0 ? std::copysign(0.0, b) : rest;
}
/// NaN propagates; -0 is less than +0 (IEEE 754-2019, maximum and minimum).
double larger(double a, double b) { return std::isnan(a) || (a == b ? !std::signbit(a) : a > b) ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || (a == b ? std::signbit(a) : a < b) ? a : b; }
double signOf(double a) { return std::isnan(a) ? a : (a > 0) - (a < 0); }
double relu(double a) { return a > 0 || std::isnan(a) ? a : 0.0; }
double sigmoid(double a) { return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a)); }
double geluErf(double a) { return 0.5 * a * (1 + std::erf(a * M_SQRT1_2)); }
double geluErfInSingle(double a) { return 0.5 * a * float(1 + float(std::erf(a * M_SQRT1_2))); }
double geluTanh(double a) { return 0.5 * a * (1 + std::tanh(M_2_SQRTPI * M_SQRT1_2 * (a + 0.044715 * a * a * a))); }

struct Unary {
  double (*real)(double) = nullptr;
  int64_t (*whole)(int64_t) = nullptr;
  Natural (*natural)(Natural) = nullptr; ///< on u64; null where `whole` has the same bits
};
struct Binary {
  double (*real)(double, double) = nullptr;
  int64_t (*whole)(int64_t, int64_t) = nullptr;
  Natural (*natural)(Natural, Natural) = nullptr; ///< on u64; null where `whole` has the same bits
};
struct Predicate {
  bool (*real)(double);
  bool whole; ///< the answer for every integer
};

Status meaningless(Operation *op, DType dtype) {
  return Status::error(ErrorKind::Unsupported, describeOp(op) + " has no meaning on " + name(dtype));
}

// ---- loops --------------------------------------------------------------------------------------

Results evaluate(Operation *op, const Unary &unary, const Tensor &operand) {
  Tensor result = emptyLike(op->getResult(0));
  if (operand.isFloat() ? !unary.real : !unary.whole)
    return meaningless(op, operand.dtype);
  for (size_t i = 0; i < operand.floats.size(); ++i)
    result.floats[i] = unary.real(operand.floats[i]);
  bool isNatural = operand.dtype == DType::U64 && unary.natural;
  for (size_t i = 0; i < operand.ints.size(); ++i)
    result.ints[i] = isNatural ? int64_t(unary.natural(Natural(operand.ints[i]))) : unary.whole(operand.ints[i]);
  return one(std::move(result));
}

/// Calls visit(result index, lhs index, rhs index) for the elements of a broadcast.
template <typename Visit> void forEachPair(const Tensor &result, const Tensor &lhs, const Tensor &rhs, Visit visit) {
  if (lhs.shape == result.shape && rhs.shape == result.shape) {
    for (int64_t i = 0, count = elementCount(result.shape); i < count; ++i)
      visit(i, i, i);
    return;
  }
  forEachElement<2>(result.shape,
                    {broadcastStrides(lhs.shape, result.shape), broadcastStrides(rhs.shape, result.shape)}, {0, 0},
                    [&](int64_t i, const std::array<int64_t, 2> &at) { visit(i, at[0], at[1]); });
}

Results evaluate(Operation *op, const Binary &binary, const Tensor &lhs, const Tensor &rhs) {
  Tensor result = emptyLike(op->getResult(0));
  bool isNatural = lhs.dtype == DType::U64 && binary.natural;
  if (lhs.isFloat() ? !binary.real : !binary.whole)
    return meaningless(op, lhs.dtype);
  if (lhs.isFloat() && rhs.isFloat())
    forEachPair(result, lhs, rhs,
                [&](int64_t i, int64_t a, int64_t b) { result.floats[i] = binary.real(lhs.floats[a], rhs.floats[b]); });
  else if (lhs.isFloat() || rhs.isFloat()) // pow alone mixes types; the result has the base's
    forEachPair(result, lhs, rhs, [&](int64_t i, int64_t a, int64_t b) {
      result.setNumber(i, binary.real(lhs.number(a), rhs.number(b)));
    });
  else if (isNatural)
    forEachPair(result, lhs, rhs, [&](int64_t i, int64_t a, int64_t b) {
      result.ints[i] = int64_t(binary.natural(Natural(lhs.ints[a]), Natural(rhs.ints[b])));
    });
  else
    forEachPair(result, lhs, rhs,
                [&](int64_t i, int64_t a, int64_t b) { result.ints[i] = binary.whole(lhs.ints[a], rhs.ints[b]); });
  return one(std::move(result));
}

Results evaluate(Operation *op, const Predicate &predicate, const Tensor &operand) {
  Tensor result = emptyLike(op->getResult(0));
  for (int64_t i = 0; i < operand.size(); ++i)
    result.ints[i] = operand.isFloat() ? predicate.real(operand.floats[i]) : predicate.whole;
  return one(std::move(result));
}

template <typename T> bool holds(nn::ComparePredicate predicate, T a, T b) {
  switch (predicate) {
  case nn::ComparePredicate::eq:
    return a == b;
  case nn::ComparePredicate::ne:
    return a != b;
  case nn::ComparePredicate::lt:
    return a < b;
  case nn::ComparePredicate::le:
    return a <= b;
  case nn::ComparePredicate::gt:
    return a > b;
  case nn::ComparePredicate::ge:
    return a >= b;
  }
  llvm_unreachable("a predicate without a meaning");
}

Results evaluateCompare(nn::CompareOp op, Operands operands) {
  const Tensor &lhs = *operands[0], &rhs = *operands[1];
  Tensor result = emptyLike(op.getResult());
  nn::ComparePredicate predicate = op.getPredicate();
  forEachPair(result, lhs, rhs, [&](int64_t i, int64_t a, int64_t b) {
    result.ints[i] = lhs.isFloat()             ? holds(predicate, lhs.floats[a], rhs.floats[b])
                     : lhs.dtype == DType::U64 ? holds(predicate, Natural(lhs.ints[a]), Natural(rhs.ints[b]))
                                               : holds(predicate, lhs.ints[a], rhs.ints[b]);
  });
  return one(std::move(result));
}

Results evaluateSelect(nn::SelectOp op, Operands operands) {
  Tensor result = emptyLike(op.getResult());
  const Tensor &condition = *operands[0], &onTrue = *operands[1], &onFalse = *operands[2];
  forEachElement<3>(result.shape,
                    {broadcastStrides(condition.shape, result.shape), broadcastStrides(onTrue.shape, result.shape),
                     broadcastStrides(onFalse.shape, result.shape)},
                    {0, 0, 0}, [&](int64_t i, const std::array<int64_t, 3> &at) {
                      bool isTrue = condition.ints[at[0]];
                      if (result.isFloat())
                        result.floats[i] = isTrue ? onTrue.floats[at[1]] : onFalse.floats[at[2]];
                      else
                        result.ints[i] = isTrue ? onTrue.ints[at[1]] : onFalse.ints[at[2]];
                    });
  return one(std::move(result));
}

Results evaluateCast(nn::CastOp op, Operands operands) {
  const Tensor &operand = *operands[0];
  Tensor result = emptyLike(op.getResult());
  if (operand.isFloat() && result.isFloat())
    result.floats = operand.floats;
  else if (operand.isFloat())
    for (int64_t i = 0; i < operand.size(); ++i)
      result.ints[i] = convertToInteger(result.dtype, operand.floats[i]);
  else if (result.isFloat())
    for (int64_t i = 0; i < operand.size(); ++i)
      result.floats[i] = convertToFloat(operand.dtype, operand.ints[i], result.dtype);
  else
    result.ints = operand.ints; // wrapped by round()
  return one(std::move(result));
}

template <typename Op> void unary(Evaluators &evaluators, Unary definition) {
  evaluators.add<Op>([=](Op op, Operands operands) { return evaluate(op, definition, *operands[0]); });
}
template <typename Op> void binary(Evaluators &evaluators, Binary definition) {
  evaluators.add<Op>([=](Op op, Operands operands) { return evaluate(op, definition, *operands[0], *operands[1]); });
}
template <typename Op> void predicate(Evaluators &evaluators, Predicate definition) {
  evaluators.add<Op>([=](Op op, Operands operands) { return evaluate(op, definition, *operands[0]); });
}

} // namespace

// ---- the table ----------------------------------------------------------------------------------

#define REAL(expression) [](double a) -> double { return expression; }
#define WHOLE(expression) [](int64_t a) -> int64_t { return expression; }
#define NATURAL(expression) [](Natural a) -> Natural { return expression; }
#define REALS(expression) [](double a, double b) -> double { return expression; }
#define WHOLES(expression) [](int64_t a, int64_t b) -> int64_t { return expression; }
#define NATURALS(expression) [](Natural a, Natural b) -> Natural { return expression; }

void addElementwise(Evaluators &table) {
  // clang-format off
  unary<nn::NegOp>(table, {REAL(-a), WHOLE(negate(a))});
  unary<nn::AbsOp>(table, {REAL(std::fabs(a)), WHOLE(a < 0 ? negate(a) : a), NATURAL(a)});
  unary<nn::ExpOp>(table, {REAL(std::exp(a))});
  unary<nn::LogOp>(table, {REAL(std::log(a))});
  unary<nn::SqrtOp>(table, {REAL(std::sqrt(a))});
  unary<nn::ReciprocalOp>(table, {REAL(1 / a)});
  unary<nn::TanhOp>(table, {REAL(std::tanh(a))});
  unary<nn::ErfOp>(table, {REAL(std::erf(a))});
  unary<nn::SinOp>(table, {REAL(std::sin(a))});
  unary<nn::CosOp>(table, {REAL(std::cos(a))});
  unary<nn::TanOp>(table, {REAL(std::tan(a))});
  unary<nn::AsinOp>(table, {REAL(std::asin(a))});
  unary<nn::AcosOp>(table, {REAL(std::acos(a))});
  unary<nn::AtanOp>(table, {REAL(std::atan(a))});
  unary<nn::SinhOp>(table, {REAL(std::sinh(a))});
  unary<nn::CoshOp>(table, {REAL(std::cosh(a))});
  unary<nn::AsinhOp>(table, {REAL(std::asinh(a))});
  unary<nn::AcoshOp>(table, {REAL(std::acosh(a))});
  unary<nn::AtanhOp>(table, {REAL(std::atanh(a))});
  unary<nn::SigmoidOp>(table, {REAL(sigmoid(a))});
  unary<nn::ReluOp>(table, {REAL(relu(a)), WHOLE(std::max<int64_t>(a, 0)), NATURAL(a)});
  unary<nn::FloorOp>(table, {REAL(std::floor(a)), WHOLE(a)});
  unary<nn::CeilOp>(table, {REAL(std::ceil(a)), WHOLE(a)});
  unary<nn::RoundOp>(table, {REAL(std::nearbyint(a)), WHOLE(a)});
  unary<nn::SignOp>(table, {REAL(signOf(a)), WHOLE((a > 0) - (a < 0)), NATURAL(a > 0)});
  unary<nn::DetachOp>(table, {REAL(a), WHOLE(a)});
  unary<nn::NotOp>(table, {nullptr, WHOLE(!a)});
  predicate<nn::IsNanOp>(table, {[](double a) { return std::isnan(a); }, false});
  predicate<nn::IsInfOp>(table, {[](double a) { return std::isinf(a); }, false});
  binary<nn::AddOp>(table, {REALS(a + b), WHOLES(wrappingAdd(a, b))});
  binary<nn::SubOp>(table, {REALS(a - b), WHOLES(wrappingSub(a, b))});
  binary<nn::MulOp>(table, {REALS(a * b), WHOLES(wrappingMul(a, b))});
  binary<nn::DivOp>(table, {REALS(a / b), WHOLES(divide(a, b)), NATURALS(naturalDivide(a, b))});
  binary<nn::ModOp>(table, {REALS(modulo(a, b)), WHOLES(modulo(a, b)), NATURALS(naturalRemainder(a, b))});
  binary<nn::FmodOp>(table, {REALS(std::fmod(a, b)), WHOLES(remainder(a, b)), NATURALS(naturalRemainder(a, b))});
  binary<nn::PowOp>(table, {REALS(std::pow(a, b)), WHOLES(power(a, b)), NATURALS(naturalPower(a, b))});
  binary<nn::MaxOp>(table, {REALS(larger(a, b)), WHOLES(std::max(a, b)), NATURALS(std::max(a, b))});
  binary<nn::MinOp>(table, {REALS(smaller(a, b)), WHOLES(std::min(a, b)), NATURALS(std::min(a, b))});
  binary<nn::AndOp>(table, {nullptr, WHOLES(a & b)});
  binary<nn::OrOp>(table, {nullptr, WHOLES(a | b)});
  binary<nn::XorOp>(table, {nullptr, WHOLES(a ^ b)});
  binary<nn::ShiftLeftOp>(table, {nullptr, WHOLES(shiftLeft(a, b))});
  binary<nn::ShiftRightOp>(table, {nullptr, WHOLES(shiftRight(a, b)), NATURALS(naturalShiftRight(a, b))});
  // clang-format on
  table.add<nn::CompareOp>(evaluateCompare);
  table.add<nn::SelectOp>(evaluateSelect);
  table.add<nn::CastOp>(evaluateCast);
  table.add<nn::BitcastOp>([](nn::BitcastOp op, Operands operands) {
    auto type = op.getResult().getType();
    return one(tensorFromBytes(dtypeOf(type), operands[0]->shape, tensorToBytes(*operands[0]).data()));
  });
  table.add<nn::GeluOp>([](nn::GeluOp op, Operands operands, const EvalOptions &options) {
    auto erfForm = sumsInSingle(options, operands[0]->dtype) ? geluErfInSingle : geluErf;
    return evaluate(op, Unary{op.getTanhApproximation() ? geluTanh : erfForm}, *operands[0]);
  });
}

} // namespace hpc::interpreter
