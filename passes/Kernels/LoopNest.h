// How a target runs a region: who computes which item of its parallel range, loops within an item, and memory. What a
// region computes (RegionBody, ElementEmitter) is written against this alone; a device adds one class.
#pragma once

#include "compiler/MLIR.h"

namespace hpc::kernels {

class LoopNest {
public:
  virtual ~LoopNest() = default;

  /// body(item) for the items of 0..count-1 that this call of the kernel is to do. Items are independent.
  virtual void forEachItem(int64_t count, function_ref<void(Value)> body) = 0;
  /// for (i = first; i < last; ++i) state = body(i, state), in one item. `state` may be null; then the iterations are
  /// independent.
  virtual Value loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) = 0;

  /// Elements of a buffer, of their type in memory.
  virtual Value load(Type stored, Value buffer, Value position) = 0;
  virtual void store(Value element, Value buffer, Value position) = 0;
  /// A buffer of one item's own, undefined at its start.
  virtual Value scratch(Type stored, int64_t count) = 0;
};

} // namespace hpc::kernels
