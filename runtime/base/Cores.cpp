// sched_getaffinity and the control group's cpu.max; a limit that cannot be read counts as none.
#include "runtime/base/Cores.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sched.h>
#include <unistd.h>

namespace hpc {

namespace {

/// Nothing on machines of more than 1,024 cores.
std::optional<cpu_set_t> affinity() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? std::optional(set) : std::nullopt;
}

int64_t coresOfAffinity() {
  std::optional<cpu_set_t> set = affinity();
  return std::max<int64_t>(1, set ? CPU_COUNT(&*set) : ::sysconf(_SC_NPROCESSORS_ONLN));
}

/// "QUOTA PERIOD" in microseconds; the quota is "max" where there is none. A part of a core counts as one.
int64_t coresOfControlGroup() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  int64_t quota, period;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0)
    return std::numeric_limits<int64_t>::max();
  return (quota + period - 1) / period;
}

} // namespace

int64_t availableCores() { return std::min(coresOfAffinity(), coresOfControlGroup()); }

std::string coreSet() {
  std::optional<cpu_set_t> set = affinity();
  std::string text;
  for (int core = 0; set && core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &*set))
      continue;
    int last = core;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &*set))
      ++last;
    text += (text.empty() ? "" : ",") + std::to_string(core) + (last > core ? "-" + std::to_string(last) : "");
    core = last;
  }
  return text;
}

} // namespace hpc
