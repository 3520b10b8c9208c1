// A rank's communication with ranks on other cards, of this process or others: NCCL, with a stream for each
// communicator, ordered with computation by events. No call and no wait of the host blocks: each checks whether a rank
// has failed, and then aborts the communicators, which also ends the GPU's waits.
#pragma once

#include "runtime/backend/cuda/CudaDevice.h"
#include "runtime/backend/cuda/NcclWorld.h"

namespace hpc::cuda {

class NcclCommunicator : public Communicator, public Watch {
public:
  /// `inRankOrder`: reductions give the bits that the host's do. Waits for all ranks of the plan that this one talks
  /// to.
  static Expected<std::unique_ptr<NcclCommunicator>> create(const Nccl &nccl, const NcclWorld &world,
                                                            ControlPlane &plane, const plan::Plan &plan,
                                                            CudaDevice &device, ReduceKernels &reductions,
                                                            const RankPlace &place, int64_t requests, bool inRankOrder);
  ~NcclCommunicator() override;

  Expected<int64_t> prepare(const plan::Collective &collective) override;
  Status collective(const plan::Collective &collective, int64_t index, const std::byte *source, std::byte *target,
                    int64_t sourcePosition) override;
  Status post(const plan::Collective &collective, int64_t index, const std::byte *source, std::byte *target,
              int64_t sourcePosition, int64_t request) override;
  Status send(int64_t peer, int32_t channel, const std::byte *source, int64_t bytes, int64_t request) override;
  Status receive(int64_t peer, int32_t channel, std::byte *target, int64_t bytes, int64_t request) override;
  Status wait(int64_t request) override;
  int64_t scratchBytes() const override { return scratch; }

  /// Joins again where the communicators were renewed.
  Status begin() override;
  Status check() override;
  /// Aborts all communicators; their enqueued work ends. Another thread may call it while the rank's own is idle.
  void abort();

private:
  struct Connection {
    NcclHandle handle = nullptr; ///< null: not a member, or given up
    int64_t position = 0, size = 0;
    Stream stream;
    DeviceMemory memory; ///< of its collectives beside their buffers; shared, as they run one after the other
    int64_t bytes = 0;
  };
  /// The result of prepare(); its index is the `group` of collective().
  struct Prepared {
    Connection *connection = nullptr; ///< null: a group of one
    int type = 0;                     ///< NCCL's; reductions only
    KernelObject kernel = nullptr;    ///< our own reduction of gathered values, else null
  };
  struct Slot {
    Event ready, done;
    bool posted = false;
  };

  NcclCommunicator(const Nccl &nccl, const NcclWorld &world, ControlPlane &plane, const plan::Plan &plan,
                   CudaDevice &device, ReduceKernels &reductions, const RankPlace &place, int64_t requests,
                   bool inRankOrder)
      : nccl(nccl), world(world), plane(plane), plan(plan), device(device), driver(device.gpu().driver()),
        reductions(reductions), place(place), own(requests), inRankOrder(inRankOrder) {}
  Status connect();
  Status settle(Connection &connection, NcclResult result, const std::string &what);
  bool isOurs(const plan::Collective &collective) const;
  int64_t memoryFor(const plan::Collective &collective) const;
  Status makeSlots();
  Status start(Connection &connection, int64_t request, const std::function<Status()> &call);
  Status move(const plan::Collective &collective, const Prepared &entry, const std::byte *source, std::byte *target,
              int64_t sourcePosition, std::byte *memory);
  Status reduce(const plan::Collective &collective, const Prepared &entry, const std::byte *source, std::byte *target,
                std::byte *memory);
  Status gather(Connection &connection, const std::byte *source, std::byte *target, int64_t bytes);
  Status exchange(Connection &connection, int64_t bytes, const std::function<const std::byte *(int64_t)> &toPeer,
                  const std::function<std::byte *(int64_t)> &fromPeer);
  Status copy(Connection &connection, std::byte *target, const std::byte *source, int64_t bytes);
  Status message(int64_t sender, int64_t receiver, int32_t channel, std::byte *address, int64_t bytes, int64_t request);

  const Nccl &nccl;
  const NcclWorld &world;
  ControlPlane &plane;
  const plan::Plan &plan;
  CudaDevice &device;
  const Driver &driver;
  ReduceKernels &reductions;
  const RankPlace place;
  const int64_t own; ///< the request of collectives that are waited for at once
  const bool inRankOrder;
  uint64_t generation = 0;
  std::vector<Connection> connections; ///< by number in the world
  std::vector<Slot> slots;             ///< by request
  std::vector<Prepared> prepared;
  int64_t scratch = 0;
};

} // namespace hpc::cuda
