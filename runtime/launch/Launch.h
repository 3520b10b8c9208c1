// The launcher of this process, its number and the number of processes. Only the environment and two flags are read:
// contradictions are errors that name the variables, never a guess.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <string>

namespace hpc::launch {

enum class LaunchKind {
  None,        ///< by hand: this process holds all ranks
  Mpi,         ///< by mpirun or `srun --mpi=pmix`: MPI has number and count
  Environment, ///< by torchrun or Slurm, for example: the environment has them, and the rendezvous' address
};

struct Launch {
  /// An error: this process has no certain number. If `kind` is Environment the others can still receive the error.
  Status status;
  LaunchKind kind = LaunchKind::None;
  std::string by, claim; ///< the launcher, and its variables "RANK=1 and WORLD_SIZE=2", for messages
  /// This one and how many. For Mpi the environment's numbers, which MPI has to confirm; 0 processes: not known.
  int64_t process = 0, processes = 1;
  std::string host; ///< of the rendezvous; may be empty for Mpi
  uint16_t port = 0;
  /// `host` is the store of torchrun's agent, which has process 0's address, not process 0. `runId`: of that torchrun.
  bool atAgent = false;
  std::string runId;
  bool oneMachine = false; ///< one agent started all processes

  /// Whether this process has no known number.
  bool isNobody() const { return process < 0; }
};

/// The value of an environment variable, or null.
using Environment = std::function<const char *(const char *)>;

/// `wanted`: --launch, one of auto, none, mpi, env. `rendezvous`: --rendezvous=HOST:PORT, may be empty. The
/// innermost of several launchers is followed: see docs/launch.md.
Launch detectLaunch(const std::string &wanted, const std::string &rendezvous, const Environment &environment);

/// Ranks per process, or an error that names the numbers.
Expected<int64_t> ranksPerProcess(int64_t worldSize, int64_t processes);

} // namespace hpc::launch
