// The control plane of a process that has all ranks of the world, alone or in several sessions; it uses host::World.
#pragma once

#include "runtime/backend/cuda/Peers.h"
#include "runtime/core/ControlPlane.h"

namespace hpc::cuda {

class LocalControlPlane : public ControlPlane {
public:
  LocalControlPlane(std::shared_ptr<PeerWorld> peers, RankRange ranks) : peers(std::move(peers)), ranks(ranks) {}
  ~LocalControlPlane() override {
    if (joined)
      peers->world().leave(ranks);
  }

  /// Before all else.
  Status join() {
    HPC_RETURN_IF_ERROR(peers->world().join(ranks));
    joined = true;
    return Status::success();
  }
  int64_t indexOnMachine() const override { return 0; }
  void fail(const Status &error) override { peers->world().fail(error); }
  Status failure() const override { return peers->world().status(); }
  Status lost() const override { return Status::success(); }
  /// Of a session that is alone.
  Expected<std::vector<std::string>> exchange(const std::string &mine) override {
    return std::vector<std::string>{mine};
  }
  Status explain(const Status &error) const override { return failure().ok() ? error : failure(); }
  Status agree(const Status &mine, bool *answer) override {
    return joined ? peers->world().agree(ranks, mine, answer) : mine;
  }

private:
  const std::shared_ptr<PeerWorld> peers;
  const RankRange ranks;
  bool joined = false;
};

} // namespace hpc::cuda
