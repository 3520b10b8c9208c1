// A rank's talk with ranks of the same process, on one GPU or on several that reach each other: copies and reductions
// that read the others' memory. One stream for each group and one for messages, tied to computation by events.
#pragma once

#include "runtime/backend/cuda/CudaDevice.h"
#include "runtime/backend/cuda/Peers.h"

namespace hpc::cuda {

class PeerCommunicator : public Communicator {
public:
  static Expected<std::unique_ptr<PeerCommunicator>> create(std::shared_ptr<PeerWorld> peers, CudaDevice &device,
                                                            ReduceKernels &reductions, const RankPlace &place,
                                                            int64_t requests);

  Expected<int64_t> prepare(const plan::Collective &collective) override;
  Status collective(const plan::Collective &collective, int64_t group, const std::byte *source, std::byte *target,
                    int64_t sourcePosition) override;
  Status post(const plan::Collective &collective, int64_t group, const std::byte *source, std::byte *target,
              int64_t sourcePosition, int64_t request) override;
  Status send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) override;
  Status receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) override;
  Status wait(int64_t request) override;
  int64_t scratchBytes() const override { return copiesBytes; }

private:
  /// The result of prepare(); its index is the `group` of collective().
  struct Prepared {
    host::Seat seat;
    KernelObject kernel = nullptr; ///< reductions only
    StreamHandle stream = nullptr;
  };
  /// A request's objects on the GPU.
  struct Slot {
    Event ready, shared, done;
    DeviceMemory copy; ///< of a source that its target overlaps
    int64_t copyBytes = 0;
    bool posted = false;
  };

  PeerCommunicator(std::shared_ptr<PeerWorld> peers, CudaDevice &device, ReduceKernels &reductions,
                   const RankPlace &place, int64_t requests)
      : peers(std::move(peers)), device(device), driver(device.gpu().driver()), reductions(reductions), place(place),
        own(requests), hostRequests(this->peers->world().makeRequests(place.rank, requests + 1)) {}
  /// A party that is ready when all work enqueued so far is done.
  Expected<Party> arrive(int64_t request, StreamHandle stream);
  Status copySource(int64_t request, const std::byte *&source, int64_t bytes);
  Status exchange(const plan::Collective &collective, KernelObject kernel, const std::vector<Party> &parties);
  Status share(const plan::Collective &collective, KernelObject kernel, const std::vector<Party> &parties, int64_t me);
  Status transfer(const Party &sender, const Party &receiver);
  Status follow(StreamHandle stream, EventHandle event) const;
  Status record(EventHandle event, StreamHandle stream) const;

  const std::shared_ptr<PeerWorld> peers;
  CudaDevice &device;
  const Driver &driver;
  ReduceKernels &reductions;
  const RankPlace place;
  const int64_t own; ///< the request of collectives that are waited for at once
  const std::vector<std::unique_ptr<host::Request>> &hostRequests;
  std::vector<Slot> slots;                            ///< by request
  std::map<std::vector<std::string>, Stream> streams; ///< by the axes of a group
  Stream messages;
  std::vector<Prepared> prepared;
  int64_t copiesBytes = 0;
};

} // namespace hpc::cuda
