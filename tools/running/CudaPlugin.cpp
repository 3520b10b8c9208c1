#include "tools/running/CudaPlugin.h"

#include "runtime/base/Plugin.h"

#include <cstdlib>

namespace hpc {

Expected<std::unique_ptr<Backend>> openCudaBackend(cuda::CudaOptions options, std::unique_ptr<ControlPlane> plane) {
  if (const char *folder = std::getenv("HPC_CUDA_LIBRARIES"))
    options.libraryFolder = folder;
  Expected<void *> found = openPlugin("libhpc_cuda.so", "hpcCreateCudaBackend", "the plugin of --backend=cuda", "it is built with this program and has to stand beside it");
  HPC_RETURN_IF_ERROR(found.status());
  using Create = Backend *(const cuda::CudaOptions &, ControlPlane *);
  auto *create = reinterpret_cast<Create *>(*found);
  return std::unique_ptr<Backend>(create(options, plane.release()));
}

} // namespace hpc
