// The part of cuBLASLt's interface that the backend calls, in the form and for the reasons of DriverApi.h.
#pragma once

#include "runtime/backend/cuda/DriverApi.h"

namespace hpc::cuda {

/// cublasStatus_t: 0 is success.
using BlasResult = int;
struct BlasState;
struct ProductState;
struct LayoutState;
struct PreferenceState;
using BlasHandle = BlasState *;
using ProductHandle = ProductState *;
using LayoutHandle = LayoutState *;
using PreferenceHandle = PreferenceState *;

constexpr BlasResult blasSuccess = 0, blasNotInitialized = 1, blasAllocFailed = 3, blasInvalidValue = 7,
                     blasExecutionFailed = 13, blasNotSupported = 15;
/// cudaDataType
constexpr int typeF32 = 0, typeF64 = 1, typeF16 = 2, typeBF16 = 14;
/// cublasComputeType_t
constexpr int computeF32 = 68, computeTF32 = 77, computeF64 = 70;
/// cublasOperation_t
constexpr int32_t operationNone = 0, operationTranspose = 1;
/// cublasLtMatmulDescAttributes_t; epilogues are 32 bits wide
constexpr int productTransposeA = 3, productTransposeB = 4, productEpilogue = 7, productBias = 8;
constexpr uint32_t epilogueNone = 1, epilogueBias = 4, epilogueReluBias = 6, epilogueGeluBias = 36;
/// cublasLtMatrixLayoutAttribute_t: 32 and 64 bits wide
constexpr int layoutBatchCount = 5, layoutBatchStride = 6;
/// cublasLtMatmulPreferenceAttributes_t: 64 and four times 32 bits wide
constexpr int preferenceWorkspace = 1, preferenceAlignA = 5, preferenceAlignB = 6, preferenceAlignC = 7,
              preferenceAlignD = 8;

struct BlasAlgorithm {
  uint64_t data[8];
};
/// cublasLtMatmulHeuristicResult_t
struct BlasChoice {
  BlasAlgorithm algorithm;
  size_t workspaceBytes;
  BlasResult state;
  float waves;
  int reserved[4];
};

/// X(return type, member, symbol, arguments)
#define HPC_BLAS_FUNCTIONS(X)                                                                                          \
  X(const char *, statusName, cublasLtGetStatusName, (BlasResult status))                                              \
  X(BlasResult, create, cublasLtCreate, (BlasHandle * handle))                                                         \
  X(BlasResult, destroy, cublasLtDestroy, (BlasHandle handle))                                                         \
  X(BlasResult, createProduct, cublasLtMatmulDescCreate, (ProductHandle * product, int computeType, int scaleType))    \
  X(BlasResult, destroyProduct, cublasLtMatmulDescDestroy, (ProductHandle product))                                    \
  X(BlasResult, setProduct, cublasLtMatmulDescSetAttribute,                                                            \
    (ProductHandle product, int attribute, const void *value, size_t bytes))                                           \
  X(BlasResult, createLayout, cublasLtMatrixLayoutCreate,                                                              \
    (LayoutHandle * layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                                    \
  X(BlasResult, destroyLayout, cublasLtMatrixLayoutDestroy, (LayoutHandle layout))                                     \
  X(BlasResult, setLayout, cublasLtMatrixLayoutSetAttribute,                                                           \
    (LayoutHandle layout, int attribute, const void *value, size_t bytes))                                             \
  X(BlasResult, createPreference, cublasLtMatmulPreferenceCreate, (PreferenceHandle * preference))                     \
  X(BlasResult, destroyPreference, cublasLtMatmulPreferenceDestroy, (PreferenceHandle preference))                     \
  X(BlasResult, setPreference, cublasLtMatmulPreferenceSetAttribute,                                                   \
    (PreferenceHandle preference, int attribute, const void *value, size_t bytes))                                     \
  X(BlasResult, choose, cublasLtMatmulAlgoGetHeuristic,                                                                \
    (BlasHandle handle, ProductHandle product, LayoutHandle a, LayoutHandle b, LayoutHandle c, LayoutHandle d,         \
     PreferenceHandle preference, int wanted, BlasChoice *choices, int *found))                                        \
  X(BlasResult, multiply, cublasLtMatmul,                                                                              \
    (BlasHandle handle, ProductHandle product, const void *alpha, const void *a, LayoutHandle layoutA, const void *b,  \
     LayoutHandle layoutB, const void *beta, const void *c, LayoutHandle layoutC, void *d, LayoutHandle layoutD,       \
     const BlasAlgorithm *algorithm, void *workspace, size_t workspaceBytes, StreamHandle stream))

struct CublasLt {
#define HPC_MEMBER(result, member, symbol, arguments) result(*member) arguments = nullptr;
  HPC_BLAS_FUNCTIONS(HPC_MEMBER)
#undef HPC_MEMBER
};

} // namespace hpc::cuda
