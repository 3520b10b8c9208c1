// The kernel of sums over ranks: element by element, it combines the values of several ranks, in the order of
// the ranks, with 16-bit floats widened and rounded once at the end; all as in backend/host/Reduce, so that both
// backends give the same bits.
#pragma once

#include "runtime/backend/cuda/Gpu.h"
#include "runtime/base/DType.h"
#include "runtime/base/ReduceKind.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace hpc::cuda {

/// Text of a module with one entry `reduce`: a pointer for each source, one for each target that gets the result, and
/// the number of elements. A target may be a source.
std::string reducePtx(ReduceKind kind, DType dtype, int sources, int targets);

/// The kernels requested so far, for all GPUs. All ranks' threads use it.
class ReduceKernels {
public:
  explicit ReduceKernels(const Driver &driver) : driver(driver) {}

  /// At most 256 sources and targets together. Loaded into the GPU whose context the thread has.
  Expected<KernelObject> find(ReduceKind kind, DType dtype, int sources, int targets);
  /// Enqueues one on a stream of `gpu`, which the thread must have entered.
  Status launch(KernelObject kernel, const Gpu &gpu, StreamHandle stream, const std::vector<const std::byte *> &sources,
                const std::vector<std::byte *> &targets, int64_t count) const;

private:
  const Driver &driver;
  std::mutex mutex;
  std::map<std::tuple<ReduceKind, DType, int, int>, CodeLibrary> loaded;
};

/// Loads PTX; an error has the driver's own log.
Expected<CodeLibrary> loadCode(const Driver &driver, const std::string &ptx);
/// A function of loaded code, made ready in the thread's current context: kernels that are loaded at their first launch
/// would wait for all running work.
Expected<KernelObject> findKernel(const Driver &driver, const CodeLibrary &code, const std::string &symbol);

} // namespace hpc::cuda
