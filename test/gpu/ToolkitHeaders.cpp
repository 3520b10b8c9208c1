// Compiled, never run, where the CUDA toolkit is: compares the backend's own declarations with the toolkit's headers.
// Types need only agree as the calling convention sees them: integers and enumerations by size, pointers as pointers.
#include "runtime/backend/cuda/CublasLtApi.h"
#include "runtime/backend/cuda/NcclApi.h"

#include <cublasLt.h>
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

} // namespace hpc::cuda
