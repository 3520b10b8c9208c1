// How many threads of this process can run at once.
#pragma once

#include <cstdint>
#include <string>

namespace hpc {

/// The number of cores that this process may use: those of its affinity (taskset, mpirun --bind-to, a cpuset), or fewer
/// if its control group has less time (docker --cpus). At least 1.
int64_t availableCores();

/// Which cores of the machine they are, "0-3,8": processes with the same ones share them.
std::string coreSet();

} // namespace hpc
