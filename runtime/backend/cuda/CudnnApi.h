// The part of cuDNN's interface that the backend calls, in the form and for the reasons of DriverApi.h: the graph
// interface, whose descriptors get attributes one by one.
#pragma once

#include "runtime/backend/cuda/DriverApi.h"

namespace hpc::cuda {

/// cudnnStatus_t: 0 is success; thousands are the kind of error.
using DnnResult = int;
struct DnnState;
struct DescriptorState;
using DnnHandle = DnnState *;
using DescriptorHandle = DescriptorState *;

constexpr DnnResult dnnSuccess = 0, dnnNotInitialized = 1001, dnnBadParameter = 2000, dnnNotSupported = 3000,
                    dnnInternalError = 4000, dnnExecutionFailed = 5000;
/// cudnnDataType_t
constexpr int dnnF32 = 0, dnnF16 = 2, dnnI32 = 4, dnnBF16 = 9, dnnBool = 11;
/// cudnnBackendDescriptorType_t
constexpr int descriptorPointwise = 0, descriptorEngineChoices = 4, descriptorExecutionPlan = 5,
              descriptorEngineConfig = 3, descriptorPointwiseOperation = 13, descriptorOperationGraph = 15,
              descriptorVariantPack = 16, descriptorTensor = 17, descriptorMatmul = 18, descriptorMatmulOperation = 19,
              descriptorReduction = 21, descriptorReductionOperation = 22, descriptorReshapeOperation = 31,
              descriptorDeviceProperties = 38;
/// cudnnBackendAttributeType_t, and how wide an element is
constexpr int attributeHandle = 0, attributeDataType = 1, attributeBoolean = 2, attributeI64 = 3, attributePointer = 6,
              attributeHeuristic = 8, attributePointwiseMode = 14, attributeDescriptor = 15, attributeReduction = 18,
              attributeCharacter = 24;
/// cudnnBackendAttributeName_t
constexpr int pointwiseMode = 0, pointwisePrecision = 1, pointwiseAxis = 9, choicesMode = 200, choicesGraph = 201,
              choicesResults = 202, choicesDevice = 204, planHandle = 400, planEngineConfig = 401, planWorkspace = 402,
              planDevice = 407, pointwiseDescriptor = 750, pointwiseX = 751, pointwiseB = 752, pointwiseY = 753,
              pointwiseT = 758, graphHandle = 800, graphOperations = 801, tensorAlignment = 900, tensorType = 901,
              tensorDims = 902, tensorStrides = 903, tensorId = 906, tensorIsVirtual = 907, tensorIsByValue = 908,
              packIds = 1000, packPointers = 1001, packWorkspace = 1003, matmulPrecision = 1500, matmulA = 1520,
              matmulB = 1521, matmulC = 1522, matmulDescriptor = 1523, reductionOperator = 1600,
              reductionPrecision = 1601, reductionX = 1610, reductionY = 1611, reductionDescriptor = 1612,
              reshapeX = 2200, reshapeY = 2201, deviceJson = 2702;
/// cudnnPointwiseMode_t, cudnnReduceTensorOp_t, cudnnBackendHeurMode_t
constexpr int modeAdd = 0, modeMul = 1, modeDiv = 6, modeSub = 9, modeExp = 13, modeLog = 15, modeIdentity = 21,
              modeGreaterEqual = 303, modeIndex = 501, modeSelect = 601, reduceAdd = 0, reduceMax = 3,
              heuristicA = 3, heuristicFallback = 2;

/// X(return type, member, symbol, arguments)
#define HPC_DNN_FUNCTIONS(X)                                                                                           \
  X(size_t, version, cudnnGetVersion, ())                                                                              \
  X(const char *, errorString, cudnnGetErrorString, (DnnResult status))                                                \
  X(void, lastError, cudnnGetLastErrorString, (char *message, size_t size))                                            \
  X(DnnResult, create, cudnnCreate, (DnnHandle * handle))                                                              \
  X(DnnResult, destroy, cudnnDestroy, (DnnHandle handle))                                                              \
  X(DnnResult, setStream, cudnnSetStream, (DnnHandle handle, StreamHandle stream))                                     \
  X(DnnResult, createDescriptor, cudnnBackendCreateDescriptor, (int type, DescriptorHandle *descriptor))               \
  X(DnnResult, destroyDescriptor, cudnnBackendDestroyDescriptor, (DescriptorHandle descriptor))                        \
  X(DnnResult, set, cudnnBackendSetAttribute,                                                                          \
    (DescriptorHandle descriptor, int name, int type, int64_t count, const void *elements))                            \
  X(DnnResult, get, cudnnBackendGetAttribute,                                                                          \
    (DescriptorHandle descriptor, int name, int type, int64_t wanted, int64_t *count, void *elements))                 \
  X(DnnResult, finalize, cudnnBackendFinalize, (DescriptorHandle descriptor))                                          \
  X(DnnResult, execute, cudnnBackendExecute, (DnnHandle handle, DescriptorHandle plan, DescriptorHandle pack))

struct Cudnn {
#define HPC_MEMBER(result, member, symbol, arguments) result(*member) arguments = nullptr;
  HPC_DNN_FUNCTIONS(HPC_MEMBER)
#undef HPC_MEMBER
};

} // namespace hpc::cuda
