// One rank's share of this machine: memory, matrix products, calls of generated code, all on the rank's threads. The
// result of an instruction has the same bits for any number of threads.
#pragma once

#include "runtime/backend/host/WindowProduct.h"
#include "runtime/core/Backend.h"

#include <memory>

namespace hpc::host {

class HostDevice : public Device {
public:
  /// `mayUseTiles`: see TileProduct.h.
  HostDevice(ThreadPool &threads, bool mayUseTiles);
  /// On the caller's thread alone.
  explicit HostDevice(bool mayUseTiles = true) : HostDevice(alone, mayUseTiles) {}

  Expected<std::byte *> allocate(plan::Space space, int64_t bytes, std::byte fill) override;
  Status fill(std::byte *target, std::byte value, int64_t bytes) override;
  Status copy(std::byte *target, const std::byte *source, int64_t bytes) override;
  Status accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) override;
  bool worksInHostMemory() const override { return true; }
  Status gather(const SliceCopy &slice, const std::byte *host, std::byte *target) override;
  Status scatter(const SliceCopy &slice, const std::byte *source, std::byte *host) override;

  Expected<GemmHandle> prepare(const GemmCall &call) override;
  Status pack(const plan::Gemm &gemm, std::byte *b, int64_t k, int64_t n, const std::vector<GemmHandle> &products) override;
  Status gemm(GemmHandle handle, const GemmCall &call) override;
  Status kernel(const KernelCall &call) override;

  Status finish() override { return Status::success(); } // nothing is enqueued

  int64_t scratchBytes() const override;

private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte *memory) const;
  };
  ThreadPool alone; ///< used if no pool is given
  ThreadPool &threads;
  const bool mayUseTiles;
  std::vector<std::unique_ptr<std::byte, Unmap>> memory;
  struct Prepared {
    GemmMethod method, packed; ///< `packed`: with B packed, of a method that wants it
    std::unique_ptr<WindowProduct> windows = nullptr; ///< in their place, if B is windows
    bool isWeightPacked = false;                      ///< of `windows`: A is in its buffer in their form
  };
  std::vector<Prepared> products; ///< by handle
  std::vector<Scratch> scratch;    ///< by thread, for the product that takes most
  std::vector<Scratch> columns;    ///< likewise, of windows
  Scratch weight;                  ///< of windows, rearranged in each run
  int64_t libraryBytes = 0;        ///< of oneDNN on each thread, in the product that needs most
  int64_t packingBytes = 0;        ///< of the weight that needed most

  Expected<GemmHandle> prepareWindows(const GemmCall &call);
  Status packWindows(std::byte *a, int64_t bytes, const std::vector<GemmHandle> &products);
  Status multiplyWindows(const Prepared &product, const GemmCall &call);
};

} // namespace hpc::host
