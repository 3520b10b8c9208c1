// One rank's share of a GPU: its memory and its stream of computation, on which everything is enqueued in the order of
// the plan. The host's side runs ahead of the GPU by up to a step.
#pragma once

#include "runtime/backend/cuda/Attentions.h"
#include "runtime/backend/cuda/CudaOptions.h"
#include "runtime/backend/cuda/Products.h"
#include "runtime/backend/cuda/ReduceKernel.h"
#include "runtime/backend/cuda/Staging.h"
#include "runtime/backend/cuda/StepGraph.h"

#include <functional>
#include <optional>

namespace hpc::cuda {

/// A check of the rank's connections, which can break while the device waits.
class Watch {
public:
  virtual ~Watch() = default;
  /// At the start of each step.
  virtual Status begin() = 0;
  /// Called repeatedly while the host waits for the stream. An error: a rank has failed, and the stream's pending
  /// communication has been aborted.
  virtual Status check() = 0;
};

class CudaDevice : public Device {
public:
  /// `blas` is null for a plan without products, `dnn` where attention is left to kernels.
  static Expected<std::unique_ptr<CudaDevice>> create(const Gpu &gpu, const CublasLt *blas, const Cudnn *dnn,
                                                      ReduceKernels &reductions, const CudaOptions &options);

  Expected<std::byte *> allocate(plan::Space space, int64_t bytes, std::byte fill) override;
  Status begin() override;
  Expected<bool> replays() override;
  Status launch() override { return graph->launch(); }
  void abandon() override { graph->abandon(); }
  Status fill(std::byte *target, std::byte value, int64_t bytes) override;
  Status copy(std::byte *target, const std::byte *source, int64_t bytes) override;
  Status accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) override;
  Status gather(const SliceCopy &slice, const std::byte *host, std::byte *target) override;
  Status scatter(const SliceCopy &slice, const std::byte *source, std::byte *host) override;
  Expected<GemmHandle> prepare(const GemmCall &call) override;
  Expected<bool> fuses(const GemmCall &call) override;
  Status gemm(GemmHandle handle, const GemmCall &call) override;
  Expected<int64_t> prepare(const plan::Attention &attention) override;
  Status kernel(const KernelCall &call) override;
  Status finish() override;
  int64_t scratchBytes() const override {
    return (products ? products->workspaceBytes() : 0) + (attentions ? attentions->workspaceBytes() : 0);
  }

  /// Steps make different calls each time (for ever), or use objects that no longer exist: drops the recorded step.
  void forgetSteps(bool forEver) { graph->forget(forEver); }
  /// `watch` may be null, and has to be once it is gone.
  void watchBy(Watch *other) { watch = other; }
  const Gpu &gpu() const { return owner; }
  StreamHandle stream() const { return compute.get(); }
  /// Runs `call`, which enqueues work on this device's stream. With syncEachOp it waits for the work: one rank of a GPU
  /// at a time, so that an error belongs to the rank that caused it.
  Status enqueue(const std::function<Status()> &call);

private:
  CudaDevice(const Gpu &gpu, ReduceKernels &reductions, const CudaOptions &options)
      : owner(gpu), driver(gpu.driver()), reductions(reductions), options(options) {}
  Status synchronize();
  Expected<std::byte *> takePiece(int64_t bytes);

  const Gpu &owner;
  const Driver &driver;
  ReduceKernels &reductions;
  const CudaOptions options;
  Stream compute;
  std::vector<DeviceMemory> deviceMemory;
  std::vector<PinnedMemory> hostMemory;
  std::optional<Staging> staging;
  std::optional<Products> products;
  std::optional<Attentions> attentions;
  std::optional<StepGraph> graph;
  Watch *watch = nullptr;
  std::vector<void *> arguments; ///< of the kernel that is being started
};

} // namespace hpc::cuda
