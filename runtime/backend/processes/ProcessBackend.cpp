// Passes everything on to the host's backend except communication between processes.
#include "runtime/backend/processes/ProcessBackend.h"

#include "runtime/backend/host/HostBackend.h"
#include "runtime/backend/processes/ProcessCommunicator.h"

namespace hpc::processes {

namespace {

class ProcessBackend : public Backend {
public:
  ProcessBackend(Processes &processes, bool inRankOrder, bool mayUseTiles)
      : processes(processes), inRankOrder(inRankOrder), mayUseTiles(mayUseTiles) {}

  Status load(const plan::Plan &plan, RankRange ranks, int64_t threads) override {
    world.emplace(plan, processes, ranks.count, threads, inRankOrder);
    host = host::createHostBackend(std::shared_ptr<host::World>(&world->local(), [](host::World *) {}), mayUseTiles);
    HPC_RETURN_IF_ERROR(world->check());
    return host->load(plan, ranks, threads);
  }
  Expected<KernelHandle> kernel(const std::string &symbol) const override { return host->kernel(symbol); }
  bool hasCoreForEach() const override { return host->hasCoreForEach(); }
  Expected<std::unique_ptr<Device>> createDevice(const RankPlace &place, ThreadPool &threads) override {
    return host->createDevice(place, threads);
  }
  Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place, int64_t requests) override {
    return std::unique_ptr<Communicator>(std::make_unique<ProcessCommunicator>(*world, place, requests));
  }
  void fail(const Status &error) override {
    if (world)
      world->fail(error);
  }
  Status agree(const Status &mine, bool *answer) override { return world ? world->agree(mine, answer) : mine; }
  void watch(const RankWatch *ranks) override { processes.control->watch(ranks); }
  Expected<std::vector<std::string>> exchange(const std::string &mine) override { return processes.control->exchange(mine); }

private:
  Processes &processes;
  const bool inRankOrder, mayUseTiles;
  std::optional<ProcessWorld> world; ///< outlives `host`, which leaves it
  std::unique_ptr<Backend> host;
};

} // namespace

std::unique_ptr<Backend> createProcessBackend(Processes &processes, bool inRankOrder, bool mayUseTiles) {
  return std::make_unique<ProcessBackend>(processes, inRankOrder, mayUseTiles);
}

} // namespace hpc::processes
