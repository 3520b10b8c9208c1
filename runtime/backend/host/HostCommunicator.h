// Collectives and messages between ranks that are threads of one process: each reads the others' memory directly.
#pragma once

#include "runtime/backend/host/Reduce.h"
#include "runtime/backend/host/World.h"

namespace hpc::host {

class HostCommunicator : public Communicator {
public:
  HostCommunicator(World &world, const RankPlace &place) : world(world), place(place) {}

  Expected<int64_t> prepare(const plan::Collective &collective) override;
  Status collective(const plan::Collective &collective, int64_t group, const std::byte *source, std::byte *target,
                    int64_t sourcePosition) override;
  Status send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) override;
  Status receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) override;
  Status wait(int64_t request) override { return world.request(place.rank, request).wait(); }
  int64_t scratchBytes() const override { return int64_t(scratch.size()); }

private:
  /// What prepare() found out; its index is what collective() gets as `group`.
  struct Prepared {
    Seat seat;
    Accumulate accumulate; ///< reductions only
  };
  void exchange(const plan::Collective &collective, const Prepared &prepared, std::byte *target,
                int64_t sourcePosition) const;

  World &world;
  const RankPlace place;
  std::vector<Prepared> prepared;
  std::vector<std::byte> scratch; ///< the source, where the target takes its place
};

} // namespace hpc::host
