// Plugins are looked for beside the program first, as a build folder and a copied folder have them.
#include "tools/running/CudaPlugin.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace hpc {

Expected<std::unique_ptr<Backend>> openCudaBackend(cuda::CudaOptions options, std::unique_ptr<ControlPlane> plane) {
  if (const char *folder = std::getenv("HPC_CUDA_LIBRARIES"))
    options.libraryFolder = folder;
  const std::string file = "libhpc_cuda.so";
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  std::string path = (folder / file).string();
  if (!std::filesystem::exists(path, failed))
    path = (folder / "../lib" / file).string();
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status::error(ErrorKind::Usage, std::string("cannot open the plugin of --backend=cuda: ") + ::dlerror() +
                                               "; it is built with this program and has to stand beside it");
  using Create = Backend *(const cuda::CudaOptions &, ControlPlane *);
  auto *create = reinterpret_cast<Create *>(::dlsym(library, "hpcCreateCudaBackend"));
  if (!create)
    return Status::error(ErrorKind::Usage, "'" + path + "' is no plugin of this program; install both from one build");
  return std::unique_ptr<Backend>(create(options, plane.release()));
}

} // namespace hpc
