// The backend of NVIDIA's GPUs: ranks are threads of this process, with a GPU each or a share of one. It links none of
// CUDA: driver and libraries are looked up when a plan is loaded (Library.h).
#pragma once

#include "runtime/backend/cuda/CudaOptions.h"
#include "runtime/backend/cuda/Peers.h"
#include "runtime/core/ControlPlane.h"

#include <memory>

namespace hpc::cuda {

/// Without a world the session is alone and holds all ranks: if each has a card of its own, they communicate by NCCL,
/// which needs no peer access between cards and no host thread that brings ranks together; else as peers.
std::unique_ptr<Backend> createCudaBackend(const CudaOptions &options, std::shared_ptr<PeerWorld> world = nullptr);
/// One of several processes, each with a card for each of its ranks: NCCL.
std::unique_ptr<Backend> createCudaBackend(const CudaOptions &options, std::unique_ptr<ControlPlane> plane);

} // namespace hpc::cuda
