// A run as one of several processes, from the meeting to the common end.
#pragma once

#include "tools/running/RunFlags.h"

#include <functional>

namespace hpc {

/// `before` reads what decides whether the processes can meet: the number of ranks and the first fingerprints. `prepare` reads the rest,
/// once all are there, and adds fingerprints. `run` runs the ranks of this process. An error of any of them ends all processes.
/// `failed`: the error of the command line; the others receive it.
Status runTogether(const launch::Launch &launch, const RunFlags &flags, Status failed,
                   const std::function<Status(int64_t process, Prepared &)> &before,
                   const std::function<Status(processes::Processes &, Prepared &)> &prepare,
                   const std::function<Status(processes::Processes &)> &run);

inline Status outOfMemory() { return Status::error(ErrorKind::Capacity, "out of memory"); }

} // namespace hpc
