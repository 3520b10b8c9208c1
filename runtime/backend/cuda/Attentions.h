// Attention by cuDNN, in place of kernels that compute one: chosen once, before the first run, with its memory beside
// the arenas. The kernel keeps the attentions that cuDNN does not support, or not with the requested numerics.
#pragma once

#include "runtime/backend/cuda/AttentionGraph.h"
#include "runtime/backend/cuda/Gpu.h"
#include "runtime/backend/cuda/WidenKernel.h"
#include "runtime/core/Backend.h"

#include <functional>
#include <map>
#include <optional>

namespace hpc::cuda {

class Attentions {
public:
  using Note = std::function<void(const std::string &)>;
  /// All runs are on `stream`. `sameBits`: results repeat bit for bit, which cuDNN's gradients do not. `note`, may be
  /// null: receives the attentions that this cuDNN refuses though they look supported, and those that it rounds.
  static Expected<Attentions> create(const Cudnn &dnn, const Gpu &gpu, StreamHandle stream, bool sameBits, Note note);

  /// The argument for run(), or -1: the kernel has to compute the attention.
  Expected<int64_t> prepare(const plan::Attention &attention);
  Status run(int64_t prepared, const KernelCall &call) const;
  int64_t workspaceBytes() const { return reserved; }

private:
  struct Prepared {
    CudnnPlan forward;
    std::optional<CudnnPlan> backward;
    KernelObject widening = nullptr; ///< of the results, if they are widened
    /// Offsets in the workspace: cuDNN's own; for a gradient the result, stats, row sums and the query's in f32; then
    /// those of query, key and value in 16 bits, if they are widened.
    std::array<int64_t, 8> place = {0, 0, 0, 0, 0, 0, 0, 0};
  };

  Attentions(const Cudnn &dnn, const Gpu &gpu, StreamHandle stream, bool sameBits, Note note)
      : dnn(&dnn), gpu(&gpu), stream(stream), sameBits(sameBits), note(std::move(note)) {}
  Expected<std::optional<Prepared>> make(const plan::Attention &attention, int64_t &bytes);

  const Cudnn *dnn;
  const Gpu *gpu;
  StreamHandle stream;
  bool sameBits;
  Note note;
  Dnn handle;
  WidenKernels widenKernels;
  DeviceMemory workspace;
  int64_t reserved = 0;
  std::vector<Prepared> prepared;
  std::map<std::vector<int64_t>, int64_t> known; ///< by all facts that decide about a plan: layers are equal
};

} // namespace hpc::cuda
