// exp, tanh, erf and GELU's part of f32 as branch-free polynomials that vectorize; NaN and infinities as in libm.
// Bounds, measured on half a million floats of all exponents against libm in double precision
// (test/unit/passes/KernelsAccuracy.cpp): exp 0.9 ulp, tanh 1.5 ulp, erf 1 ulp. The cost is the number of operations
// (all but divisions are two a cycle), so each use has the shortest form that its range allows. Coefficients: exp and
// erf after N. Juffa's minimax fits, tanh after Cephes (S. Moshier, tanhf.c).
#include "passes/Kernels/Elements/ScalarBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hpc::kernels {
using arith::CmpFPredicate;

namespace {
/// Horner's rule, highest coefficient first.
Value horner(ScalarBuilder &s, Value x, Value sum, ArrayRef<double> coefficients) {
  for (double coefficient : coefficients)
    sum = s.fma(sum, x, s.like(x, coefficient));
  return sum;
}
/// Estrin's scheme, lowest coefficient first: neighbours joined at once, so that the chain is as long as a logarithm.
Value estrin(ScalarBuilder &s, Value x, ArrayRef<double> coefficients) {
  SmallVector<Value> terms;
  for (double coefficient : coefficients)
    terms.push_back(s.like(x, coefficient));
  for (; terms.size() > 1; x = s.mul(x, x)) {
    for (size_t i = 0; i + 1 < terms.size(); i += 2)
      terms[i / 2] = s.fma(terms[i + 1], x, terms[i]);
    if (terms.size() % 2 == 1)
      terms[terms.size() / 2] = terms.back();
    terms.resize((terms.size() + 1) / 2);
  }
  return terms.front();
}

} // namespace

Value emitLibm(ScalarBuilder &s, StringRef name, Value x) {
  auto module = s.builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  std::string typed = name.str() + (x.getType().isF32() ? "f" : "");
  auto function = module.lookupSymbol<func::FuncOp>(typed);
  if (!function) {
    OpBuilder::InsertionGuard guard(s.builder);
    s.builder.setInsertionPointToStart(module.getBody());
    function = func::FuncOp::create(s.builder, s.loc, typed, s.builder.getFunctionType(x.getType(), x.getType()));
    function.setPrivate();
  }
  return func::CallOp::create(s.builder, s.loc, function, x).getResult(0);
}

namespace {
/// exp x = 2^n power / scale, with x = n ln 2 + r and |r| <= ln 2 / 2. n comes from the rounding of a sum with
/// 1.5 * 2^23 + bias, whose lowest 9 bits then are n + bias: NaN needs no conversion to an integer, and a shift to the
/// exponent's place drops the other bits. `x` must be bounded so that n + bias is in 0..511.
struct Exponential {
  Value power, bits;

  Exponential(ScalarBuilder &s, Value x, double bias, double scale = 1) {
    Type i32 = s.builder.getI32Type();
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      i32 = vector.clone(i32);
    const double magic = 12582912.0 + bias;
    Value shifted = s.fma(x, s.like(x, 1.4426950408889634), s.like(x, magic));
    Value n = s.sub(shifted, s.like(x, magic));
    Value r = s.fma(n, s.like(x, -0x1.62e400p-1), x);
    r = s.fma(n, s.like(x, -0x1.7f7d1cp-20), r);
    power = s.like(x, scale * 0x1.694000p-10);
    for (double coefficient : {0x1.125edcp-7, 0x1.555b5ap-5, 0x1.555450p-3, 0x1.fffff6p-2, 1.0, 1.0})
      power = s.fma(power, r, s.like(x, scale * coefficient));
    bits = s.bitcast(i32, shifted);
  }
};

/// 2^(e - 127) of the lowest 9 bits e, which are in 0..254; of 255 infinity.
Value powerOfTwo(ScalarBuilder &s, Type real, Value e) {
  return s.bitcast(real, s.make<arith::ShLIOp>(e, s.whole(e.getType(), 23)));
}
Value atMost(ScalarBuilder &s, Value x, double bound) {
  return s.select(s.compare(CmpFPredicate::OGT, x, s.like(x, bound)), s.like(x, bound), x);
}
Value atLeast(ScalarBuilder &s, Value x, double bound) {
  return s.select(s.compare(CmpFPredicate::OLT, x, s.like(x, bound)), s.like(x, bound), x);
}
} // namespace

// 2^n is applied in two halves, which reaches subnormals and infinity by one rounding.
Value emitExp(ScalarBuilder &s, Value x) {
  if (!getElementTypeOrSelf(x.getType()).isF32())
    return s.make<math::ExpOp>(x);
  Exponential exp(s, atLeast(s, atMost(s, x, 89.0), -104.0), 254);
  Value half = s.shiftRight(exp.bits, 1);
  ScalarBuilder exact = s.contracting();
  Value most = exact.mul(exp.power, powerOfTwo(s, x.getType(), half));
  return exact.mul(most, powerOfTwo(s, x.getType(), s.sub(exp.bits, half)));
}

// 2^n as 2^(n + 63) and 2^-63: subnormals need a second factor, and there is no end above. The bits are emitExp's, whose
// bias is even too, so that ties of n fall alike.
Value emitExpBelowZero(ScalarBuilder &s, Value x) {
  if (!getElementTypeOrSelf(x.getType()).isF32())
    return s.make<math::ExpOp>(x);
  Exponential exp(s, atLeast(s, x, -104.0), 127 + 63);
  ScalarBuilder exact = s.contracting();
  return exact.mul(exact.mul(exp.power, powerOfTwo(s, x.getType(), exp.bits)), s.like(x, 0x1p-63));
}

// No subnormals beside 1, so one factor is enough: 2^(n - 1), since 2^n ends below the largest exponential.
Value emitOnePlusExp(ScalarBuilder &s, Value x) {
  if (!getElementTypeOrSelf(x.getType()).isF32())
    return s.add(s.like(x, 1), s.make<math::ExpOp>(x));
  Exponential exp(s, atLeast(s, atMost(s, x, 89.0), -86.0), 127 - 1, 2);
  return s.fma(exp.power, powerOfTwo(s, x.getType(), exp.bits), s.like(x, 1));
}

// Near 0 an odd polynomial; elsewhere 1 - 2 / (exp(2|x|) + 1) with the sign of x.
Value emitTanh(ScalarBuilder &s, Value x) {
  if (!x.getType().isF32())
    return emitLibm(s, "tanh", x);
  Value magnitude = s.make<math::AbsFOp>(x), square = s.mul(x, x);
  Value series = horner(s, square, s.like(x, -5.70498872745e-3),
                        {2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value near = s.fma(s.mul(series, square), x, x);
  Value far = s.sub(s.like(x, 1), s.divReal(s.like(x, 2), emitOnePlusExp(s, s.add(magnitude, magnitude))));
  far = s.make<math::CopySignOp>(far, x);
  return s.select(s.compare(CmpFPredicate::OLT, magnitude, s.like(x, 0.625)), near, far);
}

// Near 0 an odd polynomial; elsewhere 1 - exp(polynomial) with the sign of x.
Value emitErf(ScalarBuilder &s, Value x) {
  if (!x.getType().isF32())
    return emitLibm(s, "erf", x);
  Value t = s.make<math::AbsFOp>(x), square = s.mul(x, x);
  Value upper = s.fma(s.like(x, -0x1.220000p-16), t, s.like(x, 0x1.91cfb2p-12));
  Value lower = s.fma(s.like(x, -0x1.fd1438p-9), t, s.like(x, 0x1.8d6342p-6));
  Value exponent = s.fma(upper, square, lower);
  exponent = horner(s, t, exponent, {-0x1.b55cb8p-4, -0x1.450aa0p-1, -0x1.079d0cp-3});
  exponent = s.fma(exponent, t, s.negReal(t));
  Exponential exp(s, atLeast(s, exponent, -86), 127); // beside 1, as in emitOnePlusExp
  Value far = s.fma(s.negReal(exp.power), powerOfTwo(s, x.getType(), exp.bits), s.like(x, 1));
  far = s.make<math::CopySignOp>(far, x);
  Value near = horner(s, square, s.like(x, -0x1.38e000p-11),
                      {0x1.471a58p-8, -0x1.b691b2p-6, 0x1.ce1c44p-4, -0x1.812700p-2, 0x1.06eba8p-3});
  near = s.fma(near, x, x);
  return s.select(s.compare(CmpFPredicate::OGT, t, s.like(x, 0.927734375)), far, near);
}

// Phi(x) - 1/2 = x P(x^2), cut at 1/2, which an x beyond 5.4 exceeds with the last P. P is a polynomial about the
// middle of its range, where no terms cancel; its last step is about 8, since a rounding of x^2 - middle counts most where
// x^2 is small. Coefficients: minimax in the error of x P (Lawson's weights), rounded to f32 one after the other. Over all
// f32 it is off by 9.5e-8 at most, and x / 2 + x times it by 1.55 ulp of x.
Value emitNormalBeyondHalf(ScalarBuilder &s, Value x) {
  Value square = atMost(s, s.mul(x, x), 0x1.d28f5ep+4);
  Value middle = s.sub(square, s.like(x, 0x1.d28f5ep+3));
  Value high = estrin(s, middle,
                      {0x1.267c7ep-20, -0x1.f893bcp-25, 0x1.9c3d44p-29, -0x1.3cfb60p-33,
                       0x1.c88902p-38, -0x1.3c454ep-42, 0x1.a4f4b8p-47, -0x1.c7ba96p-52,
                       0x1.78f990p-57, -0x1.1b3e9ap-61, 0x1.047ae4p-65, -0x1.7450c2p-71});
  Value ratio = horner(s, middle, high, {-0x1.4d5c74p-16, 0x1.7854c2p-12, -0x1.c0690ep-8});
  ratio = s.fma(ratio, s.sub(square, s.like(x, 8)), s.like(x, 0x1.68585cp-3));
  return atLeast(s, atMost(s, s.mul(x, ratio), 0.5), -0.5);
}

} // namespace hpc::kernels
