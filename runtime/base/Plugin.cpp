#include "runtime/base/Plugin.h"

#include <dlfcn.h>
#include <filesystem>

namespace hpc {

Expected<void *> openPlugin(const std::string &file, const char *symbol, const std::string &what, const std::string &remedy) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  std::string path = (folder / file).string();
  if (!std::filesystem::exists(path, failed))
    path = (folder / "../lib" / file).string();
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status::error(ErrorKind::Usage, "cannot open " + what + ": " + ::dlerror() + "; " + remedy);
  void *function = ::dlsym(library, symbol);
  if (!function)
    return Status::error(ErrorKind::Usage, "'" + path + "' is no plugin of this program; install both from one build");
  return function;
}

} // namespace hpc
