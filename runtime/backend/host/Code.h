// The plan's generated code in this process: an ELF shared object that is loaded from memory.
// It is machine code: running a plan means trusting its author.
#pragma once

#include "runtime/base/Status.h"

#include <string>
#include <vector>

namespace hpc::host {

/// Success if this CPU has all features, else an error that names the ones that are missing. `cpuInfo` is in the format
/// of /proc/cpuinfo.
Status checkCpuFeatures(const std::vector<std::string> &needed, const std::string &cpuInfo = "/proc/cpuinfo");

/// Signature of a kernel: see plan::Kernel.
using KernelFunction = void (*)(void *const *args, const int64_t *scalars, int64_t begin, int64_t end);

class Code {
public:
  /// Empty bytes load nothing.
  static Expected<Code> load(const std::string &sharedObject);

  Code() = default;
  Code(Code &&other) noexcept { swap(other); }
  Code &operator=(Code &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Code();

  Expected<KernelFunction> find(const std::string &symbol) const;

private:
  void swap(Code &other) noexcept {
    std::swap(descriptor, other.descriptor);
    std::swap(handle, other.handle);
  }
  int descriptor = -1;
  void *handle = nullptr;
};

} // namespace hpc::host
