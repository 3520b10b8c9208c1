// Finds driver and GPUs, loads the plan's code, and hands out devices and communicators.
#include "runtime/backend/cuda/CudaBackend.h"

#include "runtime/backend/cuda/PeerCommunicator.h"

#include <algorithm>
#include <atomic>

namespace hpc::cuda {

namespace {

bool hasProducts(const plan::Plan &plan) {
  for (const plan::Stage &stage : plan.stages)
    for (const plan::Program &program : stage.programs)
      for (const plan::Instruction &instruction : program.instructions)
        if (std::holds_alternative<plan::Gemm>(instruction.action))
          return true;
  return false;
}

class CudaBackend : public Backend {
public:
  CudaBackend(const CudaOptions &options, std::shared_ptr<PeerWorld> given)
      : options(options), peers(std::move(given)) {}
  ~CudaBackend() override {
    if (joined)
      peers->world().leave(ranks);
  }

  Status load(const plan::Plan &plan, RankRange own) override {
    if (!peers)
      peers = std::make_shared<PeerWorld>(plan);
    ranks = own;
    HPC_RETURN_IF_ERROR(peers->world().join(ranks));
    joined = true;
    Expected<Driver> found = loadDriver(options.libraryFolder);
    if (!found.ok())
      return found.status();
    driver = *found;
    HPC_RETURN_IF_ERROR(openGpus());
    if (hasProducts(plan)) {
      Expected<CublasLt> library = loadCublasLt(options.libraryFolder);
      if (!library.ok())
        return library.status();
      blas = *library;
    }
    reductions = std::make_unique<ReduceKernels>(driver);
    devices.resize(size_t(ranks.count));
    return loadModule(plan);
  }

  Expected<KernelHandle> kernel(const std::string &symbol) const override {
    if (!code)
      return Status::error(ErrorKind::Plan, "kernel '" + symbol + "' is called, and the plan has no code");
    Expected<KernelObject> found = findKernel(driver, code, symbol);
    if (!found.ok())
      return Status::error(ErrorKind::Plan, found.status().message());
    return KernelHandle(*found);
  }

  Expected<std::unique_ptr<Device>> createDevice(const RankPlace &place) override {
    const size_t local = size_t(place.rank - ranks.first);
    Expected<std::unique_ptr<CudaDevice>> device =
        CudaDevice::create(*gpus[local / size_t(options.ranksPerGpu)], blas ? &*blas : nullptr, *reductions, options);
    if (!device.ok())
      return device.status();
    devices[local] = device->get();
    return std::unique_ptr<Device>(std::move(*device));
  }

  Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place, int64_t requests) override {
    Expected<std::unique_ptr<PeerCommunicator>> made =
        PeerCommunicator::create(peers, *devices[size_t(place.rank - ranks.first)], *reductions, place, requests);
    if (!made.ok())
      return made.status();
    return std::unique_ptr<Communicator>(std::move(*made));
  }

  void fail(const Status &error) override {
    failed = true;
    if (joined)
      peers->world().fail(error);
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      gpu->forgive();
  }

  Status agree(const Status &mine) override {
    // What a failed run has enqueued must not write into the next one.
    if (failed || !mine.ok())
      for (const std::unique_ptr<Gpu> &gpu : gpus)
        if (Status drained = gpu->drain(); !drained.ok() && joined)
          peers->world().fail(drained);
    failed = false;
    return joined ? peers->world().agree(ranks, mine) : mine;
  }

private:
  Status openGpus() {
    int present = 0;
    HPC_RETURN_IF_ERROR(check(driver, driver.deviceCount(&present), "counting GPUs"));
    const int64_t perGpu = options.ranksPerGpu, needed = (ranks.count + perGpu - 1) / perGpu;
    if (needed > present)
      return Status::error(ErrorKind::Usage,
                           std::to_string(ranks.count) + " ranks, " + std::to_string(perGpu) + " on each GPU, need " +
                               std::to_string(needed) + " GPUs, this machine has " + std::to_string(present) +
                               (present > 0
                                    ? "; use --ranks-per-gpu=" + std::to_string((ranks.count + present - 1) / present)
                                    : std::string("; use --backend=host")));
    for (int64_t i = 0; i < needed; ++i) {
      Expected<std::unique_ptr<Gpu>> gpu = Gpu::open(driver, int(i));
      if (!gpu.ok())
        return gpu.status();
      gpus.push_back(std::move(*gpu));
    }
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      for (const std::unique_ptr<Gpu> &other : gpus)
        if (gpu != other)
          HPC_RETURN_IF_ERROR(gpu->reach(*other));
    return gpus[0]->enter();
  }

  Status loadModule(const plan::Plan &plan) {
    auto module = std::find_if(plan.modules.begin(), plan.modules.end(),
                               [](const plan::CodeModule &one) { return one.target == "ptx"; });
    if (module == plan.modules.end())
      return plan.modules.empty()
                 ? Status::success()
                 : Status::error(ErrorKind::Unsupported, "the plan has code for '" + plan.modules[0].target +
                                                             "' only, and this backend runs ptx; compile the model "
                                                             "again with --target=cuda");
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      if (gpu->capability() < module->capability)
        return Status::error(ErrorKind::Unsupported,
                             gpu->name() + " has compute capability " + std::to_string(gpu->capability()) +
                                 ", the plan's code needs " + std::to_string(module->capability));
    Expected<CodeLibrary> loaded = loadCode(driver, module->bytes);
    if (!loaded.ok())
      return loaded.status();
    code = std::move(*loaded);
    return Status::success();
  }

  const CudaOptions options;
  std::shared_ptr<PeerWorld> peers;
  RankRange ranks;
  bool joined = false;
  std::atomic<bool> failed{false};
  // What follows is used by what stands below it, and goes in the reverse order.
  Driver driver;
  std::optional<CublasLt> blas;
  std::vector<std::unique_ptr<Gpu>> gpus;
  CodeLibrary code;
  std::unique_ptr<ReduceKernels> reductions;
  std::vector<CudaDevice *> devices; ///< by rank of this process; owned by the session
};

} // namespace

std::unique_ptr<Backend> createCudaBackend(const CudaOptions &options, std::shared_ptr<PeerWorld> world) {
  return std::make_unique<CudaBackend>(options, std::move(world));
}

} // namespace hpc::cuda
