// Two entries of the store: where process 0 is (meeting, network, endpoints; empty when the meeting is over), and why
// one cannot come (meeting, its number, error).
#include "runtime/launch/AgentMeeting.h"

#include "runtime/launch/Secret.h"

#include <utility>

namespace hpc::launch {

AgentMeeting::AgentMeeting(const Launch &launch, std::string secret)
    : store{launch.host, launch.port}, key("hpc-run/" + launch.runId + "/"), secret(std::move(secret)),
      oneMachine(launch.oneMachine) {}

/// Listens on the loopback for its own machine; if others may be elsewhere, with a secret, at the address that they
/// know, or else at all addresses of this machine.
Status AgentMeeting::listen(std::vector<Socket> &listeners) {
  auto add = [&](const std::string &host) {
    Expected<Socket> listener = listenOn(host, 0);
    if (!listener.ok())
      return listener.status();
    place.endpoints.push_back({host, portOf(*listener)});
    listeners.push_back(std::move(*listener));
    return Status::success();
  };
  HPC_RETURN_IF_ERROR(add("127.0.0.1"));
  if (oneMachine || secret.empty())
    return Status::success();
  Expected<bool> isHere = isLoopback(store.host);
  if (!isHere.ok())
    return isHere.status();
  if (*isHere || add(store.host).ok())
    return Status::success();
  for (const std::string &address : ownAddresses())
    HPC_RETURN_IF_ERROR(add(address));
  return Status::success();
}

Status AgentMeeting::open(JoinOptions &options, std::vector<Socket> &listeners) {
  Expected<std::string> nonce = makeNonce();
  if (!nonce.ok())
    return nonce.status();
  place.meeting = nonce->substr(0, meetingBytes);
  HPC_RETURN_IF_ERROR(listen(listeners));
  WireWriter writer;
  writer.text(place.meeting);
  writer.text(networkName());
  writer.number(place.endpoints.size());
  for (const Endpoint &endpoint : place.endpoints) {
    writer.text(endpoint.host);
    writer.number(endpoint.port);
  }
  Expected<AgentStore> agent = AgentStore::open(store, Clock::now() + options.timeout);
  if (!agent.ok())
    return agent.status();
  opened.emplace(std::move(*agent));
  options.place = place;
  options.listenElsewhere = [this](int64_t &process) { return listenElsewhere(process); };
  return opened->set(key + "place", writer.content);
}

void AgentMeeting::close() {
  if (opened)
    (void)opened->set(key + "place", ""); // without the agent nobody looks there
  opened.reset();
}

Status AgentMeeting::listenElsewhere(int64_t &process) {
  Expected<std::optional<std::string>> refusal = opened->get(key + "refusal");
  if (!refusal.ok())
    return refusal.status();
  if (!*refusal)
    return Status::success();
  WireReader reader(**refusal);
  if (reader.text() != place.meeting)
    return Status::success();
  process = int64_t(reader.number());
  return reader.status();
}

void AgentMeeting::attend(JoinOptions &options) {
  options.find = [this](Clock::time_point end) { return find(end); };
}

Expected<Place> AgentMeeting::find(Clock::time_point end) {
  Expected<AgentStore> agent = AgentStore::open(store, end);
  if (!agent.ok())
    return agent.status();
  Expected<std::string> told = agent->await(key + "place", end);
  if (!told.ok())
    return Clock::now() < end ? told.status()
                              : Status::error(ErrorKind::Io, "process 0 has not said in the store of torchrun's agent "
                                                             "at " + store.host + ":" + std::to_string(store.port) +
                                                                 " where it is: is it running?");
  if (told->empty())
    return Place();
  WireReader reader(*told);
  Place found;
  found.meeting = reader.text();
  const bool isNear = reader.text() == networkName();
  for (uint64_t left = reader.number(); left > 0 && reader.ok(); --left) {
    Endpoint endpoint;
    endpoint.host = reader.text();
    endpoint.port = uint16_t(reader.number());
    Expected<bool> isHere = isLoopback(endpoint.host);
    if (isHere.ok() && *isHere == isNear && (isNear || !secret.empty()))
      found.endpoints.push_back(endpoint);
  }
  place = found;
  if (!reader.ok() || (found.endpoints.empty() && !secret.empty()))
    return Status::error(ErrorKind::Usage, "process 0 is on another machine, and listens at no address that is reached "
                                           "from this one; give torchrun a --master-addr or --local-addr that is, "
                                           "and all processes the same HPC_SECRET");
  if (found.endpoints.empty())
    return Status::error(ErrorKind::Usage, "process 0 is on another machine, which accepts no connection without a "
                                           "secret; set HPC_SECRET to the same secret in all processes, for example "
                                           "of `openssl rand -hex 32`");
  return found;
}

void AgentMeeting::refuse(const Status &why, const Introduction &mine) {
  if (place.meeting.empty() || why.ok())
    return;
  Expected<AgentStore> agent = AgentStore::open(store, Clock::now() + std::chrono::seconds(2));
  WireWriter writer;
  writer.text(place.meeting);
  writer.number(uint64_t(mine.process));
  writer.status(why.at(mine.text()));
  if (agent.ok())
    (void)agent->set(key + "refusal", writer.content);
}

} // namespace hpc::launch
