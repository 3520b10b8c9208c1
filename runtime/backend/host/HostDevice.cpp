// Memory in huge pages where it is large, and the calls that need no more than a line.
#include "runtime/backend/host/HostDevice.h"

#include "runtime/backend/host/Code.h"
#include "runtime/backend/host/Gemm.h"
#include "runtime/backend/host/Reduce.h"
#include "runtime/base/CountText.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace hpc::host {

HostDevice::HostDevice(bool mayUseTiles) : mayUseTiles(mayUseTiles) { useOneThread(); }

Expected<std::byte *> HostDevice::allocate(plan::Space, int64_t bytes, std::byte fillValue) {
  constexpr size_t hugePage = size_t(2) << 20;
  size_t alignment = size_t(bytes) >= hugePage ? hugePage : 64;
  size_t size = std::max(alignment, size_t(roundUp(bytes, int64_t(alignment))));
  std::byte *address = static_cast<std::byte *>(std::aligned_alloc(alignment, size));
  if (!address)
    return Status::error(ErrorKind::Capacity, "cannot get " + countText(bytes, "byte") + " of memory");
  memory.emplace_back(address);
  if (alignment == hugePage)
    ::madvise(address, size, MADV_HUGEPAGE); // advice: without it the pages are small
  std::memset(address, int(fillValue), size);
  return address;
}

Status HostDevice::fill(std::byte *target, std::byte value, int64_t bytes) {
  std::memset(target, int(value), size_t(bytes));
  return Status::success();
}

Status HostDevice::copy(std::byte *target, const std::byte *source, int64_t bytes) {
  std::memcpy(target, source, size_t(bytes));
  return Status::success();
}

Status HostDevice::accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) {
  Expected<Reduction> sum = findReduction(ReduceKind::Sum, dtype);
  if (!sum.ok())
    return sum.status();
  alignas(64) std::byte block[8192];
  const int64_t elementSize = byteSize(dtype), step = int64_t(sizeof(block)) / sum->wideSize;
  for (int64_t at = 0; at < count; at += step) {
    int64_t elements = std::min(step, count - at);
    sum->begin(block, target + at * elementSize, elements);
    sum->add(block, source + at * elementSize, elements);
    sum->end(block, elements);
    std::memcpy(target + at * elementSize, block, size_t(elements * elementSize));
  }
  return Status::success();
}

Expected<GemmHandle> HostDevice::prepare(const GemmCall &call) {
  Expected<GemmNeeds> needs = gemmNeeds(call, mayUseTiles);
  if (!needs.ok())
    return needs.status();
  scratch.resize(std::max(scratch.size(), size_t(needs->scratch)));
  libraryBytes = std::max(libraryBytes, needs->library);
  return GemmHandle(0); // nothing is kept of a product: see gemm()
}

Status HostDevice::gemm(GemmHandle, const GemmCall &call) { return host::gemm(call, scratch, mayUseTiles); }

Status HostDevice::kernel(const KernelCall &call) {
  reinterpret_cast<KernelFunction>(const_cast<void *>(call.kernel))(call.args, call.scalars, 0, call.plan.rows);
  return Status::success();
}

} // namespace hpc::host
