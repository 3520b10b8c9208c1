// By MPI: the engine knows everybody, and carries a fresh secret and the address of process 0. By the environment: all
// know the address and the secret beforehand, and the rendezvous carries the engine's addresses.
#include "tools/hpc-run/Processes.h"

#include "runtime/launch/Secret.h"
#include "tools/Arguments.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>

namespace hpc {

namespace {

using launch::Introduction;
using launch::WireReader;
using launch::WireWriter;

/// Where process 0 listens: on one machine the loopback, else where it was told to, else all its addresses.
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
  for (launch::Endpoint &endpoint : options.endpoints) {
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

/// Process 0's endpoints and secret go to all by the engine, which nobody else hears.
Status exchangeByMpi(const launch::Launch &launch, processes::Transport &transport, const Introduction &mine,
                     launch::JoinOptions &options, std::vector<launch::Socket> &listeners) {
  Expected<std::vector<std::string>> networks = transport.gather(launch::networkName());
  if (!networks.ok())
    return networks.status();
  const bool sameNetwork = std::all_of(networks->begin(), networks->end(),
                                       [&](const std::string &network) { return network == (*networks)[0]; });
  WireWriter writer;
  if (mine.process == 0) {
    options.endpoints = endpointsOfMpi(launch, sameNetwork);
    Expected<std::string> secret = launch::makeNonce();
    Status status = secret.ok() ? listen(options, listeners) : secret.status();
    writer.status(status);
    writer.text(secret.ok() ? *secret : "");
    writer.number(options.endpoints.size());
    for (const launch::Endpoint &endpoint : options.endpoints) {
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
  options.endpoints.clear();
  for (uint64_t left = reader.number(); left > 0 && reader.ok(); --left) {
    launch::Endpoint &endpoint = options.endpoints.emplace_back();
    endpoint.host = reader.text();
    endpoint.port = uint16_t(reader.number());
  }
  return Status::success();
}

} // namespace

Expected<std::unique_ptr<processes::Processes>> joinProcesses(const launch::Launch &launch, const ProcessFlags &flags,
                                                              const Prepared &prepared, bool needsEngine) {
  const bool byMpi = launch.kind == launch::LaunchKind::Mpi;
  auto joined = std::make_unique<processes::Processes>();
  if (byMpi || needsEngine) {
    Expected<std::unique_ptr<processes::Transport>> transport = processes::openTransport(byMpi ? "mpi" : "ucx");
    if (!transport.ok())
      return transport.status();
    joined->transport = std::move(*transport);
  }
  joined->process = byMpi ? joined->transport->process() : launch.process;
  joined->count = byMpi ? joined->transport->processes() : launch.processes;

  Introduction mine = launch::introduceSelf(joined->process, joined->count);
  mine.engine = joined->transport ? joined->transport->address() : "";
  mine.fingerprints = prepared.fingerprints;
  mine.status = prepared.status;
  if (mine.status.ok()) {
    Expected<int64_t> each = launch::ranksPerProcess(prepared.worldSize, joined->count);
    mine.status = each.status();
    mine.ranks = each.ok() ? *each : 0;
    mine.firstRank = mine.ranks * mine.process;
  }

  launch::JoinOptions options;
  std::vector<launch::Socket> listeners;
  if (byMpi) {
    HPC_RETURN_IF_ERROR(exchangeByMpi(launch, *joined->transport, mine, options, listeners));
  } else {
    const char *secret = std::getenv("HPC_SECRET");
    options.secret = secret ? secret : "";
    options.endpoints = {{launch.host, launch.port}};
    HPC_RETURN_IF_ERROR(launch::checkEndpoints(options));
    if (mine.process == 0)
      HPC_RETURN_IF_ERROR(listen(options, listeners));
  }
  Expected<launch::Joined> all =
      mine.process == 0 ? launch::receiveAll(options, listeners, mine) : launch::comeTo(options, mine);
  if (!all.ok())
    return all.status();
  std::vector<processes::Peer> peers;
  for (const Introduction &one : all->introductions)
    peers.push_back({one.engine, one.machine == mine.machine});
  if (joined->transport)
    HPC_RETURN_IF_ERROR(joined->transport->connect(joined->process, peers));
  launch::ControlOptions control;
  control.peerTimeout = std::chrono::milliseconds(int64_t(std::ceil(flags.peerTimeout * 1000)));
  control.abandon = [](const Status &error) { endWith(error.at("on host " + launch::hostName())); };
  joined->control = std::make_unique<launch::Control>(joined->process, std::move(*all), std::move(control));
  return joined;
}

Status leaveTogether(processes::Processes &processes, const Status &mine) {
  Status verdict = processes.control->agree(mine, [&] {
    if (processes.transport)
      processes.transport->progress();
  });
  if (!verdict.ok())
    return verdict;
  processes.control.reset(); // from here on nobody is missed
  if (processes.transport)
    processes.transport->close();
  return Status::success();
}

void endWith(const Status &error) {
  static std::atomic<bool> isEnding{false};
  while (isEnding.exchange(true)) // another thread is telling the same
    std::this_thread::sleep_for(std::chrono::seconds(1));
  const int code = reportError("hpc-run", error);
  std::fflush(nullptr);
  // A launcher kills the others as soon as one has gone: let them say why, too.
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  std::_Exit(code);
}

} // namespace hpc
