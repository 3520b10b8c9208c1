// The flags about running a plan that hpc-run and hpc-train have alike, as plain data.
#pragma once

#include "tools/running/CudaPlugin.h"
#include "tools/running/Processes.h"
#include "tools/running/StartProcesses.h"
#include "tools/running/Train.h"

namespace hpc {

struct RunFlags {
  std::string weights, trace, backend = "host";
  bool poison = false, tiles = true, followLinks = false;
  int64_t threads = 0; ///< of a rank; 0: by the cores
  TrainFlags training;
  ProcessFlags processes;
  StartFlags start;
  cuda::CudaOptions cuda;
};

RunFlags readRunFlags(const Arguments &arguments);
/// Errors for flags that do not go with the backend or the launcher.
Status checkRunFlags(const Arguments &arguments, const RunFlags &flags);

} // namespace hpc
