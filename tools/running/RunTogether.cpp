// The others wait for this process wherever it fails, so every error is passed on.
#include "tools/running/RunTogether.h"

#include <new>

namespace hpc {

Status runTogether(const launch::Launch &launch, const RunFlags &flags, Status failed,
                   const std::function<Status(int64_t process, Prepared &)> &before,
                   const std::function<Status(processes::Processes &, Prepared &)> &prepare,
                   const std::function<Status(processes::Processes &)> &run) {
  Prepared prepared;
  prepared.status = failed.ok() ? before(launch.process, prepared) : failed;
  if (!prepared.status.ok())
    prepared = {prepared.status, 0, {}};
  Expected<std::unique_ptr<processes::Processes>> met = meet(launch, flags.processes, prepared);
  if (!met.ok())
    endWith(met.status());
  processes::Processes &processes = **met;
  Status status;
  try {
    prepared.status = prepare(processes, prepared);
    status = introduce(processes, prepared, flags.backend != "cuda");
    if (status.ok())
      status = run(processes);
  } catch (const std::bad_alloc &) {
    status = outOfMemory();
    processes.control->fail(status.at(processes.control->mine().text()));
  }
  Status verdict = leaveTogether(processes, status);
  if (!verdict.ok())
    endWith(status.ok() ? verdict : status);
  return verdict;
}

} // namespace hpc
