// The constant part may be any number of 64 bits; it is cut before positions are added, so that no sum wraps.
#include "passes/Kernels/Elements/CausalOffset.h"

#include "compiler/Dialect/NN/AttentionParts.h"

namespace hpc::kernels {

Value emitCausalOffset(ElementEmitter &emitter, const AttentionRegion &region) {
  ScalarBuilder &s = emitter.registers();
  Type i64 = s.builder.getI64Type();
  auto numberOf = [&](Value start) {
    return emitCast(s, emitter.element(start, {}), nn::tensorType(start).getElementType(), i64);
  };
  Value offset = s.whole(i64, std::clamp(*region.causalOffset, -nn::farthestOffset, nn::farthestOffset));
  for (Value start : region.queryStart)
    offset = s.add(offset, numberOf(start));
  for (Value start : region.keyStart)
    offset = s.sub(offset, numberOf(start));
  offset = s.make<arith::MaxSIOp>(offset, s.whole(i64, -region.queries));
  return s.make<arith::MinSIOp>(offset, s.whole(i64, region.keys));
}

} // namespace hpc::kernels
