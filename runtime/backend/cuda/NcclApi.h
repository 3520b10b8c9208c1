// The part of NCCL's interface that the backend calls, in the form and for the reasons of DriverApi.h.
#pragma once

#include "runtime/backend/cuda/DriverApi.h"

namespace hpc::cuda {

/// ncclResult_t: 0 is success. In progress: a non-blocking communicator has not finished the call; until
/// ncclCommGetAsyncError returns success, nothing has been enqueued and no other call is allowed.
using NcclResult = int;
constexpr NcclResult ncclSuccess = 0, ncclUnhandledCudaError = 1, ncclSystemError = 2, ncclInternalError = 3,
                     ncclInvalidArgument = 4, ncclInvalidUsage = 5, ncclRemoteError = 6, ncclInProgress = 7;
struct NcclState;
using NcclHandle = NcclState *;

struct NcclId {
  char bytes[128];
};
/// ncclConfig_t as of version 2.14: newer libraries use defaults for the fields after `bytes`.
struct NcclConfig {
  size_t bytes = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};
/// ncclDataType_t
constexpr int ncclI8 = 0, ncclU8 = 1, ncclI32 = 2, ncclU32 = 3, ncclI64 = 4, ncclU64 = 5, ncclF16 = 6, ncclF32 = 7,
              ncclF64 = 8, ncclBF16 = 9;
/// ncclRedOp_t
constexpr int ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3;

/// X(return type, member, symbol, arguments)
#define HPC_NCCL_FUNCTIONS(X)                                                                                          \
  X(NcclResult, getVersion, ncclGetVersion, (int *version))                                                            \
  X(const char *, errorString, ncclGetErrorString, (NcclResult result))                                                \
  X(NcclResult, getUniqueId, ncclGetUniqueId, (NcclId * id))                                                           \
  X(NcclResult, init, ncclCommInitRankConfig,                                                                          \
    (NcclHandle * handle, int ranks, NcclId id, int rank, NcclConfig *config))                                         \
  X(NcclResult, abort, ncclCommAbort, (NcclHandle handle))                                                             \
  X(NcclResult, asyncError, ncclCommGetAsyncError, (NcclHandle handle, NcclResult * result))                           \
  X(NcclResult, groupStart, ncclGroupStart, ())                                                                        \
  X(NcclResult, groupEnd, ncclGroupEnd, ())                                                                            \
  X(NcclResult, allReduce, ncclAllReduce,                                                                              \
    (const void *source, void *target, size_t count, int type, int operation, NcclHandle handle, StreamHandle stream)) \
  X(NcclResult, allGather, ncclAllGather,                                                                              \
    (const void *source, void *target, size_t count, int type, NcclHandle handle, StreamHandle stream))                \
  X(NcclResult, reduceScatter, ncclReduceScatter,                                                                      \
    (const void *source, void *target, size_t count, int type, int operation, NcclHandle handle, StreamHandle stream)) \
  X(NcclResult, send, ncclSend,                                                                                        \
    (const void *source, size_t count, int type, int peer, NcclHandle handle, StreamHandle stream))                    \
  X(NcclResult, receive, ncclRecv,                                                                                     \
    (void *target, size_t count, int type, int peer, NcclHandle handle, StreamHandle stream))

struct Nccl {
#define HPC_MEMBER(result, member, symbol, arguments) result(*member) arguments = nullptr;
  HPC_NCCL_FUNCTIONS(HPC_MEMBER)
#undef HPC_MEMBER
};

} // namespace hpc::cuda
