// By MPI: the engine connects all processes, and distributes a fresh secret and the address of process 0. By the
// environment: all have the address and the secret beforehand, and the rendezvous distributes the engine's addresses.
#include "tools/running/Processes.h"

#include "runtime/launch/AgentMeeting.h"
#include "runtime/launch/Secret.h"
#include "tools/ExitCode.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>

namespace hpc {

namespace {

using launch::Introduction;
using launch::WireReader;
using launch::WireWriter;

/// The addresses of process 0: that of --rendezvous, else on one machine the loopback, else all its addresses.
std::vector<launch::Endpoint> endpointsOfMpi(const launch::Launch &launch, bool sameNetwork) {
  if (!launch.host.empty())
    return {{launch.host, launch.port}};
  if (sameNetwork)
    return {{"127.0.0.1", 0}};
  std::vector<launch::Endpoint> endpoints;
  for (const std::string &address : launch::ownAddresses())
    endpoints.push_back({address, 0});
  return endpoints;
}

Status listen(launch::JoinOptions &options, std::vector<launch::Socket> &listeners) {
  for (launch::Endpoint &endpoint : options.place.endpoints) {
    Expected<launch::Socket> listener = launch::listenOn(endpoint.host, endpoint.port);
    if (!listener.ok())
      return listener.status();
    endpoint.port = launch::portOf(*listener);
    listeners.push_back(std::move(*listener));
  }
  if (listeners.empty())
    return Status::error(ErrorKind::Io, "this machine has no address that the others could reach; give one by "
                                        "--rendezvous=HOST:PORT");
  return Status::success();
}

/// Sends process 0's endpoints and secret to all through the engine, which outsiders cannot read.
Status exchangeByMpi(const launch::Launch &launch, processes::Transport &transport, const Introduction &mine,
                     launch::JoinOptions &options, std::vector<launch::Socket> &listeners) {
  Expected<std::vector<std::string>> networks = transport.gather(launch::networkName());
  if (!networks.ok())
    return networks.status();
  const bool sameNetwork = std::all_of(networks->begin(), networks->end(),
                                       [&](const std::string &network) { return network == (*networks)[0]; });
  WireWriter writer;
  if (mine.process == 0) {
    options.place.endpoints = endpointsOfMpi(launch, sameNetwork);
    Expected<std::string> secret = launch::makeNonce();
    Status status = secret.ok() ? listen(options, listeners) : secret.status();
    writer.status(status);
    writer.text(secret.ok() ? *secret : "");
    writer.number(options.place.endpoints.size());
    for (const launch::Endpoint &endpoint : options.place.endpoints) {
      writer.text(endpoint.host);
      writer.number(endpoint.port);
    }
  }
  Expected<std::vector<std::string>> told = transport.gather(writer.content);
  if (!told.ok())
    return told.status();
  WireReader reader((*told)[0]);
  HPC_RETURN_IF_ERROR(reader.status());
  options.secret = reader.text();
  options.place.endpoints.clear();
  for (uint64_t left = reader.number(); left > 0 && reader.ok(); --left) {
    launch::Endpoint &endpoint = options.place.endpoints.emplace_back();
    endpoint.host = reader.text();
    endpoint.port = uint16_t(reader.number());
  }
  return Status::success();
}

/// MPI has to agree with its launcher's variables: a process that MPI takes for the only one would run all ranks.
Status checkMpi(const launch::Launch &launch, const processes::Transport &transport) {
  const int64_t process = transport.process(), processes = transport.processes();
  const bool isKnown = launch.processes > 0; // PMIx has no variable for it
  if (launch.process == process && (!isKnown || launch.processes == processes))
    return Status::success();
  return Status::error(ErrorKind::Usage,
                       "the environment says that " + launch.by + " has started process " +
                           std::to_string(launch.process) +
                           (isKnown ? " of " + std::to_string(launch.processes) : std::string()) +
                           ", but for MPI this is process " + std::to_string(process) + " of " +
                           std::to_string(processes) +
                           "; start it by the mpirun of the MPI that " + toolName() + " was built with, or without its variables");
}

/// The meeting itself: as process 0, or by coming to it.
Expected<launch::Joined> join(const launch::Launch &launch, launch::JoinOptions &options,
                              std::vector<launch::Socket> &listeners, const Introduction &mine) {
  if (launch.kind == launch::LaunchKind::Mpi)
    return mine.process == 0 ? receiveAll(options, listeners, mine) : comeTo(options, mine);
  const char *secret = std::getenv("HPC_SECRET");
  options.secret = secret ? secret : "";
  launch::AgentMeeting agent(launch, options.secret);
  if (mine.process == 0) {
    options.place.endpoints = {{launch.host, launch.port}};
    if (launch.atAgent)
      HPC_RETURN_IF_ERROR(agent.open(options, listeners));
    HPC_RETURN_IF_ERROR(checkEndpoints(options));
    if (!launch.atAgent)
      HPC_RETURN_IF_ERROR(listen(options, listeners));
    Expected<launch::Joined> joined = receiveAll(options, listeners, mine);
    agent.close();
    return joined;
  }
  if (launch.atAgent)
    agent.attend(options);
  else
    options.place.endpoints = {{launch.host, launch.port}};
  HPC_RETURN_IF_ERROR(checkEndpoints(options));
  Expected<launch::Joined> joined = comeTo(options, mine);
  if (launch.atAgent && !joined.ok())
    agent.refuse(joined.status(), mine);
  return joined;
}

} // namespace

Expected<std::unique_ptr<processes::Processes>> meet(const launch::Launch &launch, const ProcessFlags &flags,
                                                     const Prepared &prepared) {
  const bool byMpi = launch.kind == launch::LaunchKind::Mpi;
  auto joined = std::make_unique<processes::Processes>();
  joined->process = launch.process;
  joined->count = launch.processes;
  if (byMpi) {
    Expected<std::unique_ptr<processes::Transport>> transport = processes::openTransport("mpi");
    if (!transport.ok())
      return transport.status();
    joined->transport = std::move(*transport);
    joined->process = joined->transport->process();
    joined->count = joined->transport->processes();
    HPC_RETURN_IF_ERROR(checkMpi(launch, *joined->transport));
  }

  Introduction mine = launch::introduceSelf(joined->process, joined->count);
  mine.fingerprints = prepared.fingerprints;
  mine.status = prepared.status;
  if (mine.status.ok()) {
    Expected<int64_t> each = launch::ranksPerProcess(prepared.worldSize, joined->count);
    mine.status = each.status();
    mine.ranks = each.ok() ? *each : 0;
    mine.firstRank = mine.ranks * mine.process;
  }

  launch::JoinOptions options;
  options.onFailure = [](const Status &error) { sayFailure(error); };
  std::vector<launch::Socket> listeners;
  if (byMpi)
    HPC_RETURN_IF_ERROR(exchangeByMpi(launch, *joined->transport, mine, options, listeners));
  if (!mine.status.ok()) { // first, since reporting to the others may take a while
    sayFailure(mine.status.at(mine.text()));
    // If this process has no number, the others often have none either: then no process 0 listens.
    options.timeout = launch.isNobody() ? std::chrono::milliseconds(1000) : options.late;
  }
  Expected<launch::Joined> all = join(launch, options, listeners, mine);
  if (!all.ok())
    return all.status();
  launch::ControlOptions control;
  control.peerTimeout = std::chrono::milliseconds(int64_t(std::ceil(flags.peerTimeout * 1000)));
  control.stallTimeout = std::chrono::milliseconds(int64_t(std::ceil(flags.stallTimeout * 1000)));
  control.tell = [](const std::string &text) { printNote(text); };
  control.abandon = [](const Status &error) { endWith(error.at("on host " + launch::hostName())); };
  joined->control = std::make_unique<launch::Control>(joined->process, std::move(*all), std::move(control));
  return joined;
}

/// This process's part of it.
static Status prepareEngine(processes::Processes &processes, Introduction &mine, bool needsEngine) {
  if (!processes.transport && needsEngine) {
    const std::vector<Introduction> &all = processes.control->introductions();
    const int64_t here = std::count_if(all.begin(), all.end(),
                                       [&](const Introduction &one) { return one.machine == mine.machine; });
    Expected<std::unique_ptr<processes::Transport>> transport = processes::openTransport("ucx", here);
    if (!transport.ok())
      return transport.status();
    processes.transport = std::move(*transport);
  }
  mine.engine = processes.transport ? processes.transport->address() : "";
  return Status::success();
}

Status introduce(processes::Processes &processes, const Prepared &prepared, bool needsEngine) {
  Introduction mine = processes.control->mine();
  mine.fingerprints = prepared.fingerprints;
  Status status = prepared.status.ok() ? prepareEngine(processes, mine, needsEngine) : prepared.status;
  status = status.ok() ? processes.control->introduce(mine) : status.at(mine.text());
  if (status.ok() && processes.transport) {
    std::vector<processes::Peer> peers;
    for (const Introduction &one : processes.control->introductions())
      peers.push_back({one.engine, one.machine == mine.machine});
    status = processes.transport->connect(processes.process, peers);
  }
  if (!status.ok()) // wakes processes that wait for this one's introduction
    processes.control->fail(status);
  return status;
}

Status leaveTogether(processes::Processes &processes, const Status &mine) {
  Status verdict = processes.control->agree(mine, [&] {
    if (processes.transport)
      processes.transport->progress();
  });
  if (!verdict.ok())
    return verdict;
  processes.control.reset(); // from here on no process is missed
  if (processes.transport)
    processes.transport->close();
  return Status::success();
}

int sayFailure(const Status &error) {
  static std::mutex mutex; // the thread that runs and the one that listens to the others may both find out
  static int code = 0;
  std::lock_guard<std::mutex> lock(mutex);
  if (code == 0)
    code = reportError(toolName(), error);
  return code;
}

void endWith(const Status &error) {
  const int code = sayFailure(error);
  std::fflush(nullptr);
  // A launcher kills the others as soon as one has gone: lets them print their reasons too.
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  std::_Exit(code);
}

} // namespace hpc
