// The variables by which each launcher says which of how many processes this one is: the one table of them. LaunchTest
// tries every row against every other, and docs/launch.md has all names.
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
  const char *name;                           ///< as messages call it
  bool byMpi;                                 ///< its processes reach each other by MPI; else at an address that all know
  const char *mark;                           ///< only it sets this; null: any variable below is a mark
  const char *process, *processes;            ///< the number of this process, and how many there are
  const char *processesOfOld;                 ///< read where `processes` is not set
  const char *localProcess, *localProcesses; ///< the same on this machine
  const char *groups;                         ///< how many agents start processes, one on each machine
};

/// In the order of preference where several say the same.
const std::vector<Launcher> &launchers();
const Launcher &launcherOf(LauncherKind kind);

} // namespace hpc::launch
