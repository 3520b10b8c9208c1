// Loads the plan's code, makes what the ranks share, and hands out devices and communicators.
#include "runtime/backend/host/HostBackend.h"

#include "runtime/backend/host/Code.h"
#include "runtime/backend/host/HostCommunicator.h"
#include "runtime/backend/host/HostDevice.h"

#include <optional>
#include <unistd.h>

namespace hpc::host {

namespace {

/// Refuses a plan whose arenas pass this machine's memory; the kernel would otherwise end the process in the middle.
Status checkMemory(const plan::Plan &plan) {
  double needed = 0, present = double(::sysconf(_SC_PHYS_PAGES)) * double(::sysconf(_SC_PAGESIZE));
  for (const plan::Stage &stage : plan.stages)
    needed +=
        (double(stage.weightBytes) + double(stage.stateBytes) + double(stage.workBytes)) * double(plan.ranksPerStage());
  if (needed <= present)
    return Status::success();
  auto gib = [](double bytes) { return std::to_string(int64_t(bytes / (1 << 30)) + 1) + " GiB"; };
  return Status::error(ErrorKind::Capacity, "the plan's " + std::to_string(plan.worldSize()) + " ranks need " +
                                                gib(needed) + " of memory, this machine has " + gib(present) +
                                                "; compile for a smaller batch, or use more micro-batches");
}

class HostBackend : public Backend {
public:
  Status load(const plan::Plan &plan, Rendezvous &rendezvous) override {
    HPC_RETURN_IF_ERROR(checkMemory(plan));
    HPC_RETURN_IF_ERROR(checkCpuFeatures(plan.cpuFeatures));
    Expected<Code> loaded = Code::load(plan.code);
    if (!loaded.ok())
      return loaded.status();
    code = std::move(*loaded);
    world.emplace(plan, rendezvous);
    return Status::success();
  }
  Expected<KernelHandle> kernel(const std::string &symbol) const override {
    Expected<KernelFunction> function = code.find(symbol);
    if (!function.ok())
      return function.status();
    return reinterpret_cast<KernelHandle>(*function);
  }
  Expected<std::unique_ptr<Device>> createDevice(const RankPlace &) override {
    return std::unique_ptr<Device>(std::make_unique<HostDevice>());
  }
  Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place) override {
    return std::unique_ptr<Communicator>(std::make_unique<HostCommunicator>(*world, place));
  }
  void reset() override { world->reset(); }

private:
  Code code;
  std::optional<World> world;
};

} // namespace

std::unique_ptr<Backend> createHostBackend() { return std::make_unique<HostBackend>(); }

} // namespace hpc::host
