// The code of every elementwise op on one element, one line an op, in the order of compiler/Dialect/NN/Elementwise.td.
// Where C++ leaves integers undefined, compiler/Interpreter/Elementwise.cpp defines them: they wrap, and x / 0 is 0.
#include "passes/Kernels/Elements/ScalarBuilder.h"

#include "compiler/Dialect/NN/NN.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

namespace hpc::kernels {
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace {
using S = ScalarBuilder &;

Value isZero(S s, Value a) { return s.compare(CmpIPredicate::eq, a, s.whole(a.getType(), 0)); }
Value isNan(S s, Value a) { return s.compare(CmpFPredicate::UNO, a, a); }
Value isNegative(S s, Value a) {
  return ScalarBuilder::isReal(a) ? s.compare(CmpFPredicate::OLT, a, s.like(a, 0))
                                  : s.compare(CmpIPredicate::slt, a, s.like(a, 0));
}
Value negate(S s, Value a) { return ScalarBuilder::isReal(a) ? s.negReal(a) : s.sub(s.like(a, 0), a); }
Value never(S s) { return s.whole(s.builder.getI1Type(), 0); }

Value absolute(S s, Value a, bool natural) {
  if (ScalarBuilder::isReal(a))
    return s.make<math::AbsFOp>(a);
  return natural ? a : s.select(isNegative(s, a), negate(s, a), a);
}

/// Truncating division or remainder of integers. The divisors that trap (0, and -1 under the lowest number) never reach
/// the instruction.
Value divide(S s, Value a, Value b, bool natural, bool wantsRemainder) {
  Value zero = s.like(a, 0), one = s.like(a, 1);
  Value isBad = isZero(s, b);
  Value minusOne = never(s);
  if (!natural) {
    minusOne = s.compare(CmpIPredicate::eq, b, s.like(a, -1));
    isBad = s.make<arith::OrIOp>(isBad, minusOne);
  }
  Value divisor = s.select(isBad, one, b);
  if (wantsRemainder) {
    Value rest = natural ? s.make<arith::RemUIOp>(a, divisor) : s.make<arith::RemSIOp>(a, divisor);
    return s.select(isBad, zero, rest);
  }
  Value quotient = natural ? s.make<arith::DivUIOp>(a, divisor) : s.make<arith::DivSIOp>(a, divisor);
  return s.select(isBad, s.select(minusOne, negate(s, a), zero), quotient);
}

/// Shifts are defined for every count, which is why the amount that reaches the instruction is bounded.
Value shift(S s, Value a, Value count, bool natural, bool isLeft) {
  int64_t width = a.getType().getIntOrFloatBitWidth();
  if (!isLeft && !natural)
    return s.make<arith::ShRSIOp>(a, s.make<arith::MinUIOp>(count, s.whole(a.getType(), width - 1)));
  Value isOut = s.compare(CmpIPredicate::uge, count, s.whole(a.getType(), width)), zero = s.like(a, 0);
  Value amount = s.select(isOut, zero, count);
  return s.select(isOut, zero, isLeft ? s.make<arith::ShLIOp>(a, amount) : s.make<arith::ShRUIOp>(a, amount));
}

/// The remainder with the sign of the divisor.
Value modulo(S s, Value a, Value b, bool natural) {
  bool real = ScalarBuilder::isReal(a);
  Value rest = real ? s.make<arith::RemFOp>(a, b) : divide(s, a, b, natural, true);
  if (natural)
    return rest;
  Value differs = s.make<arith::XOrIOp>(isNegative(s, rest), isNegative(s, b));
  Value zero = s.like(a, 0);
  if (!real)
    return s.select(isZero(s, rest), rest, s.select(differs, s.add(rest, b), rest));
  Value isNull = s.compare(CmpFPredicate::OEQ, rest, zero);
  return s.select(isNull, s.make<math::CopySignOp>(zero, b), s.select(differs, s.add(rest, b), rest));
}

/// Powers of integers by squaring; a negative exponent gives the truncated reciprocal.
Value integerPower(S s, Value base, Value exponent, bool naturalBase, bool naturalExponent) {
  Type i64 = s.builder.getI64Type();
  auto widen = [&](Value a, bool natural) -> Value {
    if (a.getType() == i64)
      return a;
    return natural ? arith::ExtUIOp::create(s.builder, s.loc, i64, a).getResult()
                   : arith::ExtSIOp::create(s.builder, s.loc, i64, a).getResult();
  };
  Value a = widen(base, naturalBase), n = widen(exponent, naturalExponent);
  Value zero = s.whole(i64, 0), one = s.whole(i64, 1);
  auto loop =
      scf::ForOp::create(s.builder, s.loc, zero, s.whole(i64, 64), one, ValueRange{one, a, n},
                         [&](OpBuilder &, Location, Value, ValueRange state) {
                           Value isOdd = s.compare(CmpIPredicate::ne, s.make<arith::AndIOp>(state[2], one), zero);
                           Value product = s.select(isOdd, s.mul(state[0], state[1]), state[0]);
                           Value next = s.make<arith::ShRUIOp>(state[2], one);
                           scf::YieldOp::create(s.builder, s.loc, ValueRange{product, s.mul(state[1], state[1]), next});
                         });
  Value result = loop.getResult(0);
  if (!naturalExponent) {
    Value isOdd = s.compare(CmpIPredicate::ne, s.make<arith::AndIOp>(n, one), zero);
    Value minusOne = s.whole(i64, -1);
    Value ofMinusOne = s.select(isOdd, minusOne, one);
    Value small = s.select(s.compare(CmpIPredicate::eq, a, minusOne), ofMinusOne, zero);
    small = s.select(s.compare(CmpIPredicate::eq, a, one), one, small);
    result = s.select(isNegative(s, n), small, result);
  }
  return base.getType() == i64 ? result : arith::TruncIOp::create(s.builder, s.loc, base.getType(), result).getResult();
}

Value power(S s, nn::PowOp op, Value base, Value exponent) {
  Type baseType = getElementTypeOrSelf(op.getLhs()), exponentType = getElementTypeOrSelf(op.getRhs());
  bool realBase = isa<FloatType>(baseType), realExponent = isa<FloatType>(exponentType);
  if (!realBase && !realExponent)
    return integerPower(s, base, exponent, isUnsigned(baseType), isUnsigned(exponentType));
  Attribute known;
  matchPattern(exponent, m_Constant(&known));
  for (int64_t small : {2, 3}) {
    auto real = dyn_cast_if_present<FloatAttr>(known);
    auto whole = dyn_cast_if_present<IntegerAttr>(known);
    if (realBase && ((real && real.getValueAsDouble() == double(small)) || (whole && whole.getValue() == small)))
      return small == 2 ? s.mul(base, base) : s.mul(s.mul(base, base), base);
  }
  // f32 would round an integer exponent, and with it its parity.
  Type f64 = s.builder.getF64Type(),
       common = realBase && realExponent && !exponent.getType().isF64() ? base.getType() : f64;
  Value result = s.make<math::PowFOp>(emitCast(s, base, baseType, common), emitCast(s, exponent, exponentType, common));
  return emitCast(s, result, common, baseType);
}

/// 1 / (1 + exp(-|a|)), times exp(-|a|) below 0, where it would lose its small values.
Value sigmoid(S s, Value a) {
  Value one = s.like(a, 1), tail = emitExpBelowZero(s, s.negReal(s.make<math::AbsFOp>(a)));
  return s.divReal(s.select(isNegative(s, a), tail, one), s.contracting().add(one, tail));
}
/// x Phi(x) as x / 2 + x (Phi(x) - 1/2), rounded once. The tanh form as x / (1 + exp(-2u)), which is the same function and
/// loses nothing to cancellation.
Value gelu(S s, Value a, bool tanhApproximation) {
  if (!tanhApproximation && a.getType().isF32())
    return s.fma(a, emitNormalBeyondHalf(s, a), s.mul(s.like(a, 0.5), a));
  if (!tanhApproximation)
    return s.mul(s.mul(s.like(a, 0.5), a), s.add(s.like(a, 1), emitErf(s, s.mul(a, s.like(a, M_SQRT1_2)))));
  const double c = -2 * M_2_SQRTPI * M_SQRT1_2;
  Value twice = s.mul(a, s.fma(s.mul(a, a), s.like(a, 0.044715 * c), s.like(a, c)));
  return s.divReal(a, emitOnePlusExp(s, twice));
}
/// A difference of a softmax that is written out: x - max x, with no view between, which could set another row's maximum beside it.
bool isMinusItsLargest(Value difference) {
  auto sub = difference.getDefiningOp<nn::SubOp>();
  auto top = sub ? sub.getRhs().getDefiningOp<nn::ReduceOp>() : nn::ReduceOp();
  return top && top.getKind() == ReduceKind::Max && top.getOperand() == sub.getLhs();
}
Value sign(S s, Value a, bool natural) {
  Value zero = s.like(a, 0), one = s.like(a, 1);
  if (ScalarBuilder::isReal(a)) {
    Value positive = s.select(s.compare(CmpFPredicate::OGT, a, zero), one, zero);
    return s.select(isNan(s, a), a, s.select(isNegative(s, a), s.like(a, -1), positive));
  }
  Value nonzero = s.select(isZero(s, a), zero, one);
  return natural ? nonzero : s.select(isNegative(s, a), s.like(a, -1), nonzero);
}
Value round(S s, Value a, Value (*real)(S, Value)) { return ScalarBuilder::isReal(a) ? real(s, a) : a; }

Value larger(S s, Value a, Value b, bool natural) {
  return ScalarBuilder::isReal(a) ? s.make<arith::MaximumFOp>(a, b)
         : natural                ? s.make<arith::MaxUIOp>(a, b)
                                  : s.make<arith::MaxSIOp>(a, b);
}
Value smaller(S s, Value a, Value b, bool natural) {
  return ScalarBuilder::isReal(a) ? s.make<arith::MinimumFOp>(a, b)
         : natural                ? s.make<arith::MinUIOp>(a, b)
                                  : s.make<arith::MinSIOp>(a, b);
}

Value compare(S s, nn::ComparePredicate predicate, Value a, Value b, bool natural) {
  struct Row {
    CmpFPredicate real;
    CmpIPredicate whole, natural;
  };
  // In the order of the enum; an ordered comparison with NaN is false, `ne` is true.
  static const Row rows[] = {{CmpFPredicate::OEQ, CmpIPredicate::eq, CmpIPredicate::eq},
                             {CmpFPredicate::UNE, CmpIPredicate::ne, CmpIPredicate::ne},
                             {CmpFPredicate::OLT, CmpIPredicate::slt, CmpIPredicate::ult},
                             {CmpFPredicate::OLE, CmpIPredicate::sle, CmpIPredicate::ule},
                             {CmpFPredicate::OGT, CmpIPredicate::sgt, CmpIPredicate::ugt},
                             {CmpFPredicate::OGE, CmpIPredicate::sge, CmpIPredicate::uge}};
  const Row &row = rows[int(predicate)];
  return ScalarBuilder::isReal(a) ? s.compare(row.real, a, b) : s.compare(natural ? row.natural : row.whole, a, b);
}

/// Float to integer: toward zero, saturating, NaN is 0. The instruction's result out of range is never selected.
Value toInteger(S s, Value a, Type type, bool natural) {
  unsigned width = type.getIntOrFloatBitWidth();
  Value lowest = s.like(a, natural ? 0.0 : -std::ldexp(1.0, int(width) - 1)),
        above = s.like(a, std::ldexp(1.0, int(width) - !natural));
  APInt max = natural ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  APInt min = natural ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  auto limit = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(s.builder, s.loc, IntegerAttr::get(type, value));
  };
  Value converted = natural ? arith::FPToUIOp::create(s.builder, s.loc, type, a).getResult()
                            : arith::FPToSIOp::create(s.builder, s.loc, type, a).getResult();
  converted = s.select(s.compare(CmpFPredicate::OLE, a, lowest), limit(min), converted);
  converted = s.select(s.compare(CmpFPredicate::OGE, a, above), limit(max), converted);
  return s.select(isNan(s, a), s.whole(type, 0), converted);
}

/// Bits as another type: the bits in memory, if registers are wider.
Value bitcast(S s, Value a, Type from, Type to) {
  Value bits = registerType(from) == from || !isa<FloatType>(from) ? a : s.narrow(a, from);
  if (isa<FloatType>(to) && registerType(to) != to)
    return s.widen(isa<FloatType>(bits.getType()) ? s.bitcast(s.builder.getIntegerType(to.getIntOrFloatBitWidth()), bits) : bits, to);
  return bits.getType() == registerType(to) ? bits : s.bitcast(registerType(to), bits);
}

/// Arguments of a line of the table: the op, its operands' elements, and whether operand 0 is unsigned or bool.
struct Arguments {
  Operation *op;
  ArrayRef<Value> operands;
  bool natural;
};
using Emit = Value (*)(S, const Arguments &);
} // namespace

Value emitCast(ScalarBuilder &s, Value a, Type from, Type to) {
  Type type = registerType(to);
  OpBuilder &b = s.builder;
  bool natural = isUnsigned(from);
  if (to.isInteger(1) && a.getType() != type)
    return ScalarBuilder::isReal(a) ? s.compare(CmpFPredicate::UNE, a, s.like(a, 0))
                                    : s.compare(CmpIPredicate::ne, a, s.like(a, 0));
  if (ScalarBuilder::isReal(a) && isa<FloatType>(type)) {
    if (Type wanted = ScalarBuilder::inLanesOf(a, type); a.getType() != wanted)
      a = type.isF64() ? arith::ExtFOp::create(b, s.loc, wanted, a).getResult()
                       : arith::TruncFOp::create(b, s.loc, wanted, a).getResult();
    return s.round(a, to);
  }
  if (ScalarBuilder::isReal(a))
    return toInteger(s, a, type, isUnsigned(to));
  if (isa<FloatType>(type)) {
    Type wide = to == type ? type : Type(b.getF64Type());
    Value converted = natural ? arith::UIToFPOp::create(b, s.loc, wide, a).getResult()
                              : arith::SIToFPOp::create(b, s.loc, wide, a).getResult();
    return wide == type ? converted : emitCast(s, converted, wide, to);
  }
  unsigned fromWidth = a.getType().getIntOrFloatBitWidth(), toWidth = type.getIntOrFloatBitWidth();
  if (fromWidth == toWidth)
    return a;
  if (fromWidth > toWidth)
    return arith::TruncIOp::create(b, s.loc, type, a);
  return natural ? arith::ExtUIOp::create(b, s.loc, type, a).getResult()
                 : arith::ExtSIOp::create(b, s.loc, type, a).getResult();
}

Value emitCasts(ScalarBuilder &s, Value a, Type from, ArrayRef<Type> to) {
  for (Type next : to) {
    a = emitCast(s, a, from, next);
    from = next;
  }
  return a;
}

// ---- the table ----------------------------------------------------------------------------------

#define LINE(Op, expression)                                                                                           \
  {nn::Op::getOperationName(), [](S s, const Arguments &x) -> Value {                                                  \
     [[maybe_unused]] Value a = x.operands[0], b = x.operands.size() > 1 ? x.operands[1] : Value();                    \
     return expression;                                                                                                \
   }}

static const llvm::StringMap<Emit> &scalarTable() {
  // clang-format off
  static const llvm::StringMap<Emit> lines = {
      LINE(NegOp, negate(s, a)),
      LINE(AbsOp, absolute(s, a, x.natural)),
      LINE(ExpOp, isMinusItsLargest(x.op->getOperand(0)) ? emitExpBelowZero(s, a) : emitExp(s, a)),
      LINE(LogOp, s.make<math::LogOp>(a)),
      LINE(SqrtOp, s.make<math::SqrtOp>(a)),
      LINE(ReciprocalOp, s.divReal(s.like(a, 1), a)),
      LINE(TanhOp, emitTanh(s, a)),
      LINE(ErfOp, emitErf(s, a)),
      LINE(SinOp, s.make<math::SinOp>(a)),
      LINE(CosOp, s.make<math::CosOp>(a)),
      LINE(TanOp, emitLibm(s, "tan", a)),
      LINE(AsinOp, emitLibm(s, "asin", a)),
      LINE(AcosOp, emitLibm(s, "acos", a)),
      LINE(AtanOp, emitLibm(s, "atan", a)),
      LINE(SinhOp, emitLibm(s, "sinh", a)),
      LINE(CoshOp, emitLibm(s, "cosh", a)),
      LINE(AsinhOp, emitLibm(s, "asinh", a)),
      LINE(AcoshOp, emitLibm(s, "acosh", a)),
      LINE(AtanhOp, emitLibm(s, "atanh", a)),
      LINE(SigmoidOp, sigmoid(s, a)),
      LINE(ReluOp, ScalarBuilder::isReal(a) ? s.select(s.compare(CmpFPredicate::UGT, a, s.like(a, 0)), a, s.like(a, 0)) : larger(s, a, s.like(a, 0), x.natural)),
      LINE(FloorOp, round(s, a, [](S s, Value a) { return s.make<math::FloorOp>(a); })),
      LINE(CeilOp, round(s, a, [](S s, Value a) { return s.make<math::CeilOp>(a); })),
      LINE(RoundOp, round(s, a, [](S s, Value a) { return s.make<math::RoundEvenOp>(a); })),
      LINE(SignOp, sign(s, a, x.natural)),
      LINE(DetachOp, a),
      LINE(NotOp, emitCast(s, isZero(s, a), s.builder.getI1Type(), getElementTypeOrSelf(x.op->getResult(0)))),
      LINE(IsNanOp, ScalarBuilder::isReal(a) ? isNan(s, a) : never(s)),
      LINE(IsInfOp, ScalarBuilder::isReal(a) ? s.compare(CmpFPredicate::OEQ, s.make<math::AbsFOp>(a), s.like(a, INFINITY)) : never(s)),
      LINE(AddOp, s.add(a, b)),
      LINE(SubOp, s.sub(a, b)),
      LINE(MulOp, s.mul(a, b)),
      LINE(DivOp, ScalarBuilder::isReal(a) ? s.divReal(a, b) : divide(s, a, b, x.natural, false)),
      LINE(ModOp, modulo(s, a, b, x.natural)),
      LINE(FmodOp, ScalarBuilder::isReal(a) ? s.make<arith::RemFOp>(a, b) : divide(s, a, b, x.natural, true)),
      LINE(PowOp, power(s, cast<nn::PowOp>(x.op), a, b)),
      LINE(MaxOp, larger(s, a, b, x.natural)),
      LINE(MinOp, smaller(s, a, b, x.natural)),
      LINE(AndOp, s.make<arith::AndIOp>(a, b)),
      LINE(OrOp, s.make<arith::OrIOp>(a, b)),
      LINE(XorOp, s.make<arith::XOrIOp>(a, b)),
      LINE(ShiftLeftOp, shift(s, a, b, x.natural, true)),
      LINE(ShiftRightOp, shift(s, a, b, x.natural, false)),
      LINE(CompareOp, compare(s, cast<nn::CompareOp>(x.op).getPredicate(), a, b, x.natural)),
      LINE(SelectOp, s.select(a, b, x.operands[2])),
      LINE(CastOp, emitCast(s, a, getElementTypeOrSelf(x.op->getOperand(0)), getElementTypeOrSelf(x.op->getResult(0)))),
      LINE(BitcastOp, bitcast(s, a, getElementTypeOrSelf(x.op->getOperand(0)), getElementTypeOrSelf(x.op->getResult(0)))),
      LINE(GeluOp, gelu(s, a, cast<nn::GeluOp>(x.op).getTanhApproximation())),
  };
  // clang-format on
  return lines;
}

bool hasScalarEmitter(OperationName name) { return scalarTable().contains(name.getStringRef()); }

Value emitScalar(ScalarBuilder &s, Operation *op, ArrayRef<Value> operands) {
  Value result = scalarTable().lookup(op->getName().getStringRef())(
      s, {op, operands, isUnsigned(getElementTypeOrSelf(op->getOperand(0)))});
  return s.round(result, getElementTypeOrSelf(op->getResult(0)));
}

} // namespace hpc::kernels
