// The sum of exponentials of a long row relative to its largest element, in one pass over memory: if a group of
// elements exceeds all before it, the sum so far shrinks. After Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018; by groups, so that an element costs one exponential.
#include "passes/Kernels/Elements/ScalarBuilder.h"
#include "passes/Kernels/Host/HostLanes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

namespace hpc::kernels {

namespace {
constexpr int64_t fewestElements = 4096; ///< fewer stay in the nearest cache between two loops
constexpr int64_t elementsOfGroup = 256; ///< prefetched while the group before is computed
} // namespace

std::optional<ShiftedSum> HostLoops::shareShifted(int64_t count, function_ref<Value(Value)> element,
                                                  function_ref<Value(Value, Value)> term,
                                                  function_ref<Value()> largest) {
  if (count < fewestElements)
    return std::nullopt;
  ScalarBuilder s(builder, loc);
  Type f32 = builder.getF32Type();
  const double infinity = std::numeric_limits<double>::infinity();
  Value lowest = s.constant(f32, -infinity), zero = s.constant(f32, 0);
  HostLanes tops(*this, f32, elementsOfGroup), sums(*this, f32, elementsOfGroup);
  auto larger = [&](Value a, Value b) { return s.select(s.compare(arith::CmpFPredicate::OGT, b, a), b, a); };
  auto add = [&](Value a, Value b) { return s.add(a, b); };
  auto isLowest = [&](Value top) { return s.compare(arith::CmpFPredicate::OEQ, top, lowest); };

  /// States are the largest so far (a NaN is left to the exponential) and the lanes' sums of exponentials below it.
  auto takeIn = [&](ValueRange states, Value first, int64_t elements) {
    const int64_t whole = elements / tops.count() * tops.count(), rest = elements - whole;
    Value end = arith::AddIOp::create(builder, loc, first, constant(whole));
    auto over = [&](HostLanes &lanes, ValueRange states, Value none, function_ref<Value(Value)> term,
                    function_ref<Value(Value, Value)> join) {
      SmallVector<Value> next(states);
      if (whole > 0)
        next = lanes.takeInWhole(next, first, end, none, term, join);
      return rest > 0 ? lanes.takeIn(next, end, rest, none, term, join) : next;
    };
    // 1. A new largest element is rare: then the sums shrink.
    Value top = tops.join(over(tops, tops.start(lowest), lowest, element, larger), larger), before = states.front();
    SmallVector<Type> types(states.getTypes());
    auto rise = scf::IfOp::create(builder, loc, types, s.compare(arith::CmpFPredicate::OGT, top, before), true);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(rise.thenBlock());
      Value factor = emitExpBelowZero(s, s.sub(before, top));
      SmallVector<Value> next = {top};
      for (auto [state, worth] : llvm::zip_equal(states.drop_front(), sums.start(factor)))
        next.push_back(s.mul(state, worth));
      scf::YieldOp::create(builder, loc, next);
      builder.setInsertionPointToStart(rise.elseBlock());
      scf::YieldOp::create(builder, loc, states);
    }
    // 2. The group's exponentials. Before the first number above -inf nothing is added up: -inf - 0 instead of a NaN.
    SmallVector<Value> next = {rise.getResult(0)};
    Value shift = s.select(isLowest(next.front()), zero, next.front());
    next.append(over(
        sums, ValueRange(rise.getResults()).drop_front(), zero, [&](Value i) { return term(i, shift); }, add));
    return next;
  };

  SmallVector<Value> states = {lowest};
  states.append(sums.start(zero));
  const int64_t whole = count / elementsOfGroup * elementsOfGroup;
  auto groups = scf::ForOp::create(builder, loc, constant(0), constant(whole), constant(elementsOfGroup), states);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(groups.getBody());
    scf::YieldOp::create(builder, loc, takeIn(groups.getRegionIterArgs(), groups.getInductionVar(), elementsOfGroup));
  }
  states.assign(groups.result_begin(), groups.result_end());
  if (whole < count)
    states = takeIn(states, constant(whole), count - whole);
  // In a row of -inf alone every difference is one of infinities.
  Value top = states.front(), sum = sums.join(ValueRange(states).drop_front(), add);
  sum = s.select(isLowest(top), s.like(sum, std::numeric_limits<double>::quiet_NaN()), sum);
  // If there may be a NaN, or zeros of both signs, the row is read again.
  Value isRare = s.make<arith::OrIOp>(s.compare(arith::CmpFPredicate::UNO, sum, sum),
                                      s.compare(arith::CmpFPredicate::OEQ, top, zero));
  auto again = scf::IfOp::create(builder, loc, TypeRange(f32), isRare, true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(again.thenBlock());
  scf::YieldOp::create(builder, loc, largest());
  builder.setInsertionPointToStart(again.elseBlock());
  scf::YieldOp::create(builder, loc, top);
  return ShiftedSum{again.getResult(0), sum};
}

} // namespace hpc::kernels
