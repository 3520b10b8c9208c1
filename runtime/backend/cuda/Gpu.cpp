// The primary context, so that libraries which use CUDA's other interface meet the same one.
#include "runtime/backend/cuda/Gpu.h"

#include <chrono>
#include <thread>

namespace hpc::cuda {

Expected<std::unique_ptr<Gpu>> Gpu::open(const Driver &driver, int ordinal) {
  const std::string what = "opening GPU " + std::to_string(ordinal);
  DeviceNumber number = 0;
  HPC_RETURN_IF_ERROR(check(driver, driver.deviceGet(&number, ordinal), what));
  std::unique_ptr<Gpu> gpu(new Gpu(driver, number));
  char name[256] = "";
  HPC_RETURN_IF_ERROR(check(driver, driver.deviceName(name, sizeof(name), number), what));
  gpu->text = "GPU " + std::to_string(ordinal) + " (" + name + ")";
  HPC_RETURN_IF_ERROR(check(driver, driver.deviceUuid(&gpu->cardUuid, number), what));
  int major = 0, minor = 0;
  HPC_RETURN_IF_ERROR(check(driver, driver.deviceAttribute(&major, attributeMajor, number), what));
  HPC_RETURN_IF_ERROR(check(driver, driver.deviceAttribute(&minor, attributeMinor, number), what));
  HPC_RETURN_IF_ERROR(check(driver, driver.deviceAttribute(&gpu->processors, attributeMultiprocessors, number), what));
  gpu->computeCapability = 10 * major + minor;
  ContextHandle context = nullptr;
  HPC_RETURN_IF_ERROR(check(driver, driver.retainContext(&context, number), what));
  gpu->context = context;
  HPC_RETURN_IF_ERROR(gpu->enter());
  return gpu;
}

Gpu::~Gpu() {
  if (context)
    table.releaseContext(number);
}

Status Gpu::reach(const Gpu &other) const {
  int can = 0;
  HPC_RETURN_IF_ERROR(check(table, table.canAccessPeer(&can, number, other.number), "querying peer access between GPUs"));
  if (!can)
    return Status::error(ErrorKind::Unsupported, text + " cannot reach the memory of " + other.text +
                                                     "; use one GPU (--ranks-per-gpu), or GPUs that are joined");
  HPC_RETURN_IF_ERROR(enter());
  DriverResult result = table.enablePeerAccess(other.context, 0);
  return result == driverPeerAlreadyEnabled ? Status::success()
                                            : check(table, result, text + ", reaching " + other.text);
}

Status Gpu::drain() const {
  HPC_RETURN_IF_ERROR(enter());
  return check(table, table.synchronizeContext(), "waiting for " + text);
}

void Gpu::blame(const void *rank) const {
  const void *nobody = nullptr;
  if (culprit.compare_exchange_strong(nobody, rank) || nobody == rank)
    return;
  for (int i = 0; i < 1000 && culprit.load() != nullptr; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Gpu::forgive() const { culprit = nullptr; }

Expected<Stream> Gpu::makeStream() const {
  StreamHandle handle = nullptr;
  HPC_RETURN_IF_ERROR(check(table, table.createStream(&handle, streamNonBlocking), "making a stream on " + text));
  return Stream(table, handle);
}

Expected<Event> Gpu::makeEvent() const {
  EventHandle handle = nullptr;
  HPC_RETURN_IF_ERROR(check(table, table.createEvent(&handle, eventDisableTiming), "making an event on " + text));
  return Event(table, handle);
}

Expected<DeviceMemory> Gpu::allocate(int64_t bytes) const {
  DevicePointer pointer = 0;
  DriverResult result = table.allocate(&pointer, size_t(bytes > 0 ? bytes : 1));
  if (result == driverOutOfMemory) {
    size_t free = 0, total = 0;
    table.memoryInfo(&free, &total);
    return Status::error(ErrorKind::Capacity, text + " has no " + std::to_string(bytes) + " bytes left: " +
                                                  std::to_string(free) + " of " + std::to_string(total) +
                                                  " are free; use more GPUs (--tp, --pp), a smaller batch or more "
                                                  "micro-batches");
  }
  HPC_RETURN_IF_ERROR(check(table, result, "allocating " + std::to_string(bytes) + " bytes on " + text));
  return DeviceMemory(table, pointer);
}

Expected<PinnedMemory> Gpu::allocatePinned(int64_t bytes) const {
  void *pointer = nullptr;
  HPC_RETURN_IF_ERROR(check(table, table.allocateHost(&pointer, size_t(bytes > 0 ? bytes : 1), hostAllocPortable),
                            "allocating " + std::to_string(bytes) + " bytes of pinned memory for " + text));
  return PinnedMemory(table, pointer);
}

} // namespace hpc::cuda
