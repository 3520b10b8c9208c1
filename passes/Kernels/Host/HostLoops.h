// The loop nest of a CPU: a call does a range of items, one after the other; scf loops and LLVM pointers.
#pragma once

#include "passes/Kernels/Elements/LoopNest.h"

namespace hpc::kernels {

class HostLoops : public LoopNest {
public:
  /// The call does items begin..end-1. `entry`: the function's first block, where scratch memory and constants go.
  HostLoops(OpBuilder &builder, Location loc, Block *entry, Value begin, Value end)
      : builder(builder), loc(loc), entry(entry), begin(begin), end(end) {}

  std::optional<std::pair<Value, Value>> itemsOfCall() const override { return std::pair(begin, end); }
  void forEachItem(int64_t count, function_ref<void(Value)> body) override;
  Value loop(Value first, Value last, Value state, function_ref<Value(Value, Value)> body) override;
  void forEachRow(int64_t count, function_ref<void(Value)> body) override;
  /// For floats, in several lanes (HostSums.cpp).
  Value share(int64_t count, Value state, function_ref<Value(Value)> term,
              function_ref<Value(Value, Value)> join) override;
  /// For f32 (HostShiftedSums.cpp).
  std::optional<ShiftedSum> shareShifted(int64_t count, function_ref<Value(Value)> element,
                                         function_ref<Value(Value, Value)> term, function_ref<Value()> largest) override;
  Value load(Type stored, Value buffer, Value position) override;
  void store(Value element, Value buffer, Value position) override;
  Value scratch(Type stored, int64_t count) override;

private:
  friend class HostLanes;
  Value constant(int64_t value);
  Value shareInLanes(int64_t count, Value state, function_ref<Value(Value)> term,
                     function_ref<Value(Value, Value)> join);
  Value address(Type stored, Value buffer, Value position);

  OpBuilder &builder;
  Location loc;
  Block *entry;
  Value begin, end;
};

} // namespace hpc::kernels
