// Collectives and messages between ranks that are threads of one process: each reads the others' memory directly.
#pragma once

#include "runtime/backend/host/World.h"

namespace hpc::host {

class HostCommunicator : public Communicator {
public:
  HostCommunicator(World &world, const RankPlace &place, int64_t requests)
      : world(world), place(place), requests(world.makeRequests(place.rank, requests)) {}

  Expected<int64_t> prepare(const plan::Collective &collective) override;
  Status collective(const plan::Collective &collective, int64_t group, const std::byte *source, std::byte *target,
                    int64_t sourcePosition) override;
  Status post(const plan::Collective &collective, int64_t group, const std::byte *source, std::byte *target,
              int64_t sourcePosition, int64_t request) override;
  Status send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) override;
  Status receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) override;
  Status wait(int64_t request) override { return requests[size_t(request)]->wait(); }
  int64_t scratchBytes() const override { return int64_t(scratch.size()); }

private:
  /// The result of prepare(); its index is the `group` of collective().
  struct Prepared {
    Seat seat;
    Reduction reduction; ///< reductions only
    PostedQueue *queue;  ///< posted collectives only
  };

  World &world;
  const RankPlace place;
  const std::vector<std::unique_ptr<Request>> &requests;
  std::vector<Prepared> prepared;
  std::vector<std::byte> scratch; ///< the source, where the target takes its place
};

} // namespace hpc::host
