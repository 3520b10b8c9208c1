// Loads the plan's code, makes the objects that ranks share, and creates devices and communicators.
#include "runtime/backend/host/HostBackend.h"

#include "runtime/backend/host/Code.h"
#include "runtime/backend/host/HostCommunicator.h"
#include "runtime/backend/host/HostDevice.h"
#include "runtime/base/Cores.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CodeModules.h"

#include <map>
#include <unistd.h>

namespace hpc::host {

namespace {

/// Refuses ranks whose arenas pass this machine's memory; the kernel would otherwise end the process in the middle.
Status checkMemory(const plan::Plan &plan, RankRange ranks) {
  double needed = 0, present = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
  for (int64_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    const plan::Stage &stage = plan.stages[size_t(rank / plan.ranksPerStage())];
    needed += double(stage.sessionBytes) + double(stage.workBytes) + double(stage.hostBytes);
  }
  if (needed <= present)
    return Status::success();
  auto gib = [](double bytes) { return std::to_string(int64_t(bytes / (1 << 30)) + 1) + " GiB"; };
  return Status::error(ErrorKind::Capacity, std::to_string(ranks.count) + " of the plan's " +
                                                countText(plan.worldSize(), "rank") + " would take " + gib(needed) +
                                                " of memory, this machine has " + gib(present) +
                                                "; compile for a smaller batch, or use more micro-batches");
}

class HostBackend : public Backend {
public:
  HostBackend(std::shared_ptr<World> given, bool mayUseTiles) : world(std::move(given)), mayUseTiles(mayUseTiles) {}
  ~HostBackend() override {
    if (joined)
      world->leave(ranks);
  }
  Status load(const plan::Plan &plan, RankRange own, int64_t threads) override {
    if (!world)
      world = std::make_shared<World>(plan, own.count * threads <= availableCores());
    ranks = own;
    HPC_RETURN_IF_ERROR(world->join(ranks));
    joined = true;
    HPC_RETURN_IF_ERROR(checkMemory(plan, ranks));
    Expected<std::vector<const plan::CodeModule *>> modules = plan::codeToRun(plan, "x86-64", "--target=host or host,cuda");
    HPC_RETURN_IF_ERROR(modules.status());
    for (const plan::CodeModule *module : *modules) {
      HPC_RETURN_IF_ERROR(checkCpuFeatures(module->features));
      Expected<Code> loaded = Code::load(module->bytes);
      if (!loaded.ok())
        return loaded.status();
      code.push_back(std::move(*loaded));
      for (const std::string &symbol : module->symbols)
        homes[symbol] = code.size() - 1;
    }
    return Status::success();
  }
  Expected<KernelHandle> kernel(const std::string &symbol) const override {
    auto home = homes.find(symbol);
    Expected<KernelFunction> function = home == homes.end() ? Code().find(symbol) : code[home->second].find(symbol);
    if (!function.ok())
      return function.status();
    return reinterpret_cast<KernelHandle>(*function);
  }
  bool hasCoreForEach() const override { return world && world->spins(); }
  Expected<std::unique_ptr<Device>> createDevice(const RankPlace &, ThreadPool &threads) override {
    return std::unique_ptr<Device>(std::make_unique<HostDevice>(threads, mayUseTiles));
  }
  Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place, int64_t requests) override {
    return std::unique_ptr<Communicator>(std::make_unique<HostCommunicator>(*world, place, requests));
  }
  void fail(const Status &error) override {
    if (joined)
      world->fail(error);
  }
  Status agree(const Status &mine, bool *answer) override { return joined ? world->agree(ranks, mine, answer) : mine; }

private:
  std::vector<Code> code;
  std::map<std::string, size_t> homes; ///< by kernel: the number of its code
  std::shared_ptr<World> world;
  const bool mayUseTiles;
  RankRange ranks;
  bool joined = false;
};

} // namespace

std::unique_ptr<Backend> createHostBackend(std::shared_ptr<World> world, bool mayUseTiles) {
  return std::make_unique<HostBackend>(std::move(world), mayUseTiles);
}

} // namespace hpc::host
