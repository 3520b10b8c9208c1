// The functions that hpc-run looks up in libhpc_cuda.so.
#include "runtime/backend/cuda/CudaBackend.h"

/// The caller owns the backend, which takes the plane: that of several processes, or null.
extern "C" __attribute__((visibility("default"))) hpc::Backend *
hpcCreateCudaBackend(const hpc::cuda::CudaOptions &options, hpc::ControlPlane *plane) {
  if (!plane)
    return hpc::cuda::createCudaBackend(options).release();
  return hpc::cuda::createCudaBackend(options, std::unique_ptr<hpc::ControlPlane>(plane)).release();
}
