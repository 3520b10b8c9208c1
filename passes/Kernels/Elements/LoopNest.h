// The interface through which a target runs a region: items of a parallel range, loops within an item, and memory. The
// code of regions (RegionBody, ElementEmitter) uses this alone; a device adds one class.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

/// For a row whose terms are exp(element - largest).
struct ShiftedSum {
  Value largest, sum;
};

class LoopNest {
public:
  virtual ~LoopNest() = default;

  /// The items of this call, the first and one after the last, if one thread computes them all: memory that code before
  /// forEachItem fills is then visible to each of them. Otherwise nullopt.
  virtual std::optional<std::pair<Value, Value>> itemsOfCall() const { return std::nullopt; }
  /// body(item) for the items of 0..count-1 that this call of the kernel is to do. Items are independent.
  virtual void forEachItem(int64_t count, function_ref<void(Value)> body) = 0;
  /// for (i = first; i < last; ++i) state = body(i, state), in one item. `state` may be null; then the iterations are
  /// independent.
  virtual Value loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) = 0;

  /// body(i) for 0..count-1, one after the other, at the top of an item: the threads of an item share in it too.
  virtual void forEachRow(int64_t count, function_ref<void(Value)> body) = 0;

  // An item may be computed by several threads together (on a device). Outside of `share` and `once` all of them do
  // the same.

  /// Joins the terms of 0..count-1: each thread does some of the iterations, always the same i. The order depends on
  /// `count` and the state's type alone, whatever the terms are. `state` is neutral in `join`; all threads get the
  /// result. If it is null, iterations are independent and `term` returns nothing. `join` also takes vectors.
  virtual Value share(int64_t count, Value state, function_ref<Value(Value)> term,
                      function_ref<Value(Value, Value)> join) = 0;
  /// The largest of the elements 0..count-1, NaN beyond all, and the sum of term(i, largest), which is exp(element i -
  /// largest): in one pass over memory, where two loops would read a row twice that is larger than the nearest caches.
  /// nullopt if the nest has nothing better than two loops. `largest` computes the maximum in a loop of its own, for
  /// rare cases.
  virtual std::optional<ShiftedSum> shareShifted([[maybe_unused]] int64_t count,
                                                 [[maybe_unused]] function_ref<Value(Value)> element,
                                                 [[maybe_unused]] function_ref<Value(Value, Value)> term,
                                                 [[maybe_unused]] function_ref<Value()> largest) {
    return std::nullopt;
  }
  /// Whether `share`, called here, shares.
  virtual bool isShared() const { return false; }
  /// Runs `body`, which stores, on one of the threads that would all do the same.
  virtual void once(function_ref<void()> body) { body(); }
  /// If isShared: memory for a row of the item, whose elements only their writers read. Null if there is no
  /// space.
  virtual Value ownRow([[maybe_unused]] Type stored, [[maybe_unused]] int64_t count) { return {}; }

  /// Elements of a buffer, of their type in memory.
  virtual Value load(Type stored, Value buffer, Value position) = 0;
  virtual void store(Value element, Value buffer, Value position) = 0;
  /// A buffer of one item's own, undefined at its start.
  virtual Value scratch(Type stored, int64_t count) = 0;
};

} // namespace hpc::kernels
