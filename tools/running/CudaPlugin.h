// Opens the backend of GPUs, a plugin, so that this program runs on machines that have neither card nor driver.
#pragma once

#include "runtime/backend/cuda/CudaOptions.h"
#include "runtime/core/Backend.h"
#include "runtime/core/ControlPlane.h"

namespace hpc {

/// The plugin is looked for beside the program and in ../lib. Libraries of CUDA are looked for in the folder that the
/// environment variable HPC_CUDA_LIBRARIES names, if it is set: a copied folder, or a stand-in. `plane`: of several
/// processes; null where this one is alone.
Expected<std::unique_ptr<Backend>> openCudaBackend(cuda::CudaOptions options, std::unique_ptr<ControlPlane> plane);

} // namespace hpc
