// A client of torch's TCPStore, which a torchrun agent serves at MASTER_ADDR:MASTER_PORT for its workers: only the
// queries of a rendezvous. Anyone who can reach the agent can read and write the store, so its content proves nothing.
#pragma once

#include "runtime/launch/Socket.h"

#include <optional>

namespace hpc::launch {

struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

class AgentStore {
public:
  /// The store has to be that of torch 2.4 or later.
  static Expected<AgentStore> open(const Endpoint &place, Clock::time_point end);

  /// Returns when the store has it.
  Status set(const std::string &key, const std::string &value);
  /// None where there is no such key.
  Expected<std::optional<std::string>> get(const std::string &key);
  /// Waits for the key; an error if it does not appear in time, after which this connection cannot be used.
  Expected<std::string> await(const std::string &key, Clock::time_point end);

private:
  AgentStore(Endpoint place, Socket socket) : place(std::move(place)), socket(std::move(socket)) {}
  Status send(std::string request);
  Expected<std::string> receive(size_t bytes, Clock::time_point end);
  Expected<std::string> value(const std::string &key);
  Status ping();
  Status error(const std::string &what) const;

  Endpoint place;
  Socket socket;
  std::string received;
};

} // namespace hpc::launch
