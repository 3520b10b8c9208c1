// One rank's share of this machine: memory, matrix products, calls of generated code.
#pragma once

#include "runtime/core/Backend.h"

#include <cstdlib>

namespace hpc::host {

class HostDevice : public Device {
public:
  /// `mayUseTiles`: see TileProduct.h.
  explicit HostDevice(bool mayUseTiles = true);

  Expected<std::byte *> allocate(plan::Space space, int64_t bytes, std::byte fill) override;
  Status fill(std::byte *target, std::byte value, int64_t bytes) override;
  Status copy(std::byte *target, const std::byte *source, int64_t bytes) override;
  Status accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) override;
  Status gather(const SliceCopy &slice, const std::byte *host, std::byte *target) override {
    slice.gather(host, target);
    return Status::success();
  }
  Status scatter(const SliceCopy &slice, const std::byte *source, std::byte *host) override {
    slice.scatter(source, host);
    return Status::success();
  }

  Expected<GemmHandle> prepare(const GemmCall &call) override;
  Status gemm(GemmHandle handle, const GemmCall &call) override;
  Status kernel(const KernelCall &call) override;

  Status finish() override { return Status::success(); } // nothing is enqueued

  int64_t scratchBytes() const override { return libraryBytes + int64_t(scratch.size()); }

private:
  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  const bool mayUseTiles;
  std::vector<std::unique_ptr<std::byte, Free>> memory;
  std::vector<std::byte> scratch; ///< of the product that takes most
  int64_t libraryBytes = 0;       ///< of oneDNN in the product that takes most
};

} // namespace hpc::host
