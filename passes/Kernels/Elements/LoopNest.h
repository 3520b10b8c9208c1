// How a target runs a region: who computes which item of its parallel range, loops within an item, and memory. What a
// region computes (RegionBody, ElementEmitter) is written against this alone; a device adds one class.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

/// Of a row whose terms are exp(element - largest).
struct ShiftedSum {
  Value largest, sum;
};

class LoopNest {
public:
  virtual ~LoopNest() = default;

  /// The items that this call is to do, the first and the one behind the last, where one does them all: what code
  /// before forEachItem leaves in memory is then there for each of them. Nothing elsewhere.
  virtual std::optional<std::pair<Value, Value>> itemsOfCall() const { return std::nullopt; }
  /// body(item) for the items of 0..count-1 that this call of the kernel is to do. Items are independent.
  virtual void forEachItem(int64_t count, function_ref<void(Value)> body) = 0;
  /// for (i = first; i < last; ++i) state = body(i, state), in one item. `state` may be null; then the iterations are
  /// independent.
  virtual Value loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) = 0;

  /// body(i) for 0..count-1, one after the other, at the top of an item: those who compute it together share in it too.
  virtual void forEachRow(int64_t count, function_ref<void(Value)> body) = 0;

  // An item may be computed by several together (a device's threads). What they do outside `share` and `once` they all do
  // alike.

  /// The terms of 0..count-1 joined: each of them does some of the iterations, always those of the same i. The order is a
  /// matter of `count` and the state's type alone, whatever the terms are. `state` changes nothing when it is joined; all
  /// get the whole. Where it is null, iterations are independent and `term` returns nothing. `join` takes vectors too.
  virtual Value share(int64_t count, Value state, function_ref<Value(Value)> term,
                      function_ref<Value(Value, Value)> join) = 0;
  /// The largest of the elements 0..count-1, NaN beyond all, and the sum of term(i, largest), which is the exponential of
  /// how far element i is below it: in one go along memory, where two loops would read a row twice that the caches next to
  /// a core do not hold. Nothing where the nest has nothing better than two loops. `largest` computes the first in a loop
  /// of its own, for what is rare.
  virtual std::optional<ShiftedSum> shareShifted([[maybe_unused]] int64_t count,
                                                 [[maybe_unused]] function_ref<Value(Value)> element,
                                                 [[maybe_unused]] function_ref<Value(Value, Value)> term,
                                                 [[maybe_unused]] function_ref<Value()> largest) {
    return std::nullopt;
  }
  /// Whether `share`, called here, shares.
  virtual bool isShared() const { return false; }
  /// Lets one of them do what all would do alike: stores.
  virtual void once(function_ref<void()> body) { body(); }
  /// Where isShared: memory for a row of the item, whose elements only those read who wrote them. Null where there is no
  /// room.
  virtual Value ownRow([[maybe_unused]] Type stored, [[maybe_unused]] int64_t count) { return {}; }

  /// Elements of a buffer, of their type in memory.
  virtual Value load(Type stored, Value buffer, Value position) = 0;
  virtual void store(Value element, Value buffer, Value position) = 0;
  /// A buffer of one item's own, undefined at its start.
  virtual Value scratch(Type stored, int64_t count) = 0;
};

} // namespace hpc::kernels
