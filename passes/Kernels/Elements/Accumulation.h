// The accumulation of reductions and running sums: the start, one step, and the result.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "passes/Kernels/Elements/ScalarBuilder.h"

#include <limits>

namespace hpc::kernels {

/// How a reduction accumulates. Max and min of floats run on integers in the order of the floats, NaN beyond all: LLVM
/// vectorizes that, and its own NaN-propagating maximum only sometimes. The map is its own inverse: negative numbers
/// have all bits but the sign flipped.
struct Accumulation {
  ScalarBuilder s;
  ReduceKind kind;
  Type type; ///< the elements', in registers
  bool natural;

  bool wantsMax() const { return kind == ReduceKind::Max; }
  bool isOrdered() const { return isa<FloatType>(type) && (wantsMax() || kind == ReduceKind::Min); }
  Type stateType() const {
    return isOrdered() ? IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth()) : type;
  }

  /// The type of the state in scratch memory, between loops.
  Type memoryType() const {
    return stateType().isInteger(1) ? IntegerType::get(type.getContext(), 8) : stateType();
  }
  Value toMemory(Value state) {
    return state.getType() == memoryType()
               ? state
               : arith::ExtUIOp::create(s.builder, s.loc, memoryType(), state).getResult();
  }
  Value fromMemory(Value state) {
    return state.getType() == stateType()
               ? state
               : arith::TruncIOp::create(s.builder, s.loc, stateType(), state).getResult();
  }

  Value limit(Type integer, bool highest) {
    unsigned width = integer.getIntOrFloatBitWidth();
    APInt value = natural ? (highest ? APInt::getMaxValue(width) : APInt::getMinValue(width))
                          : (highest ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width));
    return s.whole(integer, value.getSExtValue());
  }
  Value flip(Value bits) {
    Value sign = s.make<arith::ShRSIOp>(bits, s.whole(bits.getType(), bits.getType().getIntOrFloatBitWidth() - 1));
    return s.make<arith::XOrIOp>(bits, s.make<arith::AndIOp>(sign, limit(bits.getType(), true)));
  }
  Value order(Value element) {
    Value isNan = s.compare(arith::CmpFPredicate::UNO, element, element);
    return s.select(isNan, limit(stateType(), wantsMax()), flip(s.bitcast(stateType(), element)));
  }

  Value start() {
    if (kind == ReduceKind::Sum || kind == ReduceKind::Prod)
      return s.constant(type, kind == ReduceKind::Prod);
    const double infinity = std::numeric_limits<double>::infinity();
    return isOrdered() ? order(s.constant(type, wantsMax() ? -infinity : infinity)) : limit(type, !wantsMax());
  }
  /// An element as a state.
  Value term(Value element) { return isOrdered() ? order(element) : element; }
  Value combine(Value state, Value element) { return join(state, term(element)); }
  /// Joins two states, or vectors of them. No flag lets LLVM reorder or contract: the rest of the loop would decide.
  Value join(Value state, Value element) {
    if (kind == ReduceKind::Sum)
      return s.add(state, element);
    if (kind == ReduceKind::Prod)
      return s.mul(state, element);
    bool isUnsigned = natural && !isOrdered();
    if (wantsMax())
      return isUnsigned ? s.make<arith::MaxUIOp>(state, element) : s.make<arith::MaxSIOp>(state, element);
    return isUnsigned ? s.make<arith::MinUIOp>(state, element) : s.make<arith::MinSIOp>(state, element);
  }
  Value finish(Value state) { return isOrdered() ? s.bitcast(type, flip(state)) : state; }
};

} // namespace hpc::kernels
