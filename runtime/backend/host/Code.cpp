// memfd_create and dlopen through /proc/self/fd.
#include "runtime/backend/host/Code.h"

#include "runtime/base/File.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace hpc::host {

Status checkCpuFeatures(const std::vector<std::string> &needed, const std::string &cpuInfo) {
  if (needed.empty())
    return Status::success();
  std::ifstream file(cpuInfo);
  std::set<std::string> present;
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 5, "flags") != 0)
      continue;
    std::istringstream words(line.substr(std::min(line.find(':'), line.size() - 1) + 1));
    for (std::string word; words >> word;)
      present.insert(word);
    break;
  }
  if (present.empty())
    return Status::error(ErrorKind::Io, "'" + cpuInfo +
                                            "' lists no CPU flags, so the plan's need of them cannot be "
                                            "checked");
  std::string missing;
  for (const std::string &feature : needed)
    if (!present.count(feature))
      missing += (missing.empty() ? "" : ", ") + feature;
  if (missing.empty())
    return Status::success();
  return Status::error(ErrorKind::Capacity, "the plan's code needs CPU features that this machine lacks: " + missing +
                                                "; compile the plan on a machine like this one");
}

Expected<Code> Code::load(const std::string &sharedObject) {
  Code code;
  if (sharedObject.empty())
    return code;
  auto failed = [](const std::string &what) {
    return Status::error(ErrorKind::Plan, "the plan's code cannot be loaded: " + what);
  };
  code.descriptor = ::memfd_create("hpc-plan-code", MFD_CLOEXEC | MFD_EXEC);
  if (code.descriptor < 0 && errno == EINVAL) // kernels before 6.3 lack MFD_EXEC
    code.descriptor = ::memfd_create("hpc-plan-code", MFD_CLOEXEC);
  if (code.descriptor < 0)
    return failed(std::strerror(errno));
  for (size_t written = 0; written < sharedObject.size();) {
    ssize_t bytes = ::write(code.descriptor, sharedObject.data() + written, sharedObject.size() - written);
    if (bytes < 0 && errno == EINTR)
      continue;
    if (bytes < 0)
      return failed(writeErrorText(errno));
    written += size_t(bytes);
  }
  // The descriptor stays open while the code is loaded: dlopen treats an equal path as the same library, and the number
  // must not be reused for another plan's code.
  std::string path = "/proc/self/fd/" + std::to_string(code.descriptor);
  code.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!code.handle)
    return failed(::dlerror());
  return code;
}

Code::~Code() {
  if (handle)
    ::dlclose(handle);
  if (descriptor >= 0)
    ::close(descriptor);
}

Expected<KernelFunction> Code::find(const std::string &symbol) const {
  void *address = handle ? ::dlsym(handle, symbol.c_str()) : nullptr;
  if (!address)
    return Status::error(ErrorKind::Plan, "the plan's code has no function '" + symbol + "'; compile the plan again");
  return reinterpret_cast<KernelFunction>(address);
}

} // namespace hpc::host
