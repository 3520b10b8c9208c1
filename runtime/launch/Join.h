// How the processes of a run find each other: all come to process 0, prove that they know the secret, and introduce
// themselves. A process that has failed before comes too, and says so to all; what a stranger sends, and how slowly,
// changes nothing but the count in the message if somebody is missed.
#pragma once

#include "runtime/launch/AgentStore.h"
#include "runtime/launch/Introduction.h"

#include <functional>

namespace hpc::launch {

constexpr size_t meetingBytes = 16;

/// Where process 0 listens.
struct Place {
  std::vector<Endpoint> endpoints; ///< the others try one after the other
  /// Tells one meeting from the last one at the same place; no secret. Empty: there is but one.
  std::string meeting;
};

struct JoinOptions {
  Place place;
  /// In place of `place`, for a process that has to ask where process 0 is; asked again after each attempt that failed.
  std::function<Expected<Place>(Clock::time_point end)> find;
  std::string secret; ///< empty: loopback only
  std::chrono::milliseconds timeout{60000};
  /// How long process 0 tells those who come late what has failed, and how soon it greets whoever comes: both leave all
  /// less than 5 s.
  std::chrono::milliseconds late{3000}, greeting{3000};
  /// Process 0 asks it now and then whether a process that could not come has failed elsewhere, and which, or -1. May be
  /// empty.
  std::function<Status(int64_t &process)> listenElsewhere;
  /// Process 0 calls it with the first failure, before it waits for those who come late. May be empty.
  std::function<void(const Status &)> onFailure;
};

/// What a process has after joining: a connection to every other (process 0), or one to process 0.
struct Joined {
  std::vector<Introduction> introductions; ///< by process
  std::vector<Socket> connections;         ///< by process; closed for itself and, but in process 0, for all but 0
  std::vector<std::string> received;       ///< by process: what came behind the last frame that was read
};

/// Refuses a secret that is too short, and addresses that strangers reach where there is none.
Status checkEndpoints(const JoinOptions &options);
/// Process 0, with what listenOn() gave for each endpoint. All get the same status, that of compare(). A failure before
/// all are there is told at once, and for some time to those who come later.
Expected<Joined> receiveAll(const JoinOptions &options, const std::vector<Socket> &listeners, const Introduction &mine);
/// Any other process. One that has failed needs no number (-1).
Expected<Joined> comeTo(const JoinOptions &options, const Introduction &mine);

} // namespace hpc::launch
