// About 100 instructions an element, all of which LLVM makes vectors of, where they are not made as vectors.
#include "passes/Kernels/Elements/Dropout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "runtime/base/Philox.h"

namespace hpc::kernels {

DropoutMask::DropoutMask(ElementEmitter &emitter, nn::DropoutDraw given)
    : emitter(emitter), s(emitter.registers()), draw(std::move(given)),
      isShort(ShapedType::getNumElements(draw.wholeShape) <= int64_t(1) << 32), strides(draw.wholeShape.size(), 1) {
  for (size_t dim = strides.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * draw.wholeShape[dim];
  Value start;
  for (auto [number, offset] : llvm::enumerate(draw.offsets)) {
    if (!nn::shapeOf(offset).empty())
      continue; // positions are added where an index is known
    int64_t along = strides[size_t(draw.offsetDims[number])];
    Value part = s.mul(whole(offset), s.whole(s.builder.getI64Type(), along));
    start = start ? s.add(start, part) : part;
  }
  first = start ? positionOf(start) : s.whole(type(), 0);
  Value seed = whole(draw.seed);
  key[0] = low(seed), key[1] = high(seed);
  Value wide = whole(draw.step);
  step = low(wide);
  rests = s.compare(arith::CmpIPredicate::eq, wide, s.whole(s.builder.getI64Type(), 0));
}

Value DropoutMask::whole(Value scalar) {
  return emitCast(s, emitter.element(scalar, {}), nn::tensorType(scalar).getElementType(), s.builder.getI64Type());
}

Type DropoutMask::like(Value value, unsigned bits) {
  Type element = IntegerType::get(value.getContext(), bits);
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? Type(vector.clone(element)) : element;
}

Value DropoutMask::inLanes(Value scalar, Type like) {
  auto vector = dyn_cast<VectorType>(like);
  if (!vector)
    return scalar;
  Value undefined = LLVM::PoisonOp::create(s.builder, s.loc, vector.clone(scalar.getType()));
  Value zero = s.whole(s.builder.getI64Type(), 0);
  Value one = LLVM::InsertElementOp::create(s.builder, s.loc, undefined, scalar, zero);
  SmallVector<int32_t> lanes(size_t(vector.getNumElements()), 0);
  return LLVM::ShuffleVectorOp::create(s.builder, s.loc, one, undefined, lanes);
}

Value DropoutMask::product(Value a, uint32_t factor) {
  Type wide = like(a, 64);
  return s.mul(arith::ExtUIOp::create(s.builder, s.loc, wide, a), s.whole(wide, int64_t(factor)));
}

/// By the first of the four words.
Value DropoutMask::keeps(Value position) {
  Type type = like(position, 32);
  auto word = [&](uint32_t value) { return s.whole(type, int64_t(value)); };
  auto bitsOf = [&](Value a, Value b, Value c) { return s.make<arith::XOrIOp>(s.make<arith::XOrIOp>(a, b), c); };
  Value c[4] = {isShort ? position : low(position), isShort ? word(0) : high(position), inLanes(step, type),
                word(uint32_t(draw.site))};
  Value keys[2] = {key[0], key[1]}; // scalars until they are used: the same for all lanes
  for (int round = 0; round < philox::rounds; ++round) {
    Value a = product(c[0], philox::multipliers[0]), b = product(c[2], philox::multipliers[1]);
    Value first = bitsOf(high(b), c[1], inLanes(keys[0], type)), third = bitsOf(high(a), c[3], inLanes(keys[1], type));
    c[0] = first, c[1] = low(b), c[2] = third, c[3] = low(a);
    for (int i = 0; i < 2; ++i)
      keys[i] = s.add(keys[i], s.whole(keys[i].getType(), int64_t(philox::keySteps[i])));
  }
  Type one = s.builder.getI32Type();
  Value threshold = s.select(rests, s.whole(one, 0), s.whole(one, int64_t(philox::dropoutThreshold(draw.rate))));
  return s.compare(arith::CmpIPredicate::uge, c[0], inLanes(threshold, type));
}

Value DropoutMask::apply(Value x, Value isKept) {
  Value scale = s.select(rests, s.like(x, 1), s.like(x, philox::dropoutScale(draw.rate)));
  return s.select(isKept, s.mul(x, scale), s.like(x, 0));
}

Value emitDropout(ElementEmitter &emitter, nn::DropoutOp op, const Index &index) {
  DropoutMask mask(emitter, *nn::dropoutOf(op));
  ScalarBuilder &s = emitter.registers();
  IndexExpr local = 0;
  Value start = mask.start();
  for (auto [dim, along] : llvm::enumerate(index))
    if (Value positions = mask.positions(dim)) {
      Type i64 = s.builder.getI64Type();
      Value position = emitCast(s, emitter.element(positions, {along}), nn::tensorType(positions).getElementType(), i64);
      start = s.add(start, mask.positionOf(s.mul(position, s.whole(i64, mask.stride(dim)))));
    } else {
      local = emitter.index().add(local, IndexBuilder::mul(along, mask.stride(dim)));
    }
  Value x = emitter.element(op.getOperand(), index);
  Value position = s.add(start, mask.positionOf(emitter.index().value(local)));
  return s.round(mask.apply(x, mask.keeps(position)), nn::tensorType(op.getResult()).getElementType());
}

} // namespace hpc::kernels
