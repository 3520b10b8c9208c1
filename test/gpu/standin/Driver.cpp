// The driver's functions under their own names. Each checks what documentation asks of its caller: a context, handles
// that are alive and belong to it, memory that is there.
#include "test/gpu/standin/Capture.h"
#include "test/gpu/standin/Ptx.h"

#include <cstring>

using namespace hpc::cuda;
using standin::Machine;
using standin::Memory;
using standin::Running;

namespace hpc::cuda {
/// Code for all contexts.
struct LibraryState {
  standin::ptx::Module module;
  std::map<std::string, std::unique_ptr<KernelState>> kernels;
};
struct KernelState {
  const standin::ptx::Kernel *kernel = nullptr;
};
} // namespace hpc::cuda

namespace {

/// Handles of one kind that are alive.
template <typename T> class Registry {
public:
  explicit Registry(std::string kind) : kind(std::move(kind)) {}
  T *add(T *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    alive.insert(handle);
    return handle;
  }
  bool has(T *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    return alive.count(handle) > 0;
  }
  bool remove(T *handle) {
    std::lock_guard<std::mutex> lock(mutex);
    return alive.erase(handle) > 0;
  }

private:
  const std::string kind;
  std::mutex mutex;
  std::set<T *> alive;
};

Registry<StreamState> &streams() {
  static auto *registry = new Registry<StreamState>("stream");
  return *registry;
}
Registry<EventState> &events() {
  static auto *registry = new Registry<EventState>("event");
  return *registry;
}
Registry<LibraryState> &libraries() {
  static auto *registry = new Registry<LibraryState>("library");
  return *registry;
}

/// 0, or why a call that works on the current context cannot.
DriverResult contextProblem() {
  ContextState *context = standin::currentContext();
  if (!context || !context->isRetained())
    return driverInvalidContext;
  return context->error;
}

#define ENTER(FAILURE)                                                                                                 \
  if (int failure = Machine::instance().enter(__func__, FAILURE))                                                      \
  return failure
#define IN_CONTEXT()                                                                                                   \
  if (DriverResult problem = contextProblem())                                                                         \
  return problem
#define ON_STREAM(STREAM)                                                                                              \
  if (!streams().has(STREAM))                                                                                          \
  return driverInvalidHandle
#define NOT_WHILE_CAPTURING()                                                                                          \
  if (DriverResult forbidden = standin::forbiddenNow())                                                                \
  return forbidden
constexpr DriverResult unknownError = 999;

/// A stream that is being captured has nothing to wait for, and asking spoils the capture.
bool spoils(StreamHandle stream) {
  std::lock_guard<std::mutex> lock(standin::captureMutex());
  if (stream->capture)
    stream->capture->isInvalid = true;
  return stream->capture != nullptr;
}

uint64_t addressOf(DevicePointer pointer) { return uint64_t(pointer); }

} // namespace

extern "C" {

DriverResult cuInit(unsigned) {
  ENTER(driverNoDevice);
  return driverSuccess;
}
DriverResult cuGetErrorName(DriverResult result, const char **text) {
  *text = result == driverOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == driverIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == driverInvalidPtx     ? "CUDA_ERROR_INVALID_PTX"
          : result == driverNotFound       ? "CUDA_ERROR_NOT_FOUND"
          : result == driverInvalidHandle  ? "CUDA_ERROR_INVALID_HANDLE"
          : result == driverNoDevice       ? "CUDA_ERROR_NO_DEVICE"
          : result == unknownError         ? "CUDA_ERROR_UNKNOWN"
                                           : nullptr;
  return *text ? driverSuccess : driverInvalidValue;
}
DriverResult cuGetErrorString(DriverResult result, const char **text) {
  *text = result == driverOutOfMemory      ? "out of memory"
          : result == driverIllegalAddress ? "an illegal memory access was encountered"
          : result == unknownError         ? "unknown error"
                                           : nullptr;
  return *text ? driverSuccess : driverInvalidValue;
}
DriverResult cuDeviceGetCount(int *count) {
  ENTER(unknownError);
  *count = Machine::instance().settings().devices;
  return driverSuccess;
}
DriverResult cuDeviceGet(DeviceNumber *device, int ordinal) {
  ENTER(unknownError);
  if (ordinal < 0 || ordinal >= Machine::instance().settings().devices)
    return 101; // CUDA_ERROR_INVALID_DEVICE
  *device = ordinal;
  return driverSuccess;
}
DriverResult cuDeviceGetName(char *name, int bytes, DeviceNumber) {
  ENTER(unknownError);
  std::strncpy(name, "stand-in", size_t(bytes));
  return driverSuccess;
}
DriverResult cuDeviceGetAttribute(int *value, int attribute, DeviceNumber) {
  ENTER(unknownError);
  *value = attribute == attributeMajor ? 8 : attribute == attributeMinor ? 0 : 2;
  return driverSuccess;
}
DriverResult cuDeviceGetUuid_v2(CardUuid *uuid, DeviceNumber device) {
  ENTER(unknownError);
  *uuid = CardUuid{{'s', 't', 'a', 'n', 'd', '-', 'i', 'n', char('0' + device)}};
  return driverSuccess;
}
DriverResult cuDeviceCanAccessPeer(int *can, DeviceNumber device, DeviceNumber peer) {
  ENTER(unknownError);
  *can = device != peer;
  return driverSuccess;
}
DriverResult cuDevicePrimaryCtxRetain(ContextHandle *context, DeviceNumber device) {
  ENTER(driverOutOfMemory);
  *context = Machine::instance().context(device);
  (*context)->retain();
  Machine::instance().count("contexts", 1);
  return driverSuccess;
}
DriverResult cuDevicePrimaryCtxRelease_v2(DeviceNumber device) {
  if (!Machine::instance().context(device)->release())
    return driverInvalidContext;
  Machine::instance().count("contexts", -1);
  return driverSuccess;
}
DriverResult cuCtxSetCurrent(ContextHandle context) {
  ENTER(unknownError);
  standin::currentContext() = context;
  return driverSuccess;
}
DriverResult cuCtxEnablePeerAccess(ContextHandle peer, unsigned) {
  ENTER(unknownError);
  IN_CONTEXT();
  return standin::currentContext()->reach(peer->device) ? driverSuccess : driverPeerAlreadyEnabled;
}
DriverResult cuMemGetInfo_v2(size_t *free, size_t *total) {
  *total = size_t(Machine::instance().settings().memory);
  const uint64_t used = Memory::instance().used(standin::currentContext()->device);
  *free = used > *total ? 0 : *total - used;
  return driverSuccess;
}
DriverResult cuMemAlloc_v2(DevicePointer *pointer, size_t bytes) {
  ENTER(driverOutOfMemory);
  IN_CONTEXT();
  NOT_WHILE_CAPTURING();
  if (bytes == 0)
    return driverInvalidValue;
  *pointer = Memory::instance().allocate(standin::currentContext()->device, bytes,
                                         uint64_t(Machine::instance().settings().memory));
  return *pointer ? driverSuccess : driverOutOfMemory;
}
DriverResult cuMemFree_v2(DevicePointer pointer) {
  NOT_WHILE_CAPTURING();
  if (Memory::instance().free(addressOf(pointer), false))
    return driverSuccess;
  Machine::instance().misuse("memory is freed that is not there");
  return driverInvalidValue;
}
DriverResult cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  ENTER(driverOutOfMemory);
  IN_CONTEXT();
  NOT_WHILE_CAPTURING();
  if (bytes == 0)
    return driverInvalidValue;
  *pointer = Memory::instance().allocateHost(bytes);
  return driverSuccess;
}
DriverResult cuMemFreeHost(void *pointer) {
  NOT_WHILE_CAPTURING();
  if (Memory::instance().free(uint64_t(reinterpret_cast<uintptr_t>(pointer)), true))
    return driverSuccess;
  Machine::instance().misuse("pinned memory is freed that is not there");
  return driverInvalidValue;
}
DriverResult cuMemcpyAsync(DevicePointer target, DevicePointer source, size_t bytes, StreamHandle stream) {
  ENTER(unknownError);
  IN_CONTEXT();
  ON_STREAM(stream);
  int device = 0;
  for (DevicePointer pointer : {target, source})
    if (bytes > 0 && !Memory::instance().find(addressOf(pointer), bytes, device)) {
      Machine::instance().misuse("a copy of " + std::to_string(bytes) +
                                 " bytes leaves an allocation, or its memory is not pinned");
      return driverInvalidValue;
    }
  stream->enqueue("copy", [=](const Running &running) {
    std::byte *to = running.access(addressOf(target), bytes), *from = running.access(addressOf(source), bytes);
    running.note({{addressOf(source), bytes}}, false);
    running.note({{addressOf(target), bytes}}, true);
    if (to && from)
      std::memmove(to, from, bytes);
  });
  return driverSuccess;
}
DriverResult cuMemsetD8Async(DevicePointer target, unsigned char value, size_t bytes, StreamHandle stream) {
  ENTER(unknownError);
  IN_CONTEXT();
  ON_STREAM(stream);
  stream->enqueue("fill", [=](const Running &running) {
    running.note({{addressOf(target), bytes}}, true);
    if (std::byte *to = running.access(addressOf(target), bytes))
      std::memset(to, value, bytes);
  });
  return driverSuccess;
}
DriverResult cuMemsetD2D8Async(DevicePointer target, size_t pitch, unsigned char value, size_t width, size_t height,
                               StreamHandle stream) {
  ENTER(unknownError);
  IN_CONTEXT();
  ON_STREAM(stream);
  if (width > pitch)
    return driverInvalidValue;
  stream->enqueue("fill of rows", [=](const Running &running) {
    for (size_t row = 0; row < height; ++row) {
      running.note({{addressOf(target) + row * pitch, width}}, true);
      if (std::byte *to = running.access(addressOf(target) + row * pitch, width))
        std::memset(to, value, width);
    }
  });
  return driverSuccess;
}
DriverResult cuStreamCreate(StreamHandle *stream, unsigned) {
  ENTER(driverOutOfMemory);
  IN_CONTEXT();
  *stream = streams().add(new StreamState(*standin::currentContext()));
  return driverSuccess;
}
DriverResult cuStreamDestroy_v2(StreamHandle stream) {
  if (!streams().remove(stream)) {
    Machine::instance().misuse("a stream is destroyed that is not there");
    return driverInvalidHandle;
  }
  delete stream;
  return driverSuccess;
}
DriverResult cuStreamSynchronize(StreamHandle stream) {
  ENTER(unknownError);
  ON_STREAM(stream);
  if (spoils(stream))
    return driverCaptureUnsupported;
  stream->synchronize();
  return stream->context.error;
}
DriverResult cuStreamQuery(StreamHandle stream) {
  ON_STREAM(stream);
  if (spoils(stream))
    return driverCaptureUnsupported;
  if (!stream->idle())
    return driverNotReady; // not counted: how often somebody asks is chance
  ENTER(unknownError);
  stream->synchronize();
  return stream->context.error;
}
DriverResult cuEventCreate(EventHandle *event, unsigned) {
  ENTER(driverOutOfMemory);
  IN_CONTEXT();
  *event = events().add(new EventState);
  (*event)->context = standin::currentContext();
  Machine::instance().count("events", 1);
  return driverSuccess;
}
DriverResult cuEventDestroy_v2(EventHandle event) {
  if (!events().remove(event)) {
    Machine::instance().misuse("an event is destroyed that is not there");
    return driverInvalidHandle;
  }
  delete event;
  Machine::instance().count("events", -1);
  return driverSuccess;
}
DriverResult cuEventRecord(EventHandle event, StreamHandle stream) {
  ENTER(unknownError);
  ON_STREAM(stream);
  if (!events().has(event) || event->context != &stream->context)
    return driverInvalidHandle;
  {
    std::lock_guard<std::mutex> lock(standin::captureMutex());
    event->capture = stream->capture;
    if (event->capture) {
      event->edge = event->capture->record(stream);
      return driverSuccess;
    }
  }
  auto record = std::make_shared<standin::Record>();
  {
    std::lock_guard<std::mutex> lock(Machine::instance().recordsMutex);
    event->latest = record;
  }
  stream->enqueue(
      "record",
      [record](const Running &running) {
        Machine &machine = Machine::instance();
        std::lock_guard<std::mutex> lock(machine.recordsMutex);
        record->done = true;
        record->clock = running.clock;
        machine.recorded.notify_all();
      },
      true);
  return driverSuccess;
}
DriverResult cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  ENTER(unknownError);
  ON_STREAM(stream);
  if (!events().has(event))
    return driverInvalidHandle;
  {
    std::lock_guard<std::mutex> lock(standin::captureMutex());
    std::shared_ptr<standin::Capture> &mine = stream->capture, &theirs = event->capture;
    if (mine && theirs != mine) {
      mine->isInvalid = true;
      return theirs ? driverCaptureMerge : driverCaptureIsolation;
    }
    if (theirs && theirs->hasEnded)
      return driverInvalidValue;
    if (theirs) { // the stream joins
      mine = theirs;
      theirs->wait(stream, event->edge);
      return driverSuccess;
    }
  }
  std::shared_ptr<standin::Record> record;
  {
    std::lock_guard<std::mutex> lock(Machine::instance().recordsMutex);
    record = event->latest;
  }
  if (!record) // as documentation has it: nothing to wait for. Nobody means that
    Machine::instance().misuse("a stream waits for an event that was never recorded");
  else
    stream->enqueue(
        "wait",
        [record](const Running &running) {
          Machine &machine = Machine::instance();
          std::unique_lock<std::mutex> lock(machine.recordsMutex);
          machine.recorded.wait(lock, [&] { return record->done; });
          running.clock.join(record->clock);
        },
        true);
  return driverSuccess;
}
DriverResult cuEventSynchronize(EventHandle event) {
  ENTER(unknownError);
  if (!events().has(event))
    return driverInvalidHandle;
  if (event->capture)
    return driverCapturedEvent;
  Machine &machine = Machine::instance();
  std::unique_lock<std::mutex> lock(machine.recordsMutex);
  std::shared_ptr<standin::Record> record = event->latest;
  if (record) {
    machine.recorded.wait(lock, [&] { return record->done; });
    machine.hostLearns(record->clock);
  }
  return event->context->error;
}
DriverResult cuLibraryLoadData(LibraryHandle *library, const void *code, int *options, void **values, unsigned count,
                               int *, void **, unsigned) {
  ENTER(driverInvalidPtx);
  NOT_WHILE_CAPTURING();
  auto made = std::make_unique<LibraryState>();
  std::string error = standin::ptx::parse(static_cast<const char *>(code), made->module);
  if (!error.empty()) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == jitErrorLog)
        std::strncpy(static_cast<char *>(values[i]), error.c_str(), 1024);
    return driverInvalidPtx;
  }
  for (const auto &[name, kernel] : made->module.kernels) {
    made->kernels[name] = std::make_unique<KernelState>();
    made->kernels[name]->kernel = &kernel;
  }
  *library = libraries().add(made.release());
  Machine::instance().count("code libraries", 1);
  return driverSuccess;
}
DriverResult cuLibraryUnload(LibraryHandle library) {
  if (!libraries().remove(library))
    return driverInvalidHandle;
  delete library;
  Machine::instance().count("code libraries", -1);
  return driverSuccess;
}
DriverResult cuLibraryGetKernel(KernelObject *kernel, LibraryHandle library, const char *name) {
  ENTER(unknownError);
  if (!libraries().has(library))
    return driverInvalidHandle;
  auto found = library->kernels.find(name);
  if (found == library->kernels.end())
    return driverNotFound;
  *kernel = found->second.get();
  return driverSuccess;
}
DriverResult cuKernelGetFunction(FunctionHandle *function, KernelObject kernel) {
  ENTER(driverOutOfMemory);
  IN_CONTEXT();
  *function = reinterpret_cast<FunctionHandle>(kernel);
  return driverSuccess;
}
DriverResult cuLaunchKernel(FunctionHandle function, unsigned blocksX, unsigned blocksY, unsigned blocksZ,
                            unsigned threadsX, unsigned threadsY, unsigned threadsZ, unsigned sharedBytes,
                            StreamHandle stream, void **arguments, void **) {
  ENTER(driverOutOfResources);
  IN_CONTEXT();
  ON_STREAM(stream);
  if (&stream->context != standin::currentContext())
    return driverInvalidHandle;
  if (blocksX == 0 || blocksY != 1 || blocksZ != 1 || threadsX == 0 || threadsX > 1024 || threadsY != 1 ||
      threadsZ != 1)
    return driverInvalidValue;
  const standin::ptx::Kernel &kernel = *reinterpret_cast<KernelObject>(function)->kernel;
  if (kernel.sharedBytes + int64_t(sharedBytes) > (48 << 10))
    return driverInvalidValue;
  standin::ptx::Launch launch;
  launch.blocks = blocksX;
  launch.threads = threadsX;
  launch.sharedBytes = sharedBytes;
  launch.seed = uint64_t(Machine::instance().calls()) * 31 + Machine::instance().settings().seed;
  launch.params.resize(size_t(kernel.paramBytes));
  for (size_t i = 0; i < kernel.params.size(); ++i)
    std::memcpy(launch.params.data() + kernel.params[i].first, arguments[i], size_t(kernel.params[i].second));
  stream->enqueue("kernel " + kernel.name, [launch = std::move(launch), &kernel](const Running &running) {
    standin::ptx::run(kernel, launch, running);
  });
  return driverSuccess;
}
DriverResult cuCtxSynchronize() {
  ENTER(unknownError);
  if (DriverResult problem = contextProblem(); problem == driverInvalidContext)
    return problem;
  NOT_WHILE_CAPTURING();
  standin::synchronizeAll(*standin::currentContext());
  return standin::currentContext()->error;
}
} // extern "C"
