// One run at a time in a folder. The system ends the lock with its process, however that ends, so nothing is left to remove by hand.
#pragma once

#include "runtime/base/Status.h"

#include <string>

namespace hpc {

class RunLock {
public:
  /// Locks FOLDER/lock, which names the process that has it. Errors: another has it; the file cannot be written.
  static Expected<RunLock> take(const std::string &folder);
  RunLock(RunLock &&other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  RunLock &operator=(RunLock &&) = delete;
  ~RunLock();

private:
  explicit RunLock(int descriptor) : descriptor(descriptor) {}
  int descriptor;
};

} // namespace hpc
