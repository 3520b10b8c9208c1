// Scalar arithmetic in generated kernels, under the numerics policy (docs/numerics.md): `contract` inside one op's
// formula (on exact products, and in attention's loops, which contain nothing else), no other fast-math flag. A
// register holds an element's own type, integers signless, but f32 for f16 and bf16 (load widens, round() after every
// op narrows). Statements about registers also hold for vectors of them.
#pragma once

#include "compiler/MLIR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace hpc::kernels {

/// The type that a tensor's elements have in registers.
inline Type registerType(Type elementType) {
  if (elementType.isF16() || elementType.isBF16())
    return Float32Type::get(elementType.getContext());
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(elementType.getContext(), integer.getWidth());
  return elementType;
}
inline bool isUnsigned(Type elementType) { return elementType.isUnsignedInteger() || elementType.isInteger(1); }

class ScalarBuilder {
public:
  OpBuilder &builder;
  Location loc;
  arith::FastMathFlags flags = arith::FastMathFlags::none;

  ScalarBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  /// For products and sums inside one op's own formula: they may be contracted with each other. A formula's result must
  /// not carry the flag, or the next op's formula could include it; exact products (by powers of two) may.
  ScalarBuilder contracting() const {
    ScalarBuilder copy = *this;
    copy.flags = copy.flags | arith::FastMathFlags::contract;
    return copy;
  }

  static bool isReal(Value a) { return isa<FloatType>(getElementTypeOrSelf(a.getType())); }

  /// A constant of a float or integer type, or in every lane of a vector of one.
  Value constant(Type type, double value) {
    auto real = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    return real ? inLanes(type, FloatAttr::get(real, value)) : whole(type, int64_t(value));
  }
  Value whole(Type type, int64_t value) {
    Type element = getElementTypeOrSelf(type);
    return inLanes(
        type, IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), uint64_t(value), false, true)));
  }
  /// `element` in as many lanes as `a` has.
  static Type inLanesOf(Value a, Type element) {
    auto vector = dyn_cast<VectorType>(a.getType());
    return vector ? Type(vector.clone(element)) : element;
  }
  Value inLanes(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, Attribute(value));
    return arith::ConstantOp::create(builder, loc, value);
  }
  Value like(Value a, double value) { return constant(a.getType(), value); }

  Value add(Value a, Value b) { return isReal(a) ? real<arith::AddFOp>(a, b) : make<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return isReal(a) ? real<arith::SubFOp>(a, b) : make<arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return isReal(a) ? real<arith::MulFOp>(a, b) : make<arith::MulIOp>(a, b); }
  Value divReal(Value a, Value b) { return real<arith::DivFOp>(a, b); }
  Value fma(Value a, Value b, Value c) { return make<math::FmaOp>(a, b, c); }
  Value negReal(Value a) { return make<arith::NegFOp>(a); }

  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) { return arith::SelectOp::create(builder, loc, condition, a, b); }
  Value bitcast(Type type, Value a) { return arith::BitcastOp::create(builder, loc, type, a); }

  /// Any op whose result type follows from its operands.
  template <typename Op, typename... Values> Value make(Values... values) {
    return Op::create(builder, loc, values...).getResult();
  }
  template <typename Op> Value real(Value a, Value b) {
    return Op::create(builder, loc, a, b, arith::FastMathFlagsAttr::get(builder.getContext(), flags)).getResult();
  }

  /// f32 to the 16 bits of f16 or bf16 in memory, to nearest even; free if widen() or round() made `a`.
  Value narrow(Value a, Type elementType) {
    if (Value bits = bitsInMemory(a, elementType))
      return bits;
    Type i16 = inLanesOf(a, builder.getI16Type());
    if (elementType.isF16())
      return bitcast(i16, arith::TruncFOp::create(builder, loc, inLanesOf(a, elementType), a));
    return upperHalf(roundToUpperHalf(a));
  }
  /// The inverse.
  Value widen(Value bits, Type elementType) {
    Type f32 = inLanesOf(bits, builder.getF32Type()), i32 = inLanesOf(bits, builder.getI32Type());
    if (elementType.isF16())
      return arith::ExtFOp::create(builder, loc, f32, bitcast(inLanesOf(bits, elementType), bits));
    Value wide = arith::ExtUIOp::create(builder, loc, i32, bits);
    return bitcast(f32, make<arith::ShLIOp>(wide, whole(i32, 16)));
  }
  Value shiftRight(Value a, int64_t count) { return make<arith::ShRUIOp>(a, whole(a.getType(), count)); }

  /// Rounds a register to its element type.
  Value round(Value a, Type elementType) {
    if (elementType.isBF16())
      return bitcast(a.getType(), make<arith::AndIOp>(roundToUpperHalf(a),
                                                      whole(inLanesOf(a, builder.getI32Type()), keptBits)));
    return elementType.isF16() ? widen(narrow(a, elementType), elementType) : a;
  }

private:
  static constexpr int64_t keptBits = 0xFFFF0000; ///< of an f32 by bf16

  /// An f32's bits whose upper half is the nearest bf16, with quiet NaNs; the lower half is arbitrary. By hand: few
  /// CPUs have the instruction, and the library function is missing.
  Value roundToUpperHalf(Value a) {
    Type i32 = inLanesOf(a, builder.getI32Type());
    Value bits = bitcast(i32, a);
    Value isOdd = make<arith::AndIOp>(shiftRight(bits, 16), whole(i32, 1));
    Value quietNan = make<arith::OrIOp>(bits, whole(i32, 0x400000));
    return select(compare(arith::CmpFPredicate::UNO, a, a), quietNan, add(add(bits, whole(i32, 0x7FFF)), isOdd));
  }
  Value upperHalf(Value bits) {
    return arith::TruncIOp::create(builder, loc, inLanesOf(bits, builder.getI16Type()), shiftRight(bits, 16));
  }

  /// If widen() or round() made `a`: its 16 bits in memory; else null.
  Value bitsInMemory(Value a, Type elementType) {
    Value bits;
    APInt number;
    if (elementType.isF16()) {
      bool isWidened = matchPattern(a, m_Op<arith::ExtFOp>(m_Op<arith::BitcastOp>(matchers::m_Any(&bits))));
      return isWidened && getElementTypeOrSelf(bits).isInteger(16) ? bits : Value();
    }
    auto single = a.getDefiningOp<arith::BitcastOp>();
    bits = single ? single.getIn() : Value();
    bool isExact = bits && ((matchPattern(bits, m_Op<arith::AndIOp>(matchers::m_Any(), m_ConstantInt(&number))) &&
                             number == keptBits) ||
                            (matchPattern(bits, m_Op<arith::ShLIOp>(matchers::m_Any(), m_ConstantInt(&number))) &&
                             number == 16));
    return isExact ? upperHalf(bits) : Value();
  }
};

/// f32 approximations (Approximations.cpp states their bounds); other float types call libm. Exponentials take vectors too.
Value emitExp(ScalarBuilder &s, Value x);
/// exp x, cheaper, for x <= 43 (arbitrary beyond) or NaN: of a number minus the largest of its row.
Value emitExpBelowZero(ScalarBuilder &s, Value x);
/// 1 + exp x, rounded once.
Value emitOnePlusExp(ScalarBuilder &s, Value x);
Value emitTanh(ScalarBuilder &s, Value x);
Value emitErf(ScalarBuilder &s, Value x);
/// Phi(x) - 1/2 of an f32, Phi the normal distribution's: -1/2 or 1/2 to the last bit far from 0.
Value emitNormalBeyondHalf(ScalarBuilder &s, Value x);
/// libm's function of that name: "tan" is tanf for an f32.
Value emitLibm(ScalarBuilder &s, StringRef name, Value x);

/// Whether the table of elementwise ops has a line for the op.
bool hasScalarEmitter(OperationName name);
/// The element of an elementwise op's result, given those of its operands. `op` has the types and attributes.
Value emitScalar(ScalarBuilder &s, Operation *op, ArrayRef<Value> operands);
/// A register converted between element types, as nn.cast; a vector between floats alone.
Value emitCast(ScalarBuilder &s, Value a, Type from, Type to);
/// The same, through several types in order.
Value emitCasts(ScalarBuilder &s, Value a, Type from, ArrayRef<Type> to);

} // namespace hpc::kernels
