// Each instruction is one or a few calls of the driver; only copies between host and GPU take more.
#include "runtime/backend/cuda/CudaDevice.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace hpc::cuda {

Expected<std::unique_ptr<CudaDevice>> CudaDevice::create(const Gpu &gpu, const CublasLt *blas, const Cudnn *dnn,
                                                         ReduceKernels &reductions, const CudaOptions &options) {
  HPC_RETURN_IF_ERROR(gpu.enter());
  std::unique_ptr<CudaDevice> device(new CudaDevice(gpu, reductions, options));
  Expected<Stream> stream = gpu.makeStream();
  if (!stream.ok())
    return stream.status();
  device->compute = std::move(*stream);
  device->graph.emplace(gpu.driver(), device->compute.get());
  if (!options.cudaGraph || options.syncEachOp)
    device->graph->forget(true);
  Expected<Staging> staging = Staging::create(gpu);
  if (!staging.ok())
    return staging.status();
  device->staging = std::move(*staging);
  if (blas) {
    Expected<Products> products = Products::create(*blas, gpu, options.tf32);
    if (!products.ok())
      return products.status();
    device->products.emplace(std::move(*products));
  }
  if (dnn) {
    Expected<Attentions> attentions = Attentions::create(*dnn, gpu, device->compute.get(), options.inRankOrder, options.note);
    if (!attentions.ok())
      return attentions.status();
    device->attentions.emplace(std::move(*attentions));
  }
  return device;
}

Expected<std::byte *> CudaDevice::allocate(plan::Space space, int64_t bytes, std::byte value) {
  if (space == plan::Space::Host) {
    if (bytes == 0)
      return static_cast<std::byte *>(nullptr);
    Expected<PinnedMemory> memory = owner.allocatePinned(bytes);
    if (!memory.ok())
      return memory.status();
    hostMemory.push_back(std::move(*memory));
    std::memset(hostMemory.back().get(), int(value), size_t(bytes));
    return static_cast<std::byte *>(hostMemory.back().get());
  }
  Expected<DeviceMemory> memory = owner.allocate(bytes);
  if (!memory.ok())
    return memory.status();
  deviceMemory.push_back(std::move(*memory));
  std::byte *address = reinterpret_cast<std::byte *>(uintptr_t(deviceMemory.back().get()));
  HPC_RETURN_IF_ERROR(fill(address, value, bytes));
  return address;
}

Status CudaDevice::begin() {
  HPC_RETURN_IF_ERROR(owner.enter());
  if (watch)
    HPC_RETURN_IF_ERROR(watch->begin());
  HPC_RETURN_IF_ERROR(synchronize()); // weights may still be on their way out of the staging memory
  staging->clear();
  return Status::success();
}

Expected<bool> CudaDevice::replays() { return graph->begin(); }

Status CudaDevice::fill(std::byte *target, std::byte value, int64_t bytes) {
  if (bytes == 0)
    return Status::success();
  return enqueue([&] {
    return check(driver,
                 driver.fillAsync(pointer(target), static_cast<unsigned char>(value), size_t(bytes), compute.get()),
                 "filling memory");
  });
}

Status CudaDevice::copy(std::byte *target, const std::byte *source, int64_t bytes) {
  if (bytes == 0)
    return Status::success();
  return enqueue([&] {
    return check(driver, driver.copyAsync(pointer(target), pointer(source), size_t(bytes), compute.get()),
                 "copying memory");
  });
}

Status CudaDevice::accumulate(std::byte *target, const std::byte *source, DType dtype, int64_t count) {
  Expected<KernelObject> kernel = reductions.find(ReduceKind::Sum, dtype, 2, 1);
  if (!kernel.ok())
    return kernel.status();
  return enqueue([&] { return reductions.launch(*kernel, owner, compute.get(), {target, source}, {target}, count); });
}

Expected<std::byte *> CudaDevice::takePiece(int64_t bytes) {
  std::byte *piece = staging->take(bytes);
  if (piece)
    return piece;
  graph->forget(true); // a step that waits in its middle is none to capture
  HPC_RETURN_IF_ERROR(finish());
  return staging->take(bytes);
}

Status CudaDevice::gather(const SliceCopy &slice, const std::byte *host, std::byte *target) {
  for (int64_t begin = 0; begin < slice.boxBytes(); begin += Staging::pieceBytes) {
    const int64_t bytes = std::min(Staging::pieceBytes, slice.boxBytes() - begin);
    Expected<std::byte *> piece = takePiece(bytes);
    if (!piece.ok())
      return piece.status();
    if (bytes == slice.boxBytes())
      slice.gather(host, *piece);
    else
      slice.gatherPart(host, *piece, begin, bytes);
    if (!graph->isReplaying())
      HPC_RETURN_IF_ERROR(copy(target + begin, *piece, bytes));
  }
  return Status::success();
}

Status CudaDevice::scatter(const SliceCopy &slice, const std::byte *source, std::byte *host) {
  for (int64_t begin = 0; begin < slice.boxBytes(); begin += Staging::pieceBytes) {
    const int64_t bytes = std::min(Staging::pieceBytes, slice.boxBytes() - begin);
    Expected<std::byte *> piece = takePiece(bytes);
    if (!piece.ok())
      return piece.status();
    if (!graph->isReplaying())
      HPC_RETURN_IF_ERROR(copy(*piece, source + begin, bytes));
    staging->expect(slice, *piece, begin, bytes, host);
  }
  return Status::success();
}

Expected<GemmHandle> CudaDevice::prepare(const GemmCall &call) {
  if (!products)
    return Status::error(ErrorKind::Internal, "a product in a plan that has none");
  return products->prepare(call, compute.get());
}

Expected<bool> CudaDevice::fuses(const GemmCall &call) {
  return products ? products->fuses(call, options.epilogues, compute.get()) : false;
}

Status CudaDevice::gemm(GemmHandle handle, const GemmCall &call) {
  return enqueue([&] { return products->run(handle, call, compute.get()); });
}

Expected<int64_t> CudaDevice::prepare(const plan::Attention &attention) {
  return attentions ? attentions->prepare(attention) : Expected<int64_t>(int64_t(-1));
}

Status CudaDevice::kernel(const KernelCall &call) {
  if (call.blocks == 0 || call.plan.rows == 0)
    return Status::success();
  if (call.library >= 0)
    return enqueue([&] { return attentions->run(call.library, call); });
  arguments.clear(); // each is the address of 8 bytes
  for (size_t i = 0; i < call.plan.args.size(); ++i)
    arguments.push_back(const_cast<void **>(&call.args[i]));
  for (size_t i = 0; i < call.plan.scalars.size(); ++i)
    arguments.push_back(const_cast<int64_t *>(&call.scalars[i]));
  auto function = reinterpret_cast<FunctionHandle>(const_cast<void *>(call.kernel));
  return enqueue([&] {
    return check(driver,
                 driver.launch(function, unsigned(call.blocks), 1, 1, unsigned(call.threads), 1, 1,
                               unsigned(call.sharedBytes), compute.get(), arguments.data(), nullptr),
                 "starting kernel '" + call.plan.symbol + "'");
  });
}

/// A stream that waits for another rank's may never come to its end.
Status CudaDevice::synchronize() {
  DriverResult result = watch ? driver.queryStream(compute.get()) : driver.synchronizeStream(compute.get());
  for (int64_t round = 0; watch && result == driverNotReady; ++round) {
    HPC_RETURN_IF_ERROR(watch->check());
    std::this_thread::sleep_for(std::chrono::microseconds(round < 1000 ? 5 : 50));
    result = driver.queryStream(compute.get());
  }
  return check(driver, result, "waiting for " + owner.name());
}

Status CudaDevice::enqueue(const std::function<Status()> &call) {
  if (!options.syncEachOp)
    return call();
  std::lock_guard<std::mutex> turn(owner.turns());
  Status status = call();
  if (status.ok())
    status = synchronize();
  if (!status.ok())
    owner.blame(this);
  return status;
}

Status CudaDevice::finish() {
  HPC_RETURN_IF_ERROR(options.syncEachOp ? enqueue([] { return Status::success(); }) : synchronize());
  staging->deliver();
  return Status::success();
}

} // namespace hpc::cuda
