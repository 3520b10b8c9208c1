// Lanes that accumulate the terms of a loop: lane l joins terms l, l + lanes, ... LLVM vectorizes the code of the
// terms, but no operation lets it choose an order.
#pragma once

#include "passes/Kernels/Host/HostLoops.h"

namespace hpc::kernels {

class HostLanes {
public:
  /// As many lanes as serve `count` terms of a float type, in pieces that are vectors.
  HostLanes(HostLoops &nest, Type element, int64_t count);

  int64_t count() const { return lanes; }
  /// The lanes' states, all `state`.
  SmallVector<Value> start(Value state);
  /// Joins `states` with the terms first .. first + elements - 1, at most as many as there are lanes; `none` is neutral
  /// in `join`. Terms are in scratch memory between the loop that computes them and the vectors that join them; if LLVM
  /// unrolls the loop, in registers.
  SmallVector<Value> takeIn(ValueRange states, Value first, int64_t elements, Value none, function_ref<Value(Value)> term,
                            function_ref<Value(Value, Value)> join);
  /// for (i = first; i < last; i += lanes) states = takeIn(states, i, lanes, ...).
  SmallVector<Value> takeInWhole(ValueRange states, Value first, Value last, Value none, function_ref<Value(Value)> term,
                                 function_ref<Value(Value, Value)> join);
  /// All lanes, joined by halves.
  Value join(ValueRange states, function_ref<Value(Value, Value)> join);

private:
  HostLoops &nest;
  Type element;
  int64_t lanes, width; ///< width: of a piece
  Value terms;
};

} // namespace hpc::kernels
