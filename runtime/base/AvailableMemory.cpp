// Reads /proc, the control group and the process' limits; a limit that cannot be read counts as none.
#include "runtime/base/AvailableMemory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace hpc {

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// The number after `key` in a file of lines "key number", in bytes; `otherwise` where there is none.
int64_t numberIn(const char *path, const std::string &key, int64_t otherwise) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (int64_t number; word == key && file >> number)
      return number;
  return otherwise;
}

/// A file that holds one number.
int64_t numberOf(const char *path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t number;
  return file >> number ? number : otherwise;
}

int64_t leftInControlGroup() {
  int64_t most = numberOf("/sys/fs/cgroup/memory.max", unlimited); // "max" is no number: unlimited
  if (most == unlimited)
    return unlimited;
  // Pages of files are counted, but the kernel frees them when memory is allocated.
  int64_t used = numberOf("/sys/fs/cgroup/memory.current", 0) -
                 numberIn("/sys/fs/cgroup/memory.stat", "inactive_file", 0);
  return std::max<int64_t>(0, most - used);
}

int64_t leftInAddressSpace() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return unlimited;
  int64_t used = numberOf("/proc/self/statm", 0) * sysconf(_SC_PAGESIZE);
  return std::max<int64_t>(0, int64_t(limit.rlim_cur) - used);
}

} // namespace

int64_t availableMemory() {
  int64_t kilobytes = numberIn("/proc/meminfo", "MemAvailable:", -1);
  return std::min({kilobytes < 0 ? unlimited : kilobytes * 1024, leftInControlGroup(), leftInAddressSpace()});
}

SharedMemory sharedMemory() {
  struct statvfs facts;
  if (::statvfs("/dev/shm", &facts) != 0)
    return {};
  return {int64_t(facts.f_blocks * facts.f_frsize), int64_t(facts.f_bavail * facts.f_frsize)};
}

std::string SharedMemory::text(int64_t needed) const {
  constexpr int64_t mebibyte = 1 << 20;
  std::string content = "/dev/shm has " + std::to_string(bytes / mebibyte) + " MiB";
  return needed > 0 ? content + ", " + std::to_string((needed + mebibyte - 1) / mebibyte) + " are needed" : content;
}

} // namespace hpc
