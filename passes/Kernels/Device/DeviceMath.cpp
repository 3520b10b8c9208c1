// All in double, also for f32, where that makes every result correct to the last rounding but for rare ties. Bounds in f64
// (test/unit/passes/KernelsDevice.cpp): 2 ulp for exp, log, sin, cos, 4 for the others, 1 for pow, 64 for erf; fmod is exact. Formulas:
// Taylor series on ranges that reductions make small (Muller, Elementary Functions, chapters 9 to 11).
#include "passes/Kernels/Device/DeviceMath.h"

#include "passes/Kernels/Elements/ScalarBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>
#include <limits>

namespace hpc::kernels {
using arith::CmpFPredicate;
using arith::CmpIPredicate;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double ln2 = 0x1.62e42fefa39efp-1;
constexpr double ln2High = 0x1.62e42fee00000p-1, ln2Low = 0x1.a39ef35793c76p-33; // the first has 32 bits
constexpr double halfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
/// 2 / pi, 64 bits a word, after a word of zeros.
constexpr uint64_t twoOverPi[] = {0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
                                  0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484,
                                  0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F,
                                  0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B,
                                  0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D};
constexpr double manyTurns = 0x1p20; // up to here three parts of pi / 2 are enough

struct Math {
  ScalarBuilder &s;
  Type f64 = s.builder.getF64Type(), i64 = s.builder.getI64Type();

  Value c(double value) { return s.constant(f64, value); }
  Value n(int64_t value) { return s.whole(i64, value); }
  Value bits(Value x) { return s.bitcast(i64, x); }
  Value real(Value bits) { return s.bitcast(f64, bits); }
  Value abs(Value x) { return s.make<math::AbsFOp>(x); }
  Value sqrt(Value x) { return s.make<math::SqrtOp>(x); }
  Value withSign(Value magnitude, Value sign) { return s.make<math::CopySignOp>(magnitude, sign); }
  Value less(Value a, Value b) { return s.compare(CmpFPredicate::OLT, a, b); }
  Value equal(Value a, Value b) { return s.compare(CmpFPredicate::OEQ, a, b); }
  Value both(Value a, Value b) { return s.make<arith::AndIOp>(a, b); }
  Value either(Value a, Value b) { return s.make<arith::OrIOp>(a, b); }
  Value no(Value a) { return s.make<arith::XOrIOp>(a, s.whole(s.builder.getI1Type(), 1)); }
  Value pick(Value condition, Value a, Value b) { return s.select(condition, a, b); }
  Value fma(Value a, Value b, Value d) { return s.fma(a, b, d); }
  Value toReal(Value whole) { return arith::SIToFPOp::create(s.builder, s.loc, f64, whole); }
  Value shiftLeft(Value a, Value count) { return s.make<arith::ShLIOp>(a, count); }
  Value shiftRight(Value a, Value count) { return s.make<arith::ShRUIOp>(a, count); }
  Value shiftRightSigned(Value a, Value count) { return s.make<arith::ShRSIOp>(a, count); }
  /// 2^n for -1022 <= n <= 1023.
  Value powerOfTwo(Value exponent) { return real(shiftLeft(s.add(exponent, n(1023)), n(52))); }
  Value scale(Value x, Value exponent) { // in halves, so that each is a number
    Value half = shiftRightSigned(exponent, n(1));
    return s.mul(s.mul(x, powerOfTwo(half)), powerOfTwo(s.sub(exponent, half)));
  }
  /// coefficient(0) + coefficient(1) x + ... + coefficient(count - 1) x^(count-1)
  Value series(Value x, int count, function_ref<double(int)> coefficient) {
    Value sum = c(coefficient(count - 1));
    for (int i = count - 2; i >= 0; --i)
      sum = fma(sum, x, c(coefficient(i)));
    return sum;
  }
  /// The exponent of a positive number, and its mantissa in [1, 2); subnormals are made normal first.
  std::pair<Value, Value> parts(Value x) {
    Value isSmall = less(x, c(0x1p-1022));
    Value field = bits(pick(isSmall, s.mul(x, c(0x1p54)), x));
    Value exponent = s.sub(shiftRight(field, n(52)), pick(isSmall, n(1023 + 54), n(1023)));
    Value mantissa = s.make<arith::OrIOp>(s.make<arith::AndIOp>(field, n((int64_t(1) << 52) - 1)),
                                          n(int64_t(1023) << 52));
    return {exponent, real(mantissa)};
  }

  // ---- exp and log ----

  struct Double {
    Value high, low;
  };
  /// a + b without error.
  Double sum(Value a, Value b) {
    Value high = s.add(a, b), back = s.sub(high, a);
    return {high, s.add(s.sub(a, s.sub(high, back)), s.sub(b, back))};
  }

  /// exp(x + low) to a tenth of a unit in the last place before it is rounded, so that a power that is a number comes out as it.
  Value exp(Value x, Value low) {
    Value bounded = pick(less(c(710), x), c(710), x);
    bounded = pick(less(bounded, c(-746)), c(-746), bounded);
    constexpr double magic = 0x1.8p52; // its low bits are the rounded number
    Value shifted = fma(bounded, c(1 / ln2), c(magic)), whole = s.sub(shifted, c(magic));
    Value near = fma(whole, c(-ln2High), bounded); // exact
    Value r = fma(whole, c(-ln2Low), near);
    Value rest = s.add(fma(whole, c(-ln2Low), s.sub(near, r)), low);
    double factorial[16] = {1};
    for (int i = 1; i < 16; ++i)
      factorial[i] = factorial[i - 1] * i;
    // 1 + (r + r^2 (1/2 + r/6 + ...)), each sum with its error.
    Value curve = s.mul(s.mul(r, r), series(r, 13, [&](int i) { return 1 / factorial[i + 2]; }));
    Double inner = sum(r, curve);
    Double outer = sum(c(1), inner.high);
    Value lost = s.add(s.add(inner.low, outer.low), fma(rest, inner.high, rest));
    Value exponent = s.sub(bits(shifted), n(int64_t(0x4338) << 48)); // any number where x is NaN, and so is the power
    return scale(s.add(outer.high, lost), exponent);
  }
  Value exp(Value x) { return exp(x, c(0)); }

  /// log of a positive finite number, to about 64 bits.
  Double logParts(Value x) {
    auto [exponent, mantissa] = parts(x);
    Value isLarge = less(c(M_SQRT2), mantissa);
    Value m = pick(isLarge, s.mul(mantissa, c(0.5)), mantissa);
    Value e = toReal(pick(isLarge, s.add(exponent, n(1)), exponent));
    // log m = 2 atanh(q), q = (m - 1) / (m + 1) to twice the precision.
    Value above = s.sub(m, c(1)), below = s.add(m, c(1));
    Value lost = s.sub(m, s.sub(below, c(1)));
    Value q = s.divReal(above, below);
    Value rest = s.divReal(fma(s.sub(c(0), q), lost, fma(s.sub(c(0), q), below, above)), below);
    // 2 q + q^3 (2/3 + 2/5 q^2 + ...): of the cube, whose share is a hundredth, 10 bits less are enough.
    Value square = s.mul(q, q), squareLow = fma(s.add(q, q), rest, fma(q, q, s.negReal(square)));
    Value curve = s.mul(square, series(square, 11, [](int i) { return 2.0 / (2 * i + 5); }));
    constexpr double twoThirds = 2.0 / 3, twoThirdsLow = 0x1.5555555555555p-55; // their sum is 2/3 to twice the precision
    Double factor = sum(c(twoThirds), curve);
    factor.low = s.add(factor.low, c(twoThirdsLow));
    Value area = s.mul(square, factor.high);
    Value areaLow = fma(square, factor.low, fma(squareLow, factor.high, fma(square, factor.high, s.negReal(area))));
    Value cube = s.mul(q, area);
    Value cubeLow = fma(q, areaLow, fma(rest, area, fma(q, area, s.negReal(cube))));
    // e ln 2 + 2 q + cube, the largest first; the first product is exact.
    Double large = sum(s.mul(e, c(ln2High)), s.add(q, q));
    Double all = sum(large.high, cube);
    Value low = s.add(s.add(large.low, all.low), fma(e, c(ln2Low), s.add(s.add(rest, rest), cubeLow)));
    return sum(all.high, low);
  }
  /// `finite`, or the logarithm where it has no finite value: of 0, below 0, infinity, NaN.
  Value logAtEdges(Value x, Value finite) {
    finite = pick(equal(x, c(0)), c(-infinity), finite);
    finite = pick(less(x, c(0)), c(nan), finite);
    return pick(s.compare(CmpFPredicate::UGE, x, c(infinity)), x, finite);
  }
  Value log(Value x) { return logAtEdges(x, logParts(x).high); }
  Value log1p(Value x) {
    Value w = s.add(x, c(1));
    Value result = s.divReal(s.mul(log(w), x), s.sub(w, c(1)));
    result = pick(equal(w, c(1)), x, result);
    return pick(equal(w, c(infinity)), w, result);
  }

  Value pow(Value x, Value y) {
    Value base = abs(x);
    Double l = logParts(base);
    Value high = s.mul(y, l.high), low = fma(y, l.low, fma(y, l.high, s.sub(c(0), high)));
    Value power = exp(high, pick(less(abs(high), c(750)), low, c(0))); // beyond, `low` may be none
    Value edge = exp(s.mul(y, logAtEdges(base, l.high)));
    Value isEdge = either(equal(base, c(0)), s.compare(CmpFPredicate::UGE, base, c(infinity)));
    power = pick(either(isEdge, s.compare(CmpFPredicate::UEQ, abs(y), c(infinity))), edge, power);
    power = pick(equal(base, c(1)), pick(s.compare(CmpFPredicate::UNO, y, y), y, c(1)), power);
    // A negative base: real at whole exponents, negative at odd ones.
    Value isWhole = equal(s.make<math::FloorOp>(y), y), half = s.mul(y, c(0.5));
    Value isOdd = both(isWhole, s.compare(CmpFPredicate::ONE, s.make<math::FloorOp>(half), half));
    Value isNegative = s.compare(CmpIPredicate::slt, bits(x), n(0));
    power = pick(both(isNegative, isOdd), s.negReal(power), power);
    Value isBelow = both(less(x, c(0)), less(base, c(infinity)));
    power = pick(both(isBelow, both(no(isWhole), less(abs(y), c(infinity)))), c(nan), power);
    power = pick(s.compare(CmpFPredicate::UNO, x, y), c(nan), power);
    return pick(either(equal(y, c(0)), equal(x, c(1))), c(1), power);
  }

  // ---- sin, cos, tan ----

  /// |x| = quadrant pi / 2 + rest with |rest| <= pi / 4 and a little.
  std::pair<Value, Value> reduce(Value x) {
    Value magnitude = abs(x);
    auto isMany = s.compare(CmpFPredicate::OGE, magnitude, c(manyTurns));
    auto branch = scf::IfOp::create(s.builder, s.loc, TypeRange{i64, f64}, isMany, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(s.builder);
    s.builder.setInsertionPointToStart(branch.thenBlock());
    auto [manyQuadrant, manyRest] = reduceMany(magnitude);
    scf::YieldOp::create(s.builder, s.loc, ValueRange{manyQuadrant, manyRest});
    s.builder.setInsertionPointToStart(branch.elseBlock());
    Value turns = s.make<math::RoundEvenOp>(s.mul(magnitude, c(2 / M_PI))), back = s.negReal(turns);
    Value rest = magnitude;
    for (double part : halfPi)
      rest = fma(back, c(part), rest);
    Value bounded = pick(less(turns, c(0x1p30)), turns, c(0)); // NaN has no quadrant
    Value quadrant = arith::FPToSIOp::create(s.builder, s.loc, i64, bounded);
    scf::YieldOp::create(s.builder, s.loc, ValueRange{quadrant, rest});
    return {branch.getResult(0), branch.getResult(1)};
  }

  std::pair<Value, Value> wideProduct(Value a, Value b) { // low, high
    auto product = arith::MulUIExtendedOp::create(s.builder, s.loc, a, b);
    return {product.getLow(), product.getHigh()};
  }
  Value carry(Value sum, Value addend) {
    return arith::ExtUIOp::create(s.builder, s.loc, i64, s.compare(CmpIPredicate::ult, sum, addend));
  }

  /// Payne and Hanek: x = M 2^e; of M 2^e (2 / pi) modulo 4 only 192 bits of 2 / pi matter, from bit e - 2 on.
  std::pair<Value, Value> reduceMany(Value x) {
    Value isFinite = less(x, c(infinity)), field = bits(pick(isFinite, x, c(manyTurns)));
    Value mantissa = s.make<arith::OrIOp>(s.make<arith::AndIOp>(field, n((int64_t(1) << 52) - 1)), n(int64_t(1) << 52));
    Value start = s.add(s.sub(shiftRight(field, n(52)), n(1075)), n(62)); // the table has 64 bits of zeros in front
    Value word = shiftRight(start, n(6)), shift = s.make<arith::AndIOp>(start, n(63));
    Value table = tableOfTwoOverPi();
    auto window = [&](int64_t k) { // 64 bits from `start` + 64 k on
      auto load = [&](int64_t at) {
        Value address = LLVM::GEPOp::create(s.builder, s.loc, table.getType(), i64, table, s.add(word, n(k + at)));
        return LLVM::LoadOp::create(s.builder, s.loc, i64, address).getResult();
      };
      Value rest = shiftRight(shiftRight(load(1), n(1)), s.sub(n(63), shift));
      return s.make<arith::OrIOp>(shiftLeft(load(0), shift), rest);
    };
    auto [p2, c2] = wideProduct(mantissa, window(2));
    auto [low1, c1] = wideProduct(mantissa, window(1));
    Value p1 = s.add(low1, c2);
    c1 = s.add(c1, carry(p1, c2));
    Value p0 = s.add(s.mul(mantissa, window(0)), c1);
    // Two bits of quadrant, then the fraction, taken as a signed number: above 1/2 it belongs to the next quadrant.
    Value high = s.make<arith::OrIOp>(shiftLeft(p0, n(2)), shiftRight(p1, n(62)));
    Value low = s.make<arith::OrIOp>(shiftLeft(p1, n(2)), shiftRight(p2, n(62)));
    Value quadrant = s.add(shiftRight(p0, n(62)), shiftRight(high, n(63)));
    Value lowReal = arith::UIToFPOp::create(s.builder, s.loc, f64, low);
    Value fraction = fma(lowReal, c(0x1p-128), s.mul(toReal(high), c(0x1p-64)));
    Value rest = pick(isFinite, s.mul(fraction, c(halfPi[0])), c(nan));
    return {quadrant, rest};
  }

  Value tableOfTwoOverPi() {
    auto module = s.builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
    auto global = module.lookupSymbol<LLVM::GlobalOp>("hpc_two_over_pi");
    if (!global) {
      OpBuilder::InsertionGuard guard(s.builder);
      s.builder.setInsertionPointToStart(module.getBody());
      auto type = RankedTensorType::get({int64_t(std::size(twoOverPi))}, i64);
      auto words = DenseElementsAttr::get(type, ArrayRef<uint64_t>(twoOverPi));
      global = LLVM::GlobalOp::create(s.builder, s.loc, LLVM::LLVMArrayType::get(i64, unsigned(std::size(twoOverPi))),
                                      true, LLVM::Linkage::Internal, "hpc_two_over_pi", words);
    }
    return LLVM::AddressOfOp::create(s.builder, s.loc, global);
  }

  Value sinSeries(Value r) { // |r| <= 1
    double coefficient[12] = {1};
    for (int i = 1; i < 12; ++i)
      coefficient[i] = -coefficient[i - 1] / (2 * i * (2 * i + 1));
    Value square = s.mul(r, r);
    return fma(s.mul(r, square), series(square, 10, [&](int i) { return coefficient[i + 1]; }), r);
  }
  Value cosSeries(Value r) {
    double coefficient[12] = {1};
    for (int i = 1; i < 12; ++i)
      coefficient[i] = -coefficient[i - 1] / (2 * i * (2 * i - 1));
    Value square = s.mul(r, r);
    return fma(square, series(square, 10, [&](int i) { return coefficient[i + 1]; }), c(1));
  }
  Value isOdd(Value quadrant, int64_t bit) {
    return s.compare(CmpIPredicate::ne, s.make<arith::AndIOp>(quadrant, n(bit)), n(0));
  }
  Value sin(Value x) {
    auto [quadrant, r] = reduce(x);
    Value y = pick(isOdd(quadrant, 1), cosSeries(r), sinSeries(r));
    y = pick(isOdd(quadrant, 2), s.negReal(y), y);
    return pick(s.compare(CmpIPredicate::slt, bits(x), n(0)), s.negReal(y), y);
  }
  Value cos(Value x) {
    auto [quadrant, r] = reduce(x);
    Value y = pick(isOdd(quadrant, 1), sinSeries(r), cosSeries(r));
    return pick(isOdd(s.add(quadrant, n(1)), 2), s.negReal(y), y);
  }
  Value tan(Value x) {
    auto [quadrant, r] = reduce(x);
    Value sine = sinSeries(r), cosine = cosSeries(r), odd = isOdd(quadrant, 1);
    Value y = s.divReal(pick(odd, s.negReal(cosine), sine), pick(odd, sine, cosine));
    return pick(s.compare(CmpIPredicate::slt, bits(x), n(0)), s.negReal(y), y);
  }

  // ---- atan, asin, acos ----

  Value atan(Value x) {
    Value magnitude = abs(x), isLarge = less(c(1), magnitude);
    Value t = pick(isLarge, s.divReal(c(1), magnitude), magnitude);
    for (int i = 0; i < 2; ++i) // atan t = 2 atan(t / (1 + sqrt(1 + t^2)))
      t = s.divReal(t, s.add(c(1), sqrt(fma(t, t, c(1)))));
    Value square = s.mul(t, t);
    Value y = fma(s.mul(t, square), series(square, 12, [](int i) { return (i % 2 ? 1.0 : -1.0) / (2 * i + 3); }), t);
    y = s.mul(y, c(4));
    y = pick(isLarge, s.add(s.sub(c(halfPi[0]), y), c(halfPi[1])), y);
    return withSign(y, x);
  }
  Value asin(Value x) {
    return atan(s.divReal(x, sqrt(s.mul(s.sub(c(1), x), s.add(c(1), x)))));
  }
  Value acos(Value x) { // 2 atan(sqrt((1 - x) / (1 + x))); at -1 the quotient is infinite
    return s.mul(c(2), atan(sqrt(s.divReal(s.sub(c(1), x), s.add(c(1), x)))));
  }

  // ---- hyperbolic functions ----

  Value sinhSeries(Value x) { // |x| < 1
    double coefficient[12] = {1};
    for (int i = 1; i < 12; ++i)
      coefficient[i] = coefficient[i - 1] / (2 * i * (2 * i + 1));
    Value square = s.mul(x, x);
    return fma(s.mul(x, square), series(square, 10, [&](int i) { return coefficient[i + 1]; }), x);
  }
  Value sinh(Value x) {
    Value magnitude = abs(x), root = exp(s.mul(magnitude, c(0.5)));
    Value large = s.sub(s.mul(s.mul(root, c(0.5)), root), s.divReal(s.divReal(c(0.5), root), root));
    return pick(less(magnitude, c(1)), sinhSeries(x), withSign(large, x));
  }
  Value cosh(Value x) {
    Value root = exp(s.mul(abs(x), c(0.5)));
    return s.add(s.mul(s.mul(root, c(0.5)), root), s.divReal(s.divReal(c(0.5), root), root));
  }
  Value tanh(Value x) {
    Value magnitude = abs(x), sine = sinhSeries(x);
    Value small = s.divReal(sine, sqrt(fma(sine, sine, c(1))));
    Value large = s.sub(c(1), s.divReal(c(2), s.add(exp(s.add(magnitude, magnitude)), c(1))));
    return pick(less(magnitude, c(1)), small, withSign(large, x));
  }
  Value asinh(Value x) {
    Value a = abs(x);
    Value near = log1p(s.add(a, s.divReal(s.mul(a, a), s.add(c(1), sqrt(fma(a, a, c(1)))))));
    return withSign(pick(less(a, c(0x1p28)), near, s.add(log(a), c(ln2))), x);
  }
  Value acosh(Value x) {
    Value t = s.sub(x, c(1));
    Value near = log1p(s.add(t, sqrt(s.mul(t, s.add(t, c(2))))));
    return pick(less(x, c(1)), c(nan), pick(less(x, c(0x1p28)), near, s.add(log(x), c(ln2))));
  }
  Value atanh(Value x) {
    Value a = abs(x);
    Value y = s.mul(c(0.5), log1p(s.divReal(s.add(a, a), s.sub(c(1), a))));
    return withSign(pick(less(c(1), a), c(nan), y), x);
  }

  // ---- erf: sum of 2^i x^(2i+1) / (2i+1)!! times 2 / sqrt(pi) exp(-x^2), all terms positive ----

  Value erf(Value x) {
    Value bounded = pick(less(c(6), abs(x)), c(6), abs(x)), square = s.mul(bounded, bounded);
    Value lost = fma(bounded, bounded, s.negReal(square));
    constexpr int64_t terms = 160; // at 6 the last is below 1e-20 of the sum
    auto loop = scf::ForOp::create(
        s.builder, s.loc, n(1), n(terms), n(1), ValueRange{bounded, bounded},
        [&](OpBuilder &, Location, Value i, ValueRange state) {
          Value divisor = fma(toReal(i), c(2), c(1));
          Value term = s.divReal(s.mul(state[1], s.mul(c(2), square)), divisor);
          scf::YieldOp::create(s.builder, s.loc, ValueRange{s.add(state[0], term), term});
        });
    Value decay = exp(s.negReal(square), s.negReal(lost));
    Value y = s.mul(s.mul(loop.getResult(0), c(M_2_SQRTPI)), decay);
    return withSign(pick(less(c(1), y), c(1), y), x);
  }

  // ---- fmod: subtracts the largest |y| 2^k that fits, which is exact, until none does ----

  Value fmod(Value x, Value y) {
    Value divisor = abs(y), start = abs(x);
    Value isFine = both(less(start, c(infinity)), less(c(0), divisor));
    divisor = pick(isFine, divisor, c(1)), start = pick(isFine, start, c(0));
    divisor = pick(equal(divisor, c(infinity)), c(std::numeric_limits<double>::max()), divisor);
    Value isShort = less(start, abs(y)); // an infinite divisor too
    auto loop = scf::WhileOp::create(
        s.builder, s.loc, TypeRange(f64), ValueRange(pick(isShort, c(0), start)),
        [&](OpBuilder &, Location, ValueRange state) {
          scf::ConditionOp::create(s.builder, s.loc, s.compare(CmpFPredicate::OGE, state[0], divisor), state);
        },
        [&](OpBuilder &, Location, ValueRange state) {
          Value rest = state[0], steps = s.sub(parts(rest).first, parts(divisor).first);
          Value multiple = scale(divisor, steps);
          multiple = pick(less(rest, multiple), s.mul(multiple, c(0.5)), multiple);
          scf::YieldOp::create(s.builder, s.loc, ValueRange(s.sub(rest, multiple)));
        });
    Value rest = withSign(loop.getResult(0), x);
    return pick(isFine, pick(isShort, x, rest), pick(s.compare(CmpFPredicate::UNO, x, y), s.add(x, y), c(nan)));
  }
};

struct Function {
  const char *name;
  Value (*one)(Math &, Value);
  Value (*two)(Math &, Value, Value);
};
#define ONE(name)                                                                                                      \
  {#name, [](Math &m, Value x) { return m.name(x); }, nullptr}
#define TWO(name)                                                                                                      \
  {#name, nullptr, [](Math &m, Value x, Value y) { return m.name(x, y); }}
const Function functions[] = {ONE(exp),  ONE(log),  ONE(sin),  ONE(cos),   ONE(tan),   ONE(asin),
                              ONE(acos), ONE(atan), ONE(sinh), ONE(cosh),  ONE(tanh),  ONE(asinh),
                              ONE(acosh), ONE(atanh), ONE(erf), TWO(pow), TWO(fmod)};
#undef ONE
#undef TWO

const Function *findFunction(StringRef name) {
  for (const Function &function : functions)
    if (name == function.name)
      return &function;
  return nullptr;
}

/// The function of libm that an op calls, of either precision; null where none.
const Function *calledBy(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op)) {
    StringRef name = call.getCallee();
    if (call->getResultTypes().size() == 1 && call->getResultTypes()[0].isF32())
      name.consume_back("f");
    return findFunction(name);
  }
  return llvm::TypeSwitch<Operation *, const Function *>(op)
      .Case<math::ExpOp>([](auto) { return findFunction("exp"); })
      .Case<math::LogOp>([](auto) { return findFunction("log"); })
      .Case<math::SinOp>([](auto) { return findFunction("sin"); })
      .Case<math::CosOp>([](auto) { return findFunction("cos"); })
      .Case<math::PowFOp>([](auto) { return findFunction("pow"); })
      .Case<arith::RemFOp>([](auto) { return findFunction("fmod"); })
      .Default([](Operation *) { return nullptr; });
}

func::FuncOp define(ModuleOp kernels, const Function &which) {
  std::string name = std::string("hpc_") + which.name;
  if (auto function = kernels.lookupSymbol<func::FuncOp>(name))
    return function;
  OpBuilder builder(kernels.getContext());
  builder.setInsertionPointToStart(kernels.getBody());
  Location loc = builder.getUnknownLoc();
  SmallVector<Type> arguments(which.one ? 1 : 2, builder.getF64Type());
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, builder.getF64Type()));
  function.setPrivate();
  function->setAttr("llvm.linkage", LLVM::LinkageAttr::get(builder.getContext(), LLVM::Linkage::Internal));
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  ScalarBuilder scalar(builder, loc);
  Math math{scalar};
  Value result = which.one ? which.one(math, entry->getArgument(0))
                           : which.two(math, entry->getArgument(0), entry->getArgument(1));
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc, result);
  return function;
}
} // namespace

void replaceLibm(ModuleOp kernels) {
  SmallVector<std::pair<Operation *, const Function *>> calls;
  kernels.walk([&](Operation *op) {
    if (const Function *function = calledBy(op))
      calls.push_back({op, function});
  });
  for (auto [op, which] : calls) {
    func::FuncOp function = define(kernels, *which);
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Type type = op->getResult(0).getType(), f64 = builder.getF64Type();
    SmallVector<Value> arguments;
    for (Value operand : op->getOperands())
      arguments.push_back(type == f64 ? operand : arith::ExtFOp::create(builder, loc, f64, operand).getResult());
    Value result = func::CallOp::create(builder, loc, function, arguments).getResult(0);
    if (type != f64)
      result = arith::TruncFOp::create(builder, loc, type, result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  for (func::FuncOp function : llvm::make_early_inc_range(kernels.getOps<func::FuncOp>()))
    if (function.isExternal())
      function.erase(); // libm's
}

} // namespace hpc::kernels
