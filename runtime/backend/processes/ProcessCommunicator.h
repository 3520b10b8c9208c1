// Collectives and messages of one rank whose world has several processes: with ranks of its own process as threads do,
// with the others through the engine.
#pragma once

#include "runtime/backend/host/HostCommunicator.h"
#include "runtime/backend/processes/ProcessWorld.h"

namespace hpc::processes {

class ProcessCommunicator : public Communicator {
public:
  ProcessCommunicator(ProcessWorld &world, const RankPlace &place, int64_t requests);

  Expected<int64_t> prepare(const plan::Collective &collective) override;
  Status collective(const plan::Collective &collective, int64_t index, const std::byte *source, std::byte *target,
                    int64_t sourcePosition) override;
  Status post(const plan::Collective &collective, int64_t index, const std::byte *source, std::byte *target,
              int64_t sourcePosition, int64_t request) override;
  Status send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) override;
  Status receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) override;
  Status wait(int64_t request) override;
  void progress() override { world.progressPosted(); }
  int64_t scratchBytes() const override;

private:
  /// By collective, as prepare() met them.
  struct Prepared {
    ProcessGroup *group = nullptr; ///< null: all members are here
    int64_t position = 0;
    host::Reduction reduction;
  };
  bool isElsewhere(int64_t rank) const { return world.processOf(rank) != world.processOf(place.rank); }
  Status begin(Expected<std::unique_ptr<Transfer>> transfer, int64_t request);

  ProcessWorld &world;
  const RankPlace place;
  host::HostCommunicator here;
  const std::vector<std::unique_ptr<host::Request>> &requests;
  const int64_t own; ///< the request of collectives that are not posted
  std::vector<Prepared> prepared;
  std::vector<std::unique_ptr<Transfer>> &transfers; ///< by request: a message to or from another process
  std::vector<bool> isOfGroup;                       ///< by request: its last post is a collective with others
};

} // namespace hpc::processes
