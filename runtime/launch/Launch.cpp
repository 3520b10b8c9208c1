// The table of launchers, in the order in which they are looked for.
#include "runtime/launch/Launch.h"

#include <cerrno>
#include <cstdlib>
#include <limits>

namespace hpc::launch {

namespace {

Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

/// A whole decimal number in least .. most.
Expected<int64_t> number(const std::string &what, const std::string &text, int64_t least, int64_t most) {
  errno = 0;
  char *end = nullptr;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || errno != 0 || value < least || value > most)
    return usage(what + "='" + text + "' must be a number from " + std::to_string(least) + " to " +
                 std::to_string(most));
  return int64_t(value);
}

/// "HOST:PORT", "[2001:db8::1]:29500".
Status parseRendezvous(const std::string &text, Launch &launch) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return usage("--rendezvous='" + text + "' must be HOST:PORT, for example 10.0.0.1:29500");
  launch.host = text.substr(0, colon);
  if (launch.host.size() > 2 && launch.host.front() == '[' && launch.host.back() == ']')
    launch.host = launch.host.substr(1, launch.host.size() - 2);
  Expected<int64_t> port = number("the port of --rendezvous", text.substr(colon + 1), 1, 65535);
  if (!port.ok())
    return port.status();
  launch.port = uint16_t(*port);
  return Status::success();
}

struct Names {
  const char *process, *processes, *starter;
};

Expected<Launch> fromEnvironment(const Names &names, const std::string &rendezvous, const Environment &environment) {
  auto text = [&](const char *variable) {
    const char *value = environment(variable);
    return std::string(value ? value : "");
  };
  for (const char *variable : {names.process, names.processes})
    if (text(variable).empty())
      return usage(std::string("--launch=env: ") + variable + " is not set; " + names.starter + " sets " +
                   names.process + " and " + names.processes);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  Launch launch;
  launch.kind = LaunchKind::Environment;
  Expected<int64_t> processes = number(names.processes, text(names.processes), 1, most);
  if (!processes.ok())
    return processes.status();
  Expected<int64_t> process = number(names.process, text(names.process), 0, *processes - 1);
  if (!process.ok())
    return process.status();
  launch.process = *process;
  launch.processes = *processes;
  if (launch.processes == 1)
    return Launch();
  if (!rendezvous.empty()) {
    HPC_RETURN_IF_ERROR(parseRendezvous(rendezvous, launch));
    return launch;
  }
  launch.host = text("MASTER_ADDR");
  if (launch.host.empty() || text("MASTER_PORT").empty())
    return usage(
        std::string(names.processes) + "=" + std::to_string(launch.processes) +
        ": the processes do not know where to meet; give --rendezvous=HOST:PORT with the address of process 0, "
        "or set MASTER_ADDR and MASTER_PORT as torchrun does (--launch=none: this process runs alone)");
  Expected<int64_t> port = number("MASTER_PORT", text("MASTER_PORT"), 1, 65535);
  if (!port.ok())
    return port.status();
  launch.port = uint16_t(*port);
  return launch;
}

} // namespace

Expected<Launch> detectLaunch(const std::string &wanted, const std::string &rendezvous,
                              const Environment &environment) {
  auto isSet = [&](const char *variable) {
    const char *value = environment(variable);
    return value && *value;
  };
  const Names torchrun{"RANK", "WORLD_SIZE", "torchrun"}, slurm{"SLURM_PROCID", "SLURM_NTASKS", "srun"};
  // OMPI_*: Open MPI's mpirun; PMIX_*: any launcher that speaks PMIx, as srun --mpi=pmix does.
  const bool byMpi = isSet("OMPI_COMM_WORLD_SIZE") || isSet("PMIX_NAMESPACE");
  const bool byTorchrun = isSet("RANK") && isSet("WORLD_SIZE");
  // A batch script has Slurm's numbers too, but no step of its own: what it starts by hand runs alone.
  const bool bySlurm = isSet("SLURM_STEP_ID") && isSet("SLURM_PROCID") && isSet("SLURM_NTASKS") &&
                       std::string(environment("SLURM_NTASKS")) != "1";
  Launch mpi;
  mpi.kind = LaunchKind::Mpi;
  if (wanted == "mpi" || (wanted == "auto" && byMpi)) {
    if (!byMpi)
      return usage("--launch=mpi, but no MPI launcher has started this process; start it by mpirun -n P hpc-run ..., "
                   "or by srun --mpi=pmix");
    const char *size = environment("OMPI_COMM_WORLD_SIZE");
    if (size && std::string(size) == "1" && wanted == "auto")
      return Launch();
    if (!rendezvous.empty())
      HPC_RETURN_IF_ERROR(parseRendezvous(rendezvous, mpi));
    for (const char *variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"})
      if (isSet(variable))
        mpi.process = std::atoll(environment(variable));
    return mpi;
  }
  if (wanted == "env")
    return fromEnvironment(!byTorchrun && isSet("SLURM_PROCID") ? slurm : torchrun, rendezvous, environment);
  if (wanted == "auto" && byTorchrun)
    return fromEnvironment(torchrun, rendezvous, environment);
  if (wanted == "auto" && bySlurm) {
    if (rendezvous.empty())
      return usage(std::string("srun has started ") + environment("SLURM_NTASKS") +
                   " processes, which do not know where to meet; give --rendezvous=HOST:PORT with the address of the "
                   "first one, or use srun --mpi=pmix (--launch=none: each runs alone)");
    return fromEnvironment(slurm, rendezvous, environment);
  }
  if (!rendezvous.empty())
    return usage(wanted == "none"
                     ? "--rendezvous does not go with --launch=none, where this process runs alone"
                     : "--rendezvous was given, but nothing says which process this is; set RANK and WORLD_SIZE as "
                       "torchrun does, or start it by srun");
  return Launch();
}

Expected<int64_t> ranksPerProcess(int64_t worldSize, int64_t processes) {
  if (processes > 0 && worldSize % processes == 0)
    return worldSize / processes;
  std::string counts;
  for (int64_t count = 1; count <= worldSize; ++count)
    if (worldSize % count == 0)
      counts += (counts.empty() ? "" : count == worldSize ? " or " : ", ") + std::to_string(count);
  return usage("the plan has " + std::to_string(worldSize) + " ranks, which " + std::to_string(processes) +
               " processes cannot share equally; start " + counts + " processes, or compile for other degrees");
}

} // namespace hpc::launch
