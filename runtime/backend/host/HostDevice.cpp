// Memory in huge pages where it is large; work in pieces of rows or bytes, on one thread where there is little.
#include "runtime/backend/host/HostDevice.h"

#include "runtime/backend/host/Code.h"
#include "runtime/backend/host/Reduce.h"
#include "runtime/backend/host/VectorProduct.h"
#include "runtime/base/CountText.h"
#include "runtime/base/IntegerMath.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace hpc::host {

namespace {

/// Bytes that are read or written in the time that it takes to wake a helper, or more.
constexpr int64_t leastBytes = 32 << 10;
constexpr int64_t cacheLine = 64;
/// Pieces of each thread: several, since they take different times, and a thread may share its core.
constexpr int64_t piecesOfEach = 6;

/// Items of a piece, where all of them touch `bytes` of memory.
int64_t grainFor(int64_t items, int64_t bytes, int64_t threads) {
  const int64_t pieces = std::clamp<int64_t>(bytes / leastBytes, 1, threads * piecesOfEach);
  return std::max<int64_t>(1, ceilDiv(items, pieces));
}

/// work(first, count) for pieces of `bytes` that begin at multiples of a cache line.
template <typename Work> Status eachPiece(ThreadPool &threads, int64_t bytes, const Work &work) {
  const int64_t grain = roundUp(grainFor(bytes, bytes, threads.threads()), cacheLine);
  return threads.run(bytes, grain, [&](int64_t, int64_t first, int64_t last) {
    work(first, last - first);
    return Status::success();
  });
}

} // namespace

HostDevice::HostDevice(ThreadPool &threads, bool mayUseTiles)
    : threads(threads), mayUseTiles(mayUseTiles), scratch(size_t(threads.threads())), columns(size_t(threads.threads())) {
  useOneThread();
}

void HostDevice::Unmap::operator()(std::byte *memory) const { ::munmap(memory, bytes); }

/// New pages are zero, and the kernel clears a page at the first write, on the writing thread: so no pass writes zeros,
/// and several threads that load weights clear pages in parallel.
Expected<std::byte *> HostDevice::allocate(plan::Space, int64_t bytes, std::byte fillValue) {
  constexpr int64_t page = 4096, hugePage = int64_t(2) << 20;
  const bool isLarge = bytes >= hugePage;
  // The part before the first huge page is given back.
  const int64_t size = roundUp(std::max<int64_t>(bytes, 1), isLarge ? hugePage : page), slack = isLarge ? hugePage : 0;
  void *mapped = ::mmap(nullptr, size_t(size + slack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return Status::error(ErrorKind::Capacity, "cannot get " + countText(bytes, "byte") + " of memory");
  std::byte *address = static_cast<std::byte *>(mapped);
  if (isLarge) {
    const int64_t before = roundUp(int64_t(reinterpret_cast<uintptr_t>(address)), hugePage) -
                           int64_t(reinterpret_cast<uintptr_t>(address));
    if (before > 0)
      ::munmap(address, size_t(before));
    address += before;
    if (before < slack)
      ::munmap(address + size, size_t(slack - before));
    ::madvise(address, size_t(size), MADV_HUGEPAGE); // advice: without it the pages are small
  }
  memory.emplace_back(address, Unmap{size_t(size)});
  if (fillValue != std::byte(0))
    std::memset(address, int(fillValue), size_t(size));
  return address;
}

Status HostDevice::fill(std::byte *target, std::byte value, int64_t bytes) {
  return eachPiece(threads, bytes, [&](int64_t first, int64_t count) {
    std::memset(target + first, int(value), size_t(count));
  });
}

Status HostDevice::copy(std::byte *target, const std::byte *source, int64_t bytes) {
  return eachPiece(threads, bytes, [&](int64_t first, int64_t count) {
    std::memcpy(target + first, source + first, size_t(count));
  });
}

Status HostDevice::gather(const SliceCopy &slice, const std::byte *host, std::byte *target) {
  if (!slice.isQuickInParts()) {
    slice.gather(host, target);
    return Status::success();
  }
  return eachPiece(threads, slice.boxBytes(), [&](int64_t first, int64_t count) {
    slice.gatherPart(host, target + first, first, count);
  });
}

Status HostDevice::scatter(const SliceCopy &slice, const std::byte *source, std::byte *host) {
  if (!slice.isQuickInParts()) {
    slice.scatter(source, host);
    return Status::success();
  }
  return eachPiece(threads, slice.boxBytes(), [&](int64_t first, int64_t count) {
    slice.scatterPart(source + first, host, first, count);
  });
}

Status HostDevice::accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) {
  Expected<Reduction> sum = findReduction(ReduceKind::Sum, dtype);
  if (!sum.ok())
    return sum.status();
  const int64_t elementSize = byteSize(dtype);
  return eachPiece(threads, count * elementSize, [&](int64_t first, int64_t bytes) {
    alignas(64) std::byte block[8192];
    const int64_t step = int64_t(sizeof(block)) / sum->wideSize * elementSize;
    for (int64_t at = first; at < first + bytes; at += step) {
      const int64_t size = std::min(step, first + bytes - at);
      sum->begin(block, target + at, size / elementSize);
      sum->add(block, source + at, size / elementSize);
      sum->end(block, size / elementSize);
      std::memcpy(target + at, block, size_t(size));
    }
  });
}

Expected<GemmHandle> HostDevice::prepareWindows(const GemmCall &call) {
  Expected<WindowProduct> made = WindowProduct::create(call, mayUseTiles);
  if (!made.ok())
    return made.status();
  const WindowProduct::Needs &needs = made->needs();
  for (Scratch &memory : columns)
    memory.resize(std::max(memory.size(), size_t(needs.columns)));
  for (Scratch &memory : scratch)
    memory.resize(std::max(memory.size(), size_t(needs.scratch)));
  libraryBytes = std::max(libraryBytes, needs.library);
  if (!call.plan.a.packed || !made->packsInPlace())
    weight.resize(std::max(weight.size(), size_t(made->weightBytes())));
  products.push_back({{}, {}, std::make_unique<WindowProduct>(std::move(*made))});
  return GemmHandle(products.size() - 1);
}

/// All of them are of one shape, so one form serves them. A blob at a time, so that little is in memory twice.
Status HostDevice::packWindows(std::byte *a, int64_t bytes, const std::vector<GemmHandle> &handles) {
  const WindowProduct &product = *products[size_t(handles.front())].windows;
  if (!product.packsInPlace())
    return Status::success();
  const int64_t blob = product.blobBytes();
  HPC_RETURN_IF_ERROR(threads.run(bytes / blob, 1, [&](int64_t thread, int64_t first, int64_t last) {
    if (thread > 0)
      useOneThread();
    std::unique_ptr<std::byte[]> stored(new std::byte[size_t(blob)]);
    for (int64_t at = first; at < last; ++at) {
      std::memcpy(stored.get(), a + at * blob, size_t(blob));
      HPC_RETURN_IF_ERROR(product.pack(stored.get(), a + at * blob));
    }
    return Status::success();
  }));
  packingBytes = std::max(packingBytes, blob * threads.threads());
  for (GemmHandle handle : handles)
    products[size_t(handle)].isWeightPacked = true;
  return Status::success();
}

Status HostDevice::multiplyWindows(const Prepared &product, const GemmCall &call) {
  const std::byte *a = call.a;
  if (!product.isWeightPacked && product.windows->weightBytes() > 0) {
    const WindowProduct &windows = *product.windows;
    HPC_RETURN_IF_ERROR(threads.run(windows.blobs(), 1, [&](int64_t thread, int64_t first, int64_t last) {
      if (thread > 0)
        useOneThread();
      for (int64_t at = first; at < last; ++at)
        HPC_RETURN_IF_ERROR(windows.pack(call.a + at * windows.storedBytes(), weight.data() + at * windows.blobBytes()));
      return Status::success();
    }));
    a = weight.data();
  }
  return product.windows->run(call, a, threads, columns, scratch);
}

Expected<GemmHandle> HostDevice::prepare(const GemmCall &call) {
  if (call.plan.windows)
    return prepareWindows(call);
  Expected<GemmNeeds> needs = gemmNeeds(call, mayUseTiles);
  if (!needs.ok())
    return needs.status();
  for (Scratch &memory : scratch)
    memory.resize(std::max(memory.size(), size_t(needs->scratch)));
  libraryBytes = std::max(libraryBytes, needs->library);
  GemmMethod method = chooseMethod(call, threads.threads(), mayUseTiles);
  products.push_back({method, method.wantsPacked ? methodOfPacked(call, threads.threads()) : GemmMethod()});
  return GemmHandle(products.size() - 1);
}

Status HostDevice::pack(const plan::Gemm &gemm, std::byte *b, int64_t k, int64_t n,
                        const std::vector<GemmHandle> &handles) {
  if (gemm.windows)
    return packWindows(b, k * n * byteSize(gemm.a.dtype), handles);
  for (GemmHandle handle : handles)
    if (!products[size_t(handle)].method.wantsPacked)
      return Status::success();
  const VectorWay &way = *bestWay(gemm.a.dtype, gemm.b.dtype); // all of them need the same form
  if (k % way.depthOfStep != 0)
    return Status::success();
  const int64_t bytes = k * n * byteSize(gemm.b.dtype);
  std::unique_ptr<std::byte[]> stored(new std::byte[size_t(bytes)]);
  std::memcpy(stored.get(), b, size_t(bytes));
  const ConstMatrix from{stored.get(), gemm.b.dtype, gemm.b.ld, gemm.b.transpose};
  HPC_RETURN_IF_ERROR(threads.run(ceilDiv(n, way.panelColumns), 1, [&](int64_t, int64_t first, int64_t last) {
    packVectors(way, from, k, n, first, last, b);
    return Status::success();
  }));
  packingBytes = std::max(packingBytes, bytes);
  for (Scratch &memory : scratch)
    memory.resize(std::max(memory.size(), size_t(vectorScratch(gemm.c.dtype))));
  for (GemmHandle handle : handles) {
    Prepared &product = products[size_t(handle)];
    product.method = product.packed;
    product.method.packedDepth = k;
  }
  return Status::success();
}

Status HostDevice::gemm(GemmHandle handle, const GemmCall &call) {
  const Prepared &product = products[size_t(handle)];
  return product.windows ? multiplyWindows(product, call) : host::gemm(call, product.method, threads, scratch);
}

int64_t HostDevice::scratchBytes() const {
  int64_t bytes = packingBytes + int64_t(weight.size());
  for (const Scratch &memory : scratch)
    bytes += libraryBytes + int64_t(memory.size());
  for (const Scratch &memory : columns)
    bytes += int64_t(memory.size());
  return bytes;
}

Status HostDevice::kernel(const KernelCall &call) {
  const auto function = reinterpret_cast<KernelFunction>(const_cast<void *>(call.kernel));
  int64_t bytes = 0;
  for (const plan::KernelArg &arg : call.plan.args)
    bytes += arg.bytes;
  const int64_t grain = grainFor(call.plan.rows, bytes, threads.threads());
  return threads.run(call.plan.rows, grain, [&](int64_t, int64_t first, int64_t last) {
    function(call.args, call.scalars, first, last);
    return Status::success();
  });
}

} // namespace hpc::host
