// Dropped elements in generated code: Philox 4x32-10 in 32-bit integers, the same words as runtime/base/Philox.h on
// every target. Values that depend on seed, step and offsets alone are computed by the constructor, outside of loops.
#pragma once

#include "compiler/Dialect/NN/DropoutDraw.h"
#include "passes/Kernels/Elements/ElementEmitter.h"

namespace hpc::kernels {

class DropoutMask {
public:
  DropoutMask(ElementEmitter &emitter, nn::DropoutDraw draw);

  /// The type of positions: i32 if the whole tensor has no more elements than that.
  Type type() const { return isShort ? Type(s.builder.getI32Type()) : Type(s.builder.getI64Type()); }
  /// The position of this rank's first element, index 0 along a dim whose positions are given.
  Value start() const { return first; }
  /// The positions along a dim, a value of the region; null where they are consecutive.
  Value positions(size_t dim) const { return draw.positionsOf(int64_t(dim)); }
  /// From an element to the next along a dim of the whole tensor.
  int64_t stride(size_t dim) const { return strides[dim]; }
  Value positionOf(Value index) { return isShort ? low(index) : index; } ///< from an i64

  /// Whether the elements at these positions, of type() or a vector of it, are kept.
  Value keeps(Value position);
  /// Registers: x scaled where it is kept, else 0.
  Value apply(Value x, Value isKept);

private:
  Value whole(Value scalar); ///< a number of rank 0, as an i64
  Value low(Value wide) { return arith::TruncIOp::create(s.builder, s.loc, like(wide, 32), wide); }
  Value high(Value wide) { return low(s.shiftRight(wide, 32)); }
  Value product(Value a, uint32_t factor);
  Value inLanes(Value scalar, Type like);
  static Type like(Value value, unsigned bits);

  ElementEmitter &emitter;
  ScalarBuilder &s;
  nn::DropoutDraw draw;
  bool isShort;
  SmallVector<int64_t> strides;
  Value first, key[2], step;
  Value rests; ///< whether nothing is dropped: in step 0
};

Value emitDropout(ElementEmitter &emitter, nn::DropoutOp op, const Index &index);

} // namespace hpc::kernels
