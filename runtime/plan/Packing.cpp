#include "runtime/plan/Packing.h"

#include "runtime/plan/CheckedMath.h"

#include <algorithm>

namespace hpc::plan {

PackedSize packedSize(const Stage &stage, const Gemm &gemm) {
  const Operand &b = packable(gemm);
  const int64_t bytes = stage.buffers[size_t(b.place.buffer)].bytes, lines = b.ld > 0 ? bytes / (b.ld * byteSize(b.dtype)) : 0;
  return b.transpose || gemm.windows ? PackedSize{b.ld, lines} : PackedSize{lines, b.ld};
}

/// A's matrices are those of the batch dims along which it steps, from the last of them on.
static bool canPackOfWindows(const Plan &plan, const Stage &stage, const Gemm &gemm) {
  const Operand &a = gemm.a;
  const int64_t elements = stage.buffers[size_t(a.place.buffer)].bytes / byteSize(a.dtype);
  int64_t matrices = 1, size = 0;
  for (size_t dim = gemm.batch.size(); dim-- > 0;) {
    if (a.stride[dim] == 0)
      continue;
    size = size == 0 ? a.stride[dim] : size;
    if (a.stride[dim] != multiplySizes(matrices, size))
      return false;
    matrices = multiplySizes(matrices, gemm.batch[dim]);
  }
  if (a.transpose || a.place.byteOffset != 0 || !isEverywhere(a.offset, 0) || elements == 0 || matrices == 0 || elements % matrices != 0)
    return false;
  return forEachEntry(plan, {&gemm.m, &gemm.k}, [&](int64_t coordinate, int64_t microBatch) {
    const int64_t m = gemm.m.at(coordinate, microBatch, plan.ranksPerStage()),
                  k = gemm.k.at(coordinate, microBatch, plan.ranksPerStage());
    return k == a.ld && multiplySizes(m, k) == elements / matrices && (size == 0 || size == multiplySizes(m, k));
  });
}

bool canPack(const Plan &plan, const Stage &stage, const Gemm &gemm) {
  if (gemm.windows)
    return canPackOfWindows(plan, stage, gemm);
  const PackedSize size = packedSize(stage, gemm);
  const int64_t bytes = stage.buffers[size_t(gemm.b.place.buffer)].bytes;
  if (gemm.b.place.byteOffset != 0 || !isEverywhere(gemm.b.offset, 0) || size.k == 0 || size.n == 0 || size.k * size.n * byteSize(gemm.b.dtype) != bytes ||
      std::any_of(gemm.b.stride.begin(), gemm.b.stride.end(), [](int64_t stride) { return stride != 0; }))
    return false;
  return forEachEntry(plan, {&gemm.n, &gemm.k}, [&](int64_t coordinate, int64_t microBatch) {
    return gemm.n.at(coordinate, microBatch, plan.ranksPerStage()) == size.n &&
           gemm.k.at(coordinate, microBatch, plan.ranksPerStage()) <= size.k;
  });
}

bool packsAlike(const Gemm &a, const Gemm &b) {
  if (a.windows || b.windows)
    return a.windows == b.windows && a.b.transpose == b.b.transpose && a.a.dtype == b.a.dtype && a.b.dtype == b.b.dtype &&
           a.c.dtype == b.c.dtype && a.batch == b.batch && a.a.stride == b.a.stride && a.m.values == b.m.values &&
           a.n.values == b.n.values && a.k.values == b.k.values;
  return a.b.transpose == b.b.transpose && a.b.ld == b.b.ld && a.b.dtype == b.b.dtype;
}

} // namespace hpc::plan
