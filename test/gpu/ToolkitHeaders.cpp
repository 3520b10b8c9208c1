// Compiled, never run, where the CUDA toolkit is: compares the backend's own declarations with the toolkit's headers.
// Types need only agree as the calling convention sees them: integers and enumerations by size, pointers as pointers.
#include "runtime/backend/cuda/CublasLtApi.h"
#include "runtime/backend/cuda/CudnnApi.h"
#include "runtime/backend/cuda/NcclApi.h"

#include <cublasLt.h>
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#include <cuda.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#include <type_traits>

namespace hpc::cuda {

template <typename Ours, typename Theirs> constexpr bool passesAlike() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>)
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  else
    return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
           std::is_class_v<Ours> == std::is_class_v<Theirs>;
}
template <typename Ours, typename Theirs> struct Alike : std::false_type {};
template <typename Result, typename... Args, typename TheirResult, typename... TheirArgs>
struct Alike<Result (*)(Args...), TheirResult (*)(TheirArgs...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(Args) == sizeof...(TheirArgs))
      return passesAlike<Result, TheirResult>() && (passesAlike<Args, TheirArgs>() && ...);
    return false;
  }
  static constexpr bool value = check();
};

// The headers give some functions an older name, which a macro turns into the symbol that we look up.
#undef cuCtxSynchronize
#define HPC_ALIKE(result, member, symbol, arguments)                                                                   \
  static_assert(Alike<decltype(Driver::member), decltype(&::symbol)>::value, #symbol);
HPC_DRIVER_FUNCTIONS(HPC_ALIKE)
#undef HPC_ALIKE
#define HPC_ALIKE(result, member, symbol, arguments)                                                                   \
  static_assert(Alike<decltype(CublasLt::member), decltype(&::symbol)>::value, #symbol);
HPC_BLAS_FUNCTIONS(HPC_ALIKE)

static_assert(driverSuccess == CUDA_SUCCESS && driverInvalidValue == CUDA_ERROR_INVALID_VALUE &&
              driverOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && driverNoDevice == CUDA_ERROR_NO_DEVICE &&
              driverInvalidImage == CUDA_ERROR_INVALID_IMAGE && driverInvalidContext == CUDA_ERROR_INVALID_CONTEXT &&
              driverNoBinary == CUDA_ERROR_NO_BINARY_FOR_GPU && driverInvalidPtx == CUDA_ERROR_INVALID_PTX &&
              driverUnsupportedPtx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION &&
              driverInvalidHandle == CUDA_ERROR_INVALID_HANDLE && driverNotFound == CUDA_ERROR_NOT_FOUND &&
              driverNotReady == CUDA_ERROR_NOT_READY && driverIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS &&
              driverOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES &&
              driverLaunchTimeout == CUDA_ERROR_LAUNCH_TIMEOUT && driverAssert == CUDA_ERROR_ASSERT &&
              driverHardwareStackError == CUDA_ERROR_HARDWARE_STACK_ERROR &&
              driverPeerAlreadyEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED &&
              driverLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(captureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
              driverCaptureUnsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
              driverCaptureInvalidated == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED &&
              driverCaptureMerge == CUDA_ERROR_STREAM_CAPTURE_MERGE &&
              driverCaptureUnmatched == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
              driverCaptureUnjoined == CUDA_ERROR_STREAM_CAPTURE_UNJOINED &&
              driverCaptureIsolation == CUDA_ERROR_STREAM_CAPTURE_ISOLATION &&
              driverCapturedEvent == CUDA_ERROR_CAPTURED_EVENT &&
              driverCaptureWrongThread == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
static_assert(streamNonBlocking == CU_STREAM_NON_BLOCKING && eventDisableTiming == CU_EVENT_DISABLE_TIMING &&
              hostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(attributeMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              attributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              attributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              jitErrorLog == CU_JIT_ERROR_LOG_BUFFER && jitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);

static_assert(blasSuccess == CUBLAS_STATUS_SUCCESS && blasNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED &&
              blasAllocFailed == CUBLAS_STATUS_ALLOC_FAILED && blasInvalidValue == CUBLAS_STATUS_INVALID_VALUE &&
              blasExecutionFailed == CUBLAS_STATUS_EXECUTION_FAILED && blasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(typeF32 == CUDA_R_32F && typeF64 == CUDA_R_64F && typeF16 == CUDA_R_16F && typeBF16 == CUDA_R_16BF);
static_assert(computeF32 == CUBLAS_COMPUTE_32F && computeTF32 == CUBLAS_COMPUTE_32F_FAST_TF32 &&
              computeF64 == CUBLAS_COMPUTE_64F && operationNone == CUBLAS_OP_N && operationTranspose == CUBLAS_OP_T);
static_assert(productTransposeA == CUBLASLT_MATMUL_DESC_TRANSA && productTransposeB == CUBLASLT_MATMUL_DESC_TRANSB &&
              productEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && productBias == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(epilogueNone == CUBLASLT_EPILOGUE_DEFAULT && epilogueBias == CUBLASLT_EPILOGUE_BIAS &&
              epilogueReluBias == CUBLASLT_EPILOGUE_RELU_BIAS && epilogueGeluBias == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(layoutBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              layoutBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(preferenceWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              preferenceAlignA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              preferenceAlignB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              preferenceAlignC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              preferenceAlignD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(BlasChoice) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(BlasChoice, workspaceBytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(BlasChoice, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

#if __has_include(<nccl.h>)
#undef HPC_ALIKE
#define HPC_ALIKE(result, member, symbol, arguments)                                                                   \
  static_assert(Alike<decltype(Nccl::member), decltype(&::symbol)>::value, #symbol);
HPC_NCCL_FUNCTIONS(HPC_ALIKE)
static_assert(ncclSuccess == ::ncclSuccess && ncclUnhandledCudaError == ::ncclUnhandledCudaError &&
              ncclSystemError == ::ncclSystemError && ncclInternalError == ::ncclInternalError &&
              ncclInvalidArgument == ::ncclInvalidArgument && ncclInvalidUsage == ::ncclInvalidUsage &&
              ncclRemoteError == ::ncclRemoteError && ncclInProgress == ::ncclInProgress);
static_assert(ncclI8 == ::ncclInt8 && ncclU8 == ::ncclUint8 && ncclI32 == ::ncclInt32 && ncclU32 == ::ncclUint32 &&
              ncclI64 == ::ncclInt64 && ncclU64 == ::ncclUint64 && ncclF16 == ::ncclFloat16 &&
              ncclF32 == ::ncclFloat32 && ncclF64 == ::ncclFloat64 && ncclBF16 == ::ncclBfloat16);
static_assert(ncclSum == ::ncclSum && ncclProd == ::ncclProd && ncclMax == ::ncclMax && ncclMin == ::ncclMin);
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId) && offsetof(NcclConfig, bytes) == offsetof(ncclConfig_t, size) &&
              offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version) &&
              offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
#endif
static_assert(sizeof(CardUuid) == sizeof(CUuuid));

#if __has_include(<cudnn.h>)
#undef HPC_ALIKE
#define HPC_ALIKE(result, member, symbol, arguments)                                                                   \
  static_assert(Alike<decltype(Cudnn::member), decltype(&::symbol)>::value, #symbol);
HPC_DNN_FUNCTIONS(HPC_ALIKE)
static_assert(dnnSuccess == CUDNN_STATUS_SUCCESS && dnnNotInitialized == CUDNN_STATUS_NOT_INITIALIZED &&
              dnnBadParameter == CUDNN_STATUS_BAD_PARAM && dnnNotSupported == CUDNN_STATUS_NOT_SUPPORTED &&
              dnnInternalError == CUDNN_STATUS_INTERNAL_ERROR && dnnExecutionFailed == CUDNN_STATUS_EXECUTION_FAILED);
static_assert(dnnF32 == CUDNN_DATA_FLOAT && dnnF16 == CUDNN_DATA_HALF && dnnI32 == CUDNN_DATA_INT32 &&
              dnnBF16 == CUDNN_DATA_BFLOAT16 && dnnBool == CUDNN_DATA_BOOLEAN);
static_assert(descriptorPointwise == CUDNN_BACKEND_POINTWISE_DESCRIPTOR &&
              descriptorEngineChoices == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
              descriptorExecutionPlan == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
              descriptorEngineConfig == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR &&
              descriptorPointwiseOperation == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
              descriptorOperationGraph == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR &&
              descriptorVariantPack == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR &&
              descriptorTensor == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
              descriptorMatmul == CUDNN_BACKEND_MATMUL_DESCRIPTOR &&
              descriptorMatmulOperation == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR &&
              descriptorReduction == CUDNN_BACKEND_REDUCTION_DESCRIPTOR &&
              descriptorReductionOperation == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
              descriptorReshapeOperation == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR &&
              descriptorDeviceProperties == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
static_assert(attributeHandle == CUDNN_TYPE_HANDLE && attributeDataType == CUDNN_TYPE_DATA_TYPE &&
              attributeBoolean == CUDNN_TYPE_BOOLEAN && attributeI64 == CUDNN_TYPE_INT64 &&
              attributePointer == CUDNN_TYPE_VOID_PTR && attributeHeuristic == CUDNN_TYPE_HEUR_MODE &&
              attributePointwiseMode == CUDNN_TYPE_POINTWISE_MODE &&
              attributeDescriptor == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
              attributeReduction == CUDNN_TYPE_REDUCTION_OPERATOR_TYPE && attributeCharacter == CUDNN_TYPE_CHAR);
static_assert(pointwiseMode == CUDNN_ATTR_POINTWISE_MODE && pointwisePrecision == CUDNN_ATTR_POINTWISE_MATH_PREC &&
              pointwiseAxis == CUDNN_ATTR_POINTWISE_AXIS && choicesMode == CUDNN_ATTR_ENGINEHEUR_MODE &&
              choicesGraph == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH &&
              choicesResults == CUDNN_ATTR_ENGINEHEUR_RESULTS && choicesDevice == CUDNN_ATTR_ENGINEHEUR_DEVICEPROP &&
              planHandle == CUDNN_ATTR_EXECUTION_PLAN_HANDLE &&
              planEngineConfig == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG &&
              planWorkspace == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
              planDevice == CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
static_assert(pointwiseDescriptor == CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR &&
              pointwiseX == CUDNN_ATTR_OPERATION_POINTWISE_XDESC && pointwiseB == CUDNN_ATTR_OPERATION_POINTWISE_BDESC &&
              pointwiseY == CUDNN_ATTR_OPERATION_POINTWISE_YDESC && pointwiseT == CUDNN_ATTR_OPERATION_POINTWISE_TDESC &&
              graphHandle == CUDNN_ATTR_OPERATIONGRAPH_HANDLE && graphOperations == CUDNN_ATTR_OPERATIONGRAPH_OPS);
static_assert(tensorAlignment == CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT && tensorType == CUDNN_ATTR_TENSOR_DATA_TYPE &&
              tensorDims == CUDNN_ATTR_TENSOR_DIMENSIONS && tensorStrides == CUDNN_ATTR_TENSOR_STRIDES &&
              tensorId == CUDNN_ATTR_TENSOR_UNIQUE_ID && tensorIsVirtual == CUDNN_ATTR_TENSOR_IS_VIRTUAL &&
              tensorIsByValue == CUDNN_ATTR_TENSOR_IS_BY_VALUE);
static_assert(packIds == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS && packPointers == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS &&
              packWorkspace == CUDNN_ATTR_VARIANT_PACK_WORKSPACE && matmulPrecision == CUDNN_ATTR_MATMUL_COMP_TYPE &&
              matmulA == CUDNN_ATTR_OPERATION_MATMUL_ADESC && matmulB == CUDNN_ATTR_OPERATION_MATMUL_BDESC &&
              matmulC == CUDNN_ATTR_OPERATION_MATMUL_CDESC && matmulDescriptor == CUDNN_ATTR_OPERATION_MATMUL_DESC);
static_assert(reductionOperator == CUDNN_ATTR_REDUCTION_OPERATOR && reductionPrecision == CUDNN_ATTR_REDUCTION_COMP_TYPE &&
              reductionX == CUDNN_ATTR_OPERATION_REDUCTION_XDESC && reductionY == CUDNN_ATTR_OPERATION_REDUCTION_YDESC &&
              reductionDescriptor == CUDNN_ATTR_OPERATION_REDUCTION_DESC &&
              reshapeX == CUDNN_ATTR_OPERATION_RESHAPE_XDESC && reshapeY == CUDNN_ATTR_OPERATION_RESHAPE_YDESC &&
              deviceJson == CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
static_assert(modeAdd == CUDNN_POINTWISE_ADD && modeMul == CUDNN_POINTWISE_MUL && modeDiv == CUDNN_POINTWISE_DIV &&
              modeSub == CUDNN_POINTWISE_SUB && modeExp == CUDNN_POINTWISE_EXP && modeLog == CUDNN_POINTWISE_LOG &&
              modeIdentity == CUDNN_POINTWISE_IDENTITY && modeGreaterEqual == CUDNN_POINTWISE_CMP_GE &&
              modeIndex == CUDNN_POINTWISE_GEN_INDEX && modeSelect == CUDNN_POINTWISE_BINARY_SELECT &&
              reduceAdd == CUDNN_REDUCE_TENSOR_ADD && reduceMax == CUDNN_REDUCE_TENSOR_MAX &&
              heuristicA == CUDNN_HEUR_MODE_A && heuristicFallback == CUDNN_HEUR_MODE_FALLBACK);
#endif

} // namespace hpc::cuda
