// How the processes of a run find each other: all connect to process 0, prove that they have the secret, and introduce
// themselves. A process that has failed before connects too, and reports its error to all; bytes from strangers, at any
// speed, change nothing but the count in the message if a process is missing.
#pragma once

#include "runtime/launch/AgentStore.h"
#include "runtime/launch/Introduction.h"

#include <functional>

namespace hpc::launch {

constexpr size_t meetingBytes = 16;

/// The addresses at which process 0 listens.
struct Place {
  std::vector<Endpoint> endpoints; ///< the others try one after the other
  /// Tells one meeting from the last one at the same place; no secret. Empty: there is but one.
  std::string meeting;
};

struct JoinOptions {
  Place place;
  /// Replaces `place` for a process that has to look up the place of process 0; called again after each failed attempt.
  std::function<Expected<Place>(Clock::time_point end)> find;
  std::string secret; ///< empty: loopback only
  std::chrono::milliseconds timeout{60000};
  /// How long process 0 reports a failure to late processes, and how soon it greets a connection: both leave all less
  /// than 5 s.
  std::chrono::milliseconds late{3000}, greeting{3000};
  /// Process 0 calls it now and then: whether a process that could not connect has failed elsewhere, and which, or -1.
  /// May be empty.
  std::function<Status(int64_t &process)> listenElsewhere;
  /// Process 0 calls it with the first failure, before it waits for late processes. May be empty.
  std::function<void(const Status &)> onFailure;
};

/// The result of joining: a connection to every other process (process 0), or one to process 0.
struct Joined {
  std::vector<Introduction> introductions; ///< by process
  std::vector<Socket> connections;         ///< by process; closed for itself and, but in process 0, for all but 0
  std::vector<std::string> received;       ///< by process: bytes received after the last frame that was read
};

/// Refuses a secret that is too short, and addresses that strangers can reach without a secret.
Status checkEndpoints(const JoinOptions &options);
/// Process 0, with the results of listenOn() for each endpoint. All get the same status, that of compare(). A failure
/// before all are there is reported at once, and for some time to late processes.
Expected<Joined> receiveAll(const JoinOptions &options, const std::vector<Socket> &listeners, const Introduction &mine);
/// Any other process. One that has failed needs no number (-1).
Expected<Joined> comeTo(const JoinOptions &options, const Introduction &mine);

} // namespace hpc::launch
