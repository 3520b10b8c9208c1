// Each launcher whose variables are set claims this process. Claims of one process alone yield to others; of the
// remaining claims one has to be inside all others, or equal to them.
#include "runtime/launch/Launch.h"

#include "runtime/launch/Launchers.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

namespace hpc::launch {

namespace {

/// More processes are a mistake; a message engine can number so many.
constexpr int64_t mostProcesses = 1 << 20;

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
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  Expected<int64_t> port = number("the port of --rendezvous", text.substr(colon + 1), 1, 65535);
  if (!port.ok())
    return port.status();
  launch.host = host;
  launch.port = uint16_t(*port);
  return Status::success();
}

/// The content of a launcher's variables, as far as they are set.
struct Claim {
  const Launcher *launcher;
  const char *countName = nullptr; ///< of the two names the one that is set, or the newer one
  bool hasProcess = false, hasCount = false;
  int64_t process = 0;
  int64_t count = 0; ///< 0: not known
  int64_t localCount = 0, groups = 0;

  /// PMIx has no variable for the count.
  bool isWhole() const { return hasProcess && (hasCount || !countName); }
  /// "RANK=1 and WORLD_SIZE=2"
  std::string text() const {
    std::string content = launcher->process + ("=" + std::to_string(process));
    return hasCount ? content + " and " + countName + "=" + std::to_string(count) : content;
  }
};

class Detection {
public:
  Detection(const std::string &wanted, const std::string &rendezvous, const Environment &environment)
      : wanted(wanted), rendezvous(rendezvous), environment(environment) {}

  Launch run() {
    Launch launch;
    launch.status = detect(launch);
    if (!launch.status.ok() && launch.kind == LaunchKind::None) { // with a place it can still report to the others
      Launch place;
      if (claimsEnvironment && findPlace(place).ok() && !place.host.empty()) {
        place.status = launch.status;
        place.kind = LaunchKind::Environment;
        place.process = -1;
        place.processes = 0;
        return place;
      }
    }
    return launch;
  }

private:
  std::string text(const char *variable) const {
    const char *value = variable ? environment(variable) : nullptr;
    return value ? value : "";
  }
  bool isSet(const char *variable) const { return !text(variable).empty(); }

  /// Slurm's numbers without a step are those of a batch script; a shell on one of its nodes is a step with a number
  /// near the largest. Programs that either starts by hand run alone.
  bool isTaskOfSlurm() const {
    constexpr unsigned long long leastSpecial = 0xfffffff0;
    return isSet("SLURM_STEP_ID") && std::strtoull(text("SLURM_STEP_ID").c_str(), nullptr, 10) < leastSpecial;
  }
  bool isPresent(const Launcher &launcher) const {
    switch (launcher.kind) {
    case LauncherKind::Slurm:
      return isTaskOfSlurm();
    case LauncherKind::Torchrun:
      return isSet(launcher.mark);
    case LauncherKind::ByHand: // the same names
      if (isSet(launcherOf(LauncherKind::Torchrun).mark))
        return false;
      break;
    default:
      break;
    }
    for (const char *variable :
         {launcher.mark, launcher.process, launcher.processes, launcher.localProcess, launcher.localProcesses})
      if (isSet(variable))
        return true;
    return false;
  }

  Status readNumber(const char *variable, int64_t least, int64_t most, int64_t &value) const {
    if (!isSet(variable))
      return Status::success();
    Expected<int64_t> read = number(variable, text(variable), least, most);
    if (read.ok())
      value = *read;
    return read.status();
  }

  Status readClaim(const Launcher &launcher, Claim &claim) const {
    claim.launcher = &launcher;
    claim.countName = isSet(launcher.processes) || !isSet(launcher.processesOfOld) ? launcher.processes
                                                                                   : launcher.processesOfOld;
    claim.hasProcess = isSet(launcher.process) && (!launcher.mark || isSet(launcher.mark));
    claim.hasCount = isSet(claim.countName);
    HPC_RETURN_IF_ERROR(readNumber(claim.countName, 1, mostProcesses, claim.count));
    HPC_RETURN_IF_ERROR(
        readNumber(launcher.process, 0, (claim.hasCount ? claim.count : mostProcesses) - 1, claim.process));
    HPC_RETURN_IF_ERROR(
        readNumber(launcher.localProcesses, 1, claim.hasCount ? claim.count : mostProcesses, claim.localCount));
    int64_t local = 0;
    HPC_RETURN_IF_ERROR(
        readNumber(launcher.localProcess, 0, (claim.localCount ? claim.localCount : mostProcesses) - 1, local));
    return readNumber(launcher.groups, 1, mostProcesses, claim.groups);
  }

  /// "RANK is set and WORLD_SIZE is not"
  Status incomplete(const Claim &claim) const {
    const Launcher &launcher = *claim.launcher;
    std::string set, missing;
    for (const char *variable :
         {launcher.mark, launcher.process, claim.countName, launcher.localProcess, launcher.localProcesses})
      if (isSet(variable))
        set += (set.empty() ? "" : ", ") + std::string(variable);
    for (const char *variable : {launcher.mark, launcher.process, claim.countName})
      if (variable && !isSet(variable))
        missing += (missing.empty() ? "" : " and ") + std::string(variable);
    const bool isTorchrun = launcher.kind == LauncherKind::Torchrun || launcher.kind == LauncherKind::ByHand;
    return usage(set + " set, " + missing + " not, so nothing says which of how many processes this is; " +
                 (isTorchrun ? "torchrun" : launcher.name) + " sets all of them: set " + missing + ", or unset " + set +
                 " (--launch=none: this process runs alone)");
  }

  /// Both are whole and none of one process.
  bool isInside(const Claim &inner, const Claim &outer) const {
    const bool isSrun = outer.launcher->kind == LauncherKind::Slurm;
    if (outer.launcher->kind == LauncherKind::Torchrun)
      return false;
    switch (inner.launcher->kind) {
    case LauncherKind::Torchrun: // each of the outer's processes is an agent; nobody starts srun by torchrun
      return isSrun || outer.count == 0 || inner.groups == outer.count;
    case LauncherKind::ByHand:
      return outer.count == 0 || (inner.count != outer.count && inner.localCount * outer.count == inner.count) ||
             (isSrun && inner.count > outer.count && inner.count % outer.count == 0);
    default:
      return false;
    }
  }
  static bool sayTheSame(const Claim &one, const Claim &other) {
    return one.launcher->kind != LauncherKind::Torchrun && other.launcher->kind != LauncherKind::Torchrun &&
           one.process == other.process && one.count == other.count;
  }
  Status contradiction(const Claim &one, const Claim &other) const {
    const bool byMpi = one.launcher->byMpi || other.launcher->byMpi;
    return usage(one.text() + " (" + one.launcher->name + ") contradict " + other.text() + " (" +
                 other.launcher->name + "): it is not known which is the inner launcher; " +
                 (byMpi && wanted == "auto" ? "say --launch=mpi or --launch=env, or " : "") +
                 "unset the variables of one (--launch=none: this process runs alone)");
  }

  /// The launchers of MPI, and srun, speak PMIx too: one launcher, one claim. Slurm's count is not PMIx' where srun has
  /// started the daemons of another launcher, so it is left to MPI.
  Status mergePmix(std::vector<Claim> &claims) const {
    auto find = [&](LauncherKind kind) {
      return std::find_if(claims.begin(), claims.end(), [&](const Claim &one) { return one.launcher->kind == kind; });
    };
    auto pmix = find(LauncherKind::Pmix);
    if (pmix == claims.end())
      return Status::success();
    for (LauncherKind kind : {LauncherKind::OpenMpi, LauncherKind::Mvapich, LauncherKind::Mpich})
      if (auto other = find(kind); other != claims.end()) {
        if (other->process != pmix->process)
          return contradiction(*other, *pmix);
        if (other->launcher->byMpi) {
          claims.erase(pmix);
          return Status::success();
        }
        pmix->count = other->count;
      }
    if (auto task = find(LauncherKind::Slurm); task != claims.end())
      claims.erase(task);
    return Status::success();
  }

  /// Leaves the claim that is right, or none where this process is alone.
  Status choose(std::vector<Claim> &claims) const {
    HPC_RETURN_IF_ERROR(mergePmix(claims));
    auto remove = [&](auto condition) {
      claims.erase(std::remove_if(claims.begin(), claims.end(), condition), claims.end());
    };
    auto startsBySrun = [](const Claim &one) { // its daemons are Slurm's tasks
      const LauncherKind kind = one.launcher->kind;
      return kind == LauncherKind::OpenMpi || kind == LauncherKind::Mpich || kind == LauncherKind::Mvapich;
    };
    if (std::any_of(claims.begin(), claims.end(), startsBySrun))
      remove([](const Claim &one) { return one.launcher->kind == LauncherKind::Slurm; });
    if (std::any_of(claims.begin(), claims.end(), [](const Claim &one) { return one.count != 1; }))
      remove([](const Claim &one) { return one.count == 1; });
    else
      claims.resize(1); // alone, whichever launcher claims it
    while (claims.size() > 1) {
      const Claim &one = claims[0], &other = claims[1];
      if (isInside(other, one))
        claims.erase(claims.begin());
      else if (isInside(one, other) || sayTheSame(one, other))
        claims.erase(claims.begin() + 1);
      else
        return contradiction(one, other);
    }
    return Status::success();
  }

  /// A launcher without all numbers must not contradict the one that is followed.
  Status checkRest(const std::vector<Claim> &rest, const Claim &chosen) const {
    for (const Claim &one : rest) {
      if (one.launcher->kind == LauncherKind::Slurm) // all processes that a task starts inherit its variables
        continue;
      const bool isOther = one.hasProcess && one.process != chosen.process;
      if (isOther || (one.hasCount && chosen.count > 0 && one.count != chosen.count))
        return usage((isOther ? one.launcher->process : one.countName) + std::string("=") +
                     std::to_string(isOther ? one.process : one.count) + " contradicts " + chosen.text() + " (" +
                     chosen.launcher->name + "); unset it (--launch=none: this process runs alone)");
    }
    return Status::success();
  }

  /// The meeting place of the processes: --rendezvous, or the address in torchrun's variables.
  Status findPlace(Launch &launch) const {
    if (!rendezvous.empty())
      return parseRendezvous(rendezvous, launch);
    if (!isSet("MASTER_ADDR") || !isSet("MASTER_PORT"))
      return Status::success();
    Expected<int64_t> port = number("MASTER_PORT", text("MASTER_PORT"), 1, 65535);
    if (!port.ok())
      return port.status();
    launch.host = text("MASTER_ADDR");
    launch.port = uint16_t(*port);
    launch.runId = text(launcherOf(LauncherKind::Torchrun).mark);
    launch.atAgent = !launch.runId.empty() && text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    launch.oneMachine = !launch.runId.empty() && text("GROUP_WORLD_SIZE") == "1";
    if (launch.oneMachine) // this machine's name may be an address that strangers can reach
      launch.host = "127.0.0.1";
    return Status::success();
  }

  Status follow(const Claim &chosen, Launch &launch) const {
    Launch found;
    found.by = chosen.launcher->name;
    found.claim = chosen.text();
    found.process = chosen.process;
    found.processes = chosen.count;
    found.kind = chosen.launcher->byMpi ? LaunchKind::Mpi : LaunchKind::Environment;
    if (chosen.launcher->byMpi) {
      if (!rendezvous.empty())
        HPC_RETURN_IF_ERROR(parseRendezvous(rendezvous, found));
      launch = found;
      return Status::success();
    }
    HPC_RETURN_IF_ERROR(findPlace(found));
    if (found.host.empty()) {
      const bool isLauncher = chosen.launcher->kind != LauncherKind::ByHand;
      return usage((isLauncher ? chosen.launcher->name + (" has started " + std::to_string(chosen.count))
                               : chosen.countName + ("=" + std::to_string(chosen.count)) + ": there are several") +
                   " processes, which do not know where to meet; give --rendezvous=HOST:PORT with the address of the "
                   "first one, set MASTER_ADDR and MASTER_PORT to it" +
                   (chosen.launcher->kind == LauncherKind::Slurm ? ", or use srun --mpi=pmix" : "") +
                   " (--launch=none: each runs alone)");
    }
    launch = found;
    return Status::success();
  }

  Status detect(Launch &launch) {
    if (wanted == "none")
      return rendezvous.empty() ? Status::success()
                                : usage("--rendezvous does not go with --launch=none, where this process runs alone");
    std::vector<Claim> claims, rest;
    for (const Launcher &launcher : launchers()) {
      if ((wanted == "mpi" && !launcher.byMpi) || (wanted == "env" && launcher.byMpi) || !isPresent(launcher))
        continue;
      claimsEnvironment |= !launcher.byMpi;
      Claim claim;
      HPC_RETURN_IF_ERROR(readClaim(launcher, claim));
      (claim.isWhole() ? claims : rest).push_back(claim);
    }
    if (wanted == "mpi" && claims.empty() && rest.empty())
      return usage("--launch=mpi, but no MPI launcher has started this process; start it by mpirun -n P hpc-run ..., "
                   "or by srun --mpi=pmix");
    if (claims.empty() && !rest.empty())
      return incomplete(rest[0]);
    if (claims.empty() && wanted == "env")
      return usage("--launch=env: RANK is not set; torchrun sets RANK and WORLD_SIZE");
    if (claims.empty())
      return rendezvous.empty() ? Status::success()
                                : usage("--rendezvous was given, but nothing says which process this is; set RANK and "
                                        "WORLD_SIZE as torchrun does, or start it by srun");
    HPC_RETURN_IF_ERROR(choose(claims));
    HPC_RETURN_IF_ERROR(checkRest(rest, claims[0]));
    // Alone: there is nobody to meet.
    return claims[0].count == 1 && wanted != "mpi" ? Status::success() : follow(claims[0], launch);
  }

  const std::string &wanted, &rendezvous;
  const Environment &environment;
  bool claimsEnvironment = false;
};

} // namespace

Launch detectLaunch(const std::string &wanted, const std::string &rendezvous, const Environment &environment) {
  return Detection(wanted, rendezvous, environment).run();
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
