// The variables in which each launcher puts a process's number and the count: the one table of them. LaunchTest tries
// every row against every other, and docs/launch.md has all names.
#pragma once

#include <vector>

namespace hpc::launch {

enum class LauncherKind {
  Torchrun,
  OpenMpi,
  Pmix,
  Mvapich,
  Mpich,
  ByHand,
  Slurm,
};

/// The names of a launcher's variables; null: it has none.
struct Launcher {
  LauncherKind kind;
  const char *name;                           ///< in messages
  bool byMpi;                                 ///< its processes reach each other by MPI; else at a common address
  const char *mark;                           ///< only it sets this; null: any variable below is a mark
  const char *process, *processes;            ///< the number of this process, and how many there are
  const char *processesOfOld;                 ///< read where `processes` is not set
  const char *localProcess, *localProcesses; ///< the same on this machine
  const char *groups;                         ///< how many agents start processes, one on each machine
};

/// In order of preference among equal claims.
const std::vector<Launcher> &launchers();
const Launcher &launcherOf(LauncherKind kind);

} // namespace hpc::launch
