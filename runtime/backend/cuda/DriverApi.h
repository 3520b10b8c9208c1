// The part of the CUDA driver's interface that the backend calls: types, numbers and a table of functions, filled from
// libcuda.so.1 when the plugin is loaded. Declared here and not taken from cuda.h, so that every machine builds and
// tests the backend; test/gpu/ToolkitHeaders.cpp compares all of it with the toolkit's headers where those are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpc::cuda {

/// CUresult: 0 is success.
using DriverResult = int;
using DevicePointer = unsigned long long;
inline DevicePointer pointer(const std::byte *address) { return DevicePointer(reinterpret_cast<uintptr_t>(address)); }
using DeviceNumber = int;
/// CUuuid
struct CardUuid {
  char bytes[16];
};

struct ContextState;
struct StreamState;
struct EventState;
struct LibraryState;
struct KernelState;
struct FunctionState;
struct GraphState;
struct GraphRunState;
using ContextHandle = ContextState *;
using StreamHandle = StreamState *;
using EventHandle = EventState *;
using LibraryHandle = LibraryState *;
using KernelObject = KernelState *;
using FunctionHandle = FunctionState *;
using GraphHandle = GraphState *;
using GraphRunHandle = GraphRunState *; ///< CUgraphExec

constexpr DriverResult driverSuccess = 0, driverOutOfMemory = 2, driverNoDevice = 100, driverInvalidImage = 200,
                       driverNoBinary = 209, driverInvalidPtx = 218, driverUnsupportedPtx = 222, driverNotReady = 600,
                       driverIllegalAddress = 700, driverPeerAlreadyEnabled = 704, driverInvalidValue = 1,
                       driverInvalidHandle = 400, driverNotFound = 500, driverInvalidContext = 201,
                       driverLaunchFailed = 719, driverOutOfResources = 701, driverLaunchTimeout = 702,
                       driverAssert = 710, driverHardwareStackError = 714;
constexpr unsigned streamNonBlocking = 1, eventDisableTiming = 2, hostAllocPortable = 1;
constexpr int attributeMultiprocessors = 16, attributeMajor = 75, attributeMinor = 76;
constexpr int jitErrorLog = 5, jitErrorLogBytes = 6;
constexpr int captureThreadLocal = 1;
constexpr DriverResult driverCaptureUnsupported = 900, driverCaptureInvalidated = 901, driverCaptureMerge = 902,
                       driverCaptureUnmatched = 903, driverCaptureUnjoined = 904, driverCaptureIsolation = 905,
                       driverCapturedEvent = 907, driverCaptureWrongThread = 908;

/// X(return type, member, symbol, arguments)
#define HPC_DRIVER_FUNCTIONS(X)                                                                                        \
  X(DriverResult, init, cuInit, (unsigned flags))                                                                      \
  X(DriverResult, getErrorName, cuGetErrorName, (DriverResult result, const char **text))                              \
  X(DriverResult, getErrorString, cuGetErrorString, (DriverResult result, const char **text))                          \
  X(DriverResult, deviceCount, cuDeviceGetCount, (int *count))                                                         \
  X(DriverResult, deviceGet, cuDeviceGet, (DeviceNumber * device, int ordinal))                                        \
  X(DriverResult, deviceName, cuDeviceGetName, (char *name, int bytes, DeviceNumber device))                           \
  X(DriverResult, deviceAttribute, cuDeviceGetAttribute, (int *value, int attribute, DeviceNumber device))             \
  X(DriverResult, deviceUuid, cuDeviceGetUuid_v2, (CardUuid * uuid, DeviceNumber device))                              \
  X(DriverResult, canAccessPeer, cuDeviceCanAccessPeer, (int *can, DeviceNumber device, DeviceNumber peer))            \
  X(DriverResult, retainContext, cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceNumber device))             \
  X(DriverResult, releaseContext, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                                 \
  X(DriverResult, setContext, cuCtxSetCurrent, (ContextHandle context))                                                \
  X(DriverResult, synchronizeContext, cuCtxSynchronize, ())                                                            \
  X(DriverResult, enablePeerAccess, cuCtxEnablePeerAccess, (ContextHandle peer, unsigned flags))                       \
  X(DriverResult, memoryInfo, cuMemGetInfo_v2, (size_t * free, size_t * total))                                        \
  X(DriverResult, allocate, cuMemAlloc_v2, (DevicePointer * pointer, size_t bytes))                                    \
  X(DriverResult, free, cuMemFree_v2, (DevicePointer pointer))                                                         \
  X(DriverResult, allocateHost, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags))                        \
  X(DriverResult, freeHost, cuMemFreeHost, (void *pointer))                                                            \
  X(DriverResult, copyAsync, cuMemcpyAsync,                                                                            \
    (DevicePointer target, DevicePointer source, size_t bytes, StreamHandle stream))                                   \
  X(DriverResult, fillAsync, cuMemsetD8Async,                                                                          \
    (DevicePointer target, unsigned char value, size_t bytes, StreamHandle stream))                                    \
  X(DriverResult, fillRowsAsync, cuMemsetD2D8Async,                                                                    \
    (DevicePointer target, size_t pitch, unsigned char value, size_t width, size_t height, StreamHandle stream))       \
  X(DriverResult, createStream, cuStreamCreate, (StreamHandle * stream, unsigned flags))                               \
  X(DriverResult, destroyStream, cuStreamDestroy_v2, (StreamHandle stream))                                            \
  X(DriverResult, synchronizeStream, cuStreamSynchronize, (StreamHandle stream))                                       \
  X(DriverResult, queryStream, cuStreamQuery, (StreamHandle stream))                                                   \
  X(DriverResult, waitForEvent, cuStreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags))           \
  X(DriverResult, createEvent, cuEventCreate, (EventHandle * event, unsigned flags))                                   \
  X(DriverResult, destroyEvent, cuEventDestroy_v2, (EventHandle event))                                                \
  X(DriverResult, recordEvent, cuEventRecord, (EventHandle event, StreamHandle stream))                                \
  X(DriverResult, synchronizeEvent, cuEventSynchronize, (EventHandle event))                                           \
  X(DriverResult, beginCapture, cuStreamBeginCapture_v2, (StreamHandle stream, int mode))                              \
  X(DriverResult, endCapture, cuStreamEndCapture, (StreamHandle stream, GraphHandle *graph))                           \
  X(DriverResult, destroyGraph, cuGraphDestroy, (GraphHandle graph))                                                   \
  X(DriverResult, instantiateGraph, cuGraphInstantiateWithFlags,                                                       \
    (GraphRunHandle * run, GraphHandle graph, unsigned long long flags))                                               \
  X(DriverResult, destroyGraphRun, cuGraphExecDestroy, (GraphRunHandle run))                                           \
  X(DriverResult, launchGraph, cuGraphLaunch, (GraphRunHandle run, StreamHandle stream))                               \
  X(DriverResult, loadLibrary, cuLibraryLoadData,                                                                      \
    (LibraryHandle * library, const void *code, int *jitOptions, void **jitValues, unsigned jitCount,                  \
     int *libraryOptions, void **libraryValues, unsigned libraryCount))                                                \
  X(DriverResult, unloadLibrary, cuLibraryUnload, (LibraryHandle library))                                             \
  X(DriverResult, getKernel, cuLibraryGetKernel, (KernelObject * kernel, LibraryHandle library, const char *name))     \
  X(DriverResult, getFunction, cuKernelGetFunction, (FunctionHandle * function, KernelObject kernel))                  \
  X(DriverResult, launch, cuLaunchKernel,                                                                              \
    (FunctionHandle function, unsigned blocksX, unsigned blocksY, unsigned blocksZ, unsigned threadsX,                 \
     unsigned threadsY, unsigned threadsZ, unsigned sharedBytes, StreamHandle stream, void **arguments, void **extra))

struct Driver {
#define HPC_MEMBER(result, member, symbol, arguments) result(*member) arguments = nullptr;
  HPC_DRIVER_FUNCTIONS(HPC_MEMBER)
#undef HPC_MEMBER
};

} // namespace hpc::cuda
