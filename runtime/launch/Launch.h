// Who started this process, and which of how many it is. Only the environment and two flags are read: what a launcher
// does not say is an error that names the variable, never a guess.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <string>

namespace hpc::launch {

enum class LaunchKind {
  None,        ///< by hand: this process holds all ranks
  Mpi,         ///< by mpirun or `srun --mpi=pmix`: MPI knows number and count
  Environment, ///< as torchrun or Slurm do: the environment knows them, and where the rendezvous is
};

struct Launch {
  LaunchKind kind = LaunchKind::None;
  int64_t process = 0, processes = 1; ///< of Mpi a hint: MPI itself is asked when it has started
  std::string host;                   ///< of the rendezvous; may be empty for Mpi
  uint16_t port = 0;
};

/// The value of an environment variable, or null.
using Environment = std::function<const char *(const char *)>;

/// `wanted`: --launch, one of auto, none, mpi, env. `rendezvous`: --rendezvous=HOST:PORT, may be empty. auto: MPI's
/// variables, then RANK and WORLD_SIZE, then Slurm's with --rendezvous, else None.
Expected<Launch> detectLaunch(const std::string &wanted, const std::string &rendezvous, const Environment &environment);

/// Ranks per process, or an error that names the numbers.
Expected<int64_t> ranksPerProcess(int64_t worldSize, int64_t processes);

} // namespace hpc::launch
