// Plugins are looked for beside the program first, as a build folder and a copied folder have them.
#include "runtime/backend/processes/Transport.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace hpc::processes {

Expected<std::unique_ptr<Transport>> openTransport(const std::string &name, int64_t processesHere) {
  const std::string file = "libhpc_" + name + ".so";
  // Both engines use UCX, which reads these when it is loaded: this program handles signals and reports failures.
  ::setenv("UCX_HANDLE_ERRORS", "none", 0);
  ::setenv("UCX_LOG_LEVEL", "fatal", 0);
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  std::string reason;
  for (const std::string &path : {(folder / file).string(), (folder / "../lib" / file).string(), file}) {
    if (path != file && !std::filesystem::exists(path, failed))
      continue;
    // Global: Open MPI opens its own components, which look for its symbols among all.
    void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
      reason = ::dlerror();
      continue;
    }
    auto *create = reinterpret_cast<CreateTransport *>(::dlsym(library, createTransportSymbol));
    if (!create)
      return Status::error(ErrorKind::Usage,
                           "'" + path + "' is no plugin of this program; install both from one build");
    std::string error;
    if (Transport *transport = create(processesHere, &error))
      return std::unique_ptr<Transport>(transport);
    return Status::error(ErrorKind::Io, name + ": " + error);
  }
  const std::string package = name == "mpi" ? "libopenmpi-dev and openmpi-bin" : "libucx-dev";
  return Status::error(ErrorKind::Usage, "cannot open the plugin " + file + ": " + reason + "; install " + package +
                                             " and build again (tools/setup.sh does both)");
}

} // namespace hpc::processes
