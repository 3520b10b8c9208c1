// Sources: torch/distributed/run.py; the manual pages of Open MPI's mpirun, MPICH's mpiexec (Hydra) and srun; MVAPICH's
// user guide; the PMIx standard. PMIx has no variable for the count: its server is asked when MPI has started.
#include "runtime/launch/Launchers.h"

namespace hpc::launch {

const std::vector<Launcher> &launchers() {
  using Kind = LauncherKind;
  static const std::vector<Launcher> table = {
      {Kind::Torchrun, "torchrun", false, "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", nullptr, "LOCAL_RANK",
       "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"},
      {Kind::OpenMpi, "mpirun", true, nullptr, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr,
       "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
      {Kind::Pmix, "a launcher of PMIx", true, "PMIX_NAMESPACE", "PMIX_RANK", nullptr, nullptr, nullptr, nullptr,
       nullptr},
      {Kind::Mvapich, "MVAPICH's mpirun", false, nullptr, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", nullptr,
       "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", nullptr},
      {Kind::Mpich, "MPICH's mpiexec", false, nullptr, "PMI_RANK", "PMI_SIZE", nullptr, "MPI_LOCALRANKID",
       "MPI_LOCALNRANKS", nullptr},
      {Kind::ByHand, "by hand", false, nullptr, "RANK", "WORLD_SIZE", nullptr, "LOCAL_RANK", "LOCAL_WORLD_SIZE",
       nullptr},
      {Kind::Slurm, "srun", false, "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
       "SLURM_LOCALID", nullptr, nullptr},
  };
  return table;
}

const Launcher &launcherOf(LauncherKind kind) {
  for (const Launcher &launcher : launchers())
    if (launcher.kind == kind)
      return launcher;
  return launchers().back();
}

} // namespace hpc::launch
