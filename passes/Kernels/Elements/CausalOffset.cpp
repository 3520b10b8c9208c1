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
  if (region.isPlaced())
    return offset;
  offset = s.make<arith::MaxSIOp>(offset, s.whole(i64, -region.queries));
  return s.make<arith::MinSIOp>(offset, s.whole(i64, region.keys));
}

Value emitQueryPosition(ElementEmitter &emitter, const AttentionRegion &region, const IndexExpr &batch, const IndexExpr &query) {
  ScalarBuilder &s = emitter.registers();
  RankedTensorType type = nn::tensorType(region.queryPositions);
  Index at = type.getRank() == 1 ? Index{query} : Index{batch, query};
  return emitCast(s, emitter.element(region.queryPositions, at), type.getElementType(), s.builder.getI64Type());
}

Value emitLastKey(ElementEmitter &emitter, const AttentionRegion &region, const IndexExpr &batch, const IndexExpr &query, Value offset) {
  ScalarBuilder &s = emitter.registers();
  Type i64 = s.builder.getI64Type();
  Value last = s.add(emitQueryPosition(emitter, region, batch, query), offset);
  return s.make<arith::MinSIOp>(s.make<arith::MaxSIOp>(last, s.whole(i64, -1)), s.whole(i64, region.keys - 1));
}

} // namespace hpc::kernels
