// What hpc-run finds in libhpc_cuda.so.
#include "runtime/backend/cuda/CudaBackend.h"

/// The caller owns the backend.
extern "C" __attribute__((visibility("default"))) hpc::Backend *
hpcCreateCudaBackend(const hpc::cuda::CudaOptions &options) {
  return hpc::cuda::createCudaBackend(options).release();
}
