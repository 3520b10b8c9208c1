// About 100 instructions an element, all of which LLVM makes vectors of; what depends on seed, step and offsets alone it
// moves out of the loop.
#include "passes/Kernels/Dropout.h"

#include "runtime/base/Philox.h"

namespace hpc::kernels {

namespace {
struct Mask {
  ElementEmitter &emitter;
  nn::DropoutOp op;
  ScalarBuilder &s = emitter.registers();
  Type i32 = s.builder.getI32Type(), i64 = s.builder.getI64Type();

  /// A number of rank 0.
  Value whole(Value scalar) {
    return emitCast(s, emitter.element(scalar, {}), nn::tensorType(scalar).getElementType(), i64);
  }
  Value low(Value wide) { return arith::TruncIOp::create(s.builder, s.loc, i32, wide); }
  Value high(Value wide) { return low(s.shiftRight(wide, 32)); }
  Value word(uint32_t value) { return s.whole(i32, int64_t(value)); }
  Value bitsOf(Value a, Value b, Value c) { return s.make<arith::XOrIOp>(s.make<arith::XOrIOp>(a, b), c); }

  /// Row-major in the whole tensor. What a rank's offsets add is the same for all elements.
  Value position(const Index &index) {
    ArrayRef<int64_t> shape = op.getWholeShape();
    SmallVector<int64_t> strides(shape.size(), 1);
    for (size_t dim = shape.size(); dim-- > 1;)
      strides[dim - 1] = strides[dim] * shape[dim];
    IndexExpr local = 0;
    for (auto [along, stride] : llvm::zip_equal(index, strides))
      local = emitter.index().add(local, IndexBuilder::mul(along, stride));
    Value start;
    for (auto [number, offset] : llvm::enumerate(op.getOffsets())) {
      Value part = s.mul(whole(offset), s.whole(i64, strides[size_t((*op.getOffsetDims())[number])]));
      start = start ? s.add(start, part) : part;
    }
    Value position = emitter.index().value(local);
    return start ? s.add(start, position) : position;
  }

  /// The first of the four words.
  Value draw(const Index &index) {
    Value at = position(index), seed = whole(op.getSeed());
    bool isShort = ShapedType::getNumElements(op.getWholeShape()) <= int64_t(1) << 32;
    Value c[4] = {low(at), isShort ? word(0) : high(at), low(whole(op.getStep())), word(uint32_t(op.getSite()))};
    Value key[2] = {low(seed), high(seed)};
    for (int round = 0; round < philox::rounds; ++round) {
      Value a = product(c[0], philox::multipliers[0]), b = product(c[2], philox::multipliers[1]);
      Value first = bitsOf(high(b), c[1], key[0]), third = bitsOf(high(a), c[3], key[1]);
      c[0] = first, c[1] = low(b), c[2] = third, c[3] = low(a);
      for (int i = 0; i < 2; ++i)
        key[i] = s.add(key[i], word(philox::keySteps[i]));
    }
    return c[0];
  }
  Value product(Value a, uint32_t factor) {
    return s.mul(arith::ExtUIOp::create(s.builder, s.loc, i64, a), s.whole(i64, int64_t(factor)));
  }
};
} // namespace

Value emitDropout(ElementEmitter &emitter, nn::DropoutOp op, const Index &index) {
  Mask mask{emitter, op};
  ScalarBuilder &s = mask.s;
  double rate = op.getRate().convertToDouble();
  Value x = emitter.element(op.getOperand(), index);
  Value isKept = s.compare(arith::CmpIPredicate::uge, mask.draw(index), mask.word(philox::dropoutThreshold(rate)));
  Value kept = s.mul(x, s.like(x, philox::dropoutScale(rate)));
  return s.round(s.select(isKept, kept, s.like(x, 0)), nn::tensorType(op.getResult()).getElementType());
}

} // namespace hpc::kernels
