// A kernel of the backend itself: numbers of 16 bits, row-major, into f32 with strides. Behind cuDNN's gradients of attention, which have 16 bits.
#pragma once

#include "runtime/backend/cuda/AttentionGraph.h"
#include "runtime/backend/cuda/Gpu.h"

#include <map>

namespace hpc::cuda {

/// Text of a module with one entry `widen`: pointers of source (f16 or bf16) and target; as u32 the elements in all and the sizes of the last three
/// of four dims, the last one first; the target's strides of the first three in elements, the last dim's is 1.
std::string widenPtx(DType from);

class WidenKernels {
public:
  /// Most elements of a tensor: they are numbered in 32 bits.
  static constexpr int64_t mostElements = int64_t(1) << 31;

  /// Loaded into the GPU whose context the thread has.
  Expected<KernelObject> find(const Driver &driver, DType from);
  /// Enqueues one on a stream of `gpu`, which the thread must have entered. `dims` of both; none is 0.
  static Status launch(KernelObject kernel, const Gpu &gpu, StreamHandle stream, const std::byte *source, std::byte *target, const Dims &dims, const Dims &strides);

private:
  std::map<DType, CodeLibrary> loaded;
};

} // namespace hpc::cuda
