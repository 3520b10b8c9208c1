// The part of NCCL's interface that the backend calls, in the form and for the reasons of DriverApi.h.
#pragma once

#include "runtime/backend/cuda/DriverApi.h"

namespace hpc::cuda {

/// ncclResult_t: 0 is success.
using NcclResult = int;
struct NcclState;
using NcclHandle = NcclState *;

struct NcclId {
  char bytes[128];
};

constexpr NcclResult ncclOk = 0, ncclInProgressNow = 7, ncclInvalidArgumentGiven = 4, ncclSystemFailed = 2;
/// ncclDataType_t
constexpr int ncclI8 = 0, ncclU8 = 1, ncclI32 = 2, ncclU32 = 3, ncclI64 = 4, ncclU64 = 5, ncclF16 = 6, ncclF32 = 7,
              ncclF64 = 8, ncclBF16 = 9;
/// ncclRedOp_t
constexpr int ncclSumOf = 0, ncclProdOf = 1, ncclMaxOf = 2, ncclMinOf = 3;

/// X(return type, member, symbol, arguments)
#define HPC_NCCL_FUNCTIONS(X)                                                                                          \
  X(const char *, errorString, ncclGetErrorString, (NcclResult result))                                                \
  X(NcclResult, uniqueId, ncclGetUniqueId, (NcclId * id))                                                              \
  X(NcclResult, initRank, ncclCommInitRank, (NcclHandle * communicator, int ranks, NcclId id, int rank))               \
  X(NcclResult, destroy, ncclCommDestroy, (NcclHandle communicator))                                                   \
  X(NcclResult, abort, ncclCommAbort, (NcclHandle communicator))                                                       \
  X(NcclResult, asyncError, ncclCommGetAsyncError, (NcclHandle communicator, NcclResult * error))                      \
  X(NcclResult, groupStart, ncclGroupStart, ())                                                                        \
  X(NcclResult, groupEnd, ncclGroupEnd, ())                                                                            \
  X(NcclResult, allReduce, ncclAllReduce,                                                                              \
    (const void *source, void *target, size_t count, int type, int reduction, NcclHandle communicator,                 \
     StreamHandle stream))                                                                                             \
  X(NcclResult, allGather, ncclAllGather,                                                                              \
    (const void *source, void *target, size_t count, int type, NcclHandle communicator, StreamHandle stream))          \
  X(NcclResult, reduceScatter, ncclReduceScatter,                                                                      \
    (const void *source, void *target, size_t count, int type, int reduction, NcclHandle communicator,                 \
     StreamHandle stream))                                                                                             \
  X(NcclResult, send, ncclSend,                                                                                        \
    (const void *source, size_t count, int type, int peer, NcclHandle communicator, StreamHandle stream))              \
  X(NcclResult, receive, ncclRecv,                                                                                     \
    (void *target, size_t count, int type, int peer, NcclHandle communicator, StreamHandle stream))

struct Nccl {
#define HPC_MEMBER(result, member, symbol, arguments) result(*member) arguments = nullptr;
  HPC_NCCL_FUNCTIONS(HPC_MEMBER)
#undef HPC_MEMBER
};

} // namespace hpc::cuda
