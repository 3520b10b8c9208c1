#include "runtime/plan/Packing.h"

#include <algorithm>

namespace hpc::plan {

PackedSize packedSize(const Stage &stage, const Gemm &gemm) {
  const Operand &b = gemm.b;
  const int64_t bytes = stage.buffers[size_t(b.place.buffer)].bytes, lines = b.ld > 0 ? bytes / (b.ld * byteSize(b.dtype)) : 0;
  return b.transpose ? PackedSize{b.ld, lines} : PackedSize{lines, b.ld};
}

bool canPack(const Plan &plan, const Stage &stage, const Gemm &gemm) {
  const PackedSize size = packedSize(stage, gemm);
  const int64_t bytes = stage.buffers[size_t(gemm.b.place.buffer)].bytes;
  if (gemm.b.place.byteOffset != 0 || size.k == 0 || size.n == 0 || size.k * size.n * byteSize(gemm.b.dtype) != bytes ||
      std::any_of(gemm.b.stride.begin(), gemm.b.stride.end(), [](int64_t stride) { return stride != 0; }))
    return false;
  return forEachEntry(plan, {&gemm.n, &gemm.k}, [&](int64_t coordinate, int64_t microBatch) {
    return gemm.n.at(coordinate, microBatch, plan.ranksPerStage()) == size.n &&
           gemm.k.at(coordinate, microBatch, plan.ranksPerStage()) <= size.k;
  });
}

bool packsAlike(const Gemm &a, const Gemm &b) {
  return a.b.transpose == b.b.transpose && a.b.ld == b.b.ld && a.b.dtype == b.b.dtype;
}

} // namespace hpc::plan
