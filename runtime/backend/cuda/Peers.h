// Meetings at which ranks of one process exchange data on GPUs. No GPU waits for work that has not been enqueued: the
// last to arrive enqueues the work of all, under one lock, so work can run in the order in which it is enqueued, and no
// streams can wait for each other in a cycle.
#pragma once

#include "runtime/backend/cuda/Gpu.h"
#include "runtime/backend/host/World.h"

#include <deque>
#include <map>

namespace hpc::cuda {

/// One rank's part in an exchange. Its events are used again only when its request has been waited for.
struct Party {
  const Gpu *gpu = nullptr;
  StreamHandle stream = nullptr; ///< that its share runs on
  EventHandle ready = nullptr;   ///< recorded: from here on its source is there, and its target free
  EventHandle shared = nullptr;  ///< to be recorded when its own share is done
  EventHandle done = nullptr;    ///< to be recorded when all shares are done
  const std::byte *source = nullptr;
  std::byte *target = nullptr;
  int64_t sourcePosition = 0; ///< permute: the member that it takes from
  int64_t bytes = 0;          ///< of a message
  host::Request *request = nullptr;
};

/// The i-th arrivals of all members belong together.
class Meetings {
public:
  explicit Meetings(int64_t members) : next(size_t(members), 0) {}
  /// All parties by position if this one was the last to come, else none.
  std::vector<Party> arrive(int64_t position, const Party &party);
  void reset();

private:
  struct Meeting {
    std::vector<Party> parties;
    size_t arrived = 0;
  };
  std::deque<Meeting> open; ///< the oldest first
  int64_t finished = 0;     ///< meetings that are no longer in `open`
  std::vector<int64_t> next;
};

/// The meetings of a plan's ranks, beside the host's world, which has the groups and the status of a step.
class PeerWorld {
public:
  explicit PeerWorld(const plan::Plan &plan);

  host::World &world() { return hostWorld; }
  /// Held while meetings are entered and work is enqueued on others' streams.
  std::mutex &enqueueing() { return mutex; }
  /// Those of one collective of a group, by its number among the stage's. The lock must be held.
  Meetings &collective(const host::Group &group, int64_t number);
  /// Those of messages from one rank to another; the sender has position 0. The lock must be held.
  Meetings &transfer(int64_t sender, int64_t receiver, int32_t channel);

private:
  void reset();

  std::mutex mutex;
  std::map<std::pair<const host::Group *, int64_t>, Meetings> collectives;
  std::map<std::tuple<int64_t, int64_t, int32_t>, Meetings> transfers;
  host::World hostWorld;
};

} // namespace hpc::cuda
