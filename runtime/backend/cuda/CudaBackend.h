// The backend of NVIDIA's GPUs: ranks are threads of this process, each with a share of a GPU. It links none of CUDA:
// driver and libraries are looked up when a plan is loaded (Library.h).
#pragma once

#include "runtime/backend/cuda/CudaOptions.h"
#include "runtime/backend/cuda/Peers.h"

#include <memory>

namespace hpc::cuda {

/// Without a world the session is alone and holds all ranks.
std::unique_ptr<Backend> createCudaBackend(const CudaOptions &options, std::shared_ptr<PeerWorld> world = nullptr);

} // namespace hpc::cuda
