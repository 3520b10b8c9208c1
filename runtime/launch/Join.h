// How the processes of a run find each other: all come to process 0, prove that they know the secret, and introduce
// themselves. What a stranger sends, and how slowly, changes nothing but the count in the message if somebody is
// missed.
#pragma once

#include "runtime/launch/Introduction.h"
#include "runtime/launch/Socket.h"

namespace hpc::launch {

struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

struct JoinOptions {
  std::vector<Endpoint> endpoints; ///< where process 0 listens; the others try one after the other
  std::string secret;              ///< empty: loopback only
  std::chrono::milliseconds timeout{60000};
};

/// What a process has after joining: a connection to every other (process 0), or one to process 0.
struct Joined {
  std::vector<Introduction> introductions; ///< by process
  std::vector<Socket> connections;         ///< by process; closed for itself and, but in process 0, for all but 0
  std::vector<std::string> received;       ///< by process: what came behind the last frame that was read
};

/// Refuses a secret that is too short, and addresses that strangers reach where there is none.
Status checkEndpoints(const JoinOptions &options);
/// Process 0, with what listenOn() gave for each endpoint. All get the same status, that of compare().
Expected<Joined> receiveAll(const JoinOptions &options, const std::vector<Socket> &listeners, const Introduction &mine);
/// Any other process.
Expected<Joined> comeTo(const JoinOptions &options, const Introduction &mine);

} // namespace hpc::launch
