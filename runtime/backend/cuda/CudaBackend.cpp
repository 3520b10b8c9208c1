// Finds driver and GPUs, loads the plan's code, and hands out devices and communicators.
#include "runtime/backend/cuda/CudaBackend.h"

#include "runtime/backend/cuda/LocalControlPlane.h"
#include "runtime/backend/cuda/NcclCommunicator.h"
#include "runtime/backend/cuda/PeerCommunicator.h"
#include "runtime/plan/CodeModules.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace hpc::cuda {

namespace {

template <typename... Actions> bool has(const plan::Plan &plan) {
  for (const plan::Stage &stage : plan.stages)
    for (const plan::Program &program : stage.programs)
      for (const plan::Instruction &instruction : program.instructions)
        if ((std::holds_alternative<Actions>(instruction.action) || ...))
          return true;
  return false;
}
bool hasProducts(const plan::Plan &plan) { return has<plan::Gemm>(plan); }
/// Whether cuDNN might take one of its attentions.
bool hasAttentions(const plan::Plan &plan) {
  for (const plan::Stage &stage : plan.stages)
    for (const plan::Program &program : stage.programs)
      for (const plan::Instruction &instruction : program.instructions)
        if (const auto *kernel = std::get_if<plan::Kernel>(&instruction.action);
            kernel && kernel->attention && fitsCudnn(*kernel->attention).ok())
          return true;
  return false;
}
/// Each text once, whichever rank's thread comes first.
CudaOptions sayingOnce(CudaOptions options) {
  if (!options.note)
    return options;
  struct Said {
    std::mutex mutex;
    std::set<std::string> texts;
  };
  options.note = [said = std::make_shared<Said>(), note = std::move(options.note)](const std::string &text) {
    std::lock_guard<std::mutex> lock(said->mutex);
    if (said->texts.insert(text).second)
      note(text);
  };
  return options;
}

bool talks(const plan::Plan &plan) { return has<plan::Collective, plan::Send, plan::Recv>(plan); }

class CudaBackend : public Backend {
public:
  CudaBackend(const CudaOptions &options, std::shared_ptr<PeerWorld> given, std::unique_ptr<ControlPlane> others)
      : options(sayingOnce(options)), isJoined(given), isOneOfMany(others), peers(std::move(given)), plane(std::move(others)) {}

  Status load(const plan::Plan &given, RankRange own, int64_t) override {
    plan = &given;
    ranks = own;
    if (!peers)
      peers = std::make_shared<PeerWorld>(given);
    if (!plane) {
      auto local = std::make_unique<LocalControlPlane>(peers, ranks);
      HPC_RETURN_IF_ERROR(local->join());
      plane = std::move(local);
    }
    return told(start(given));
  }

  Expected<KernelHandle> kernel(const std::string &symbol) const override {
    auto home = homes.find(symbol);
    if (home == homes.end())
      return Status::error(ErrorKind::Plan, "kernel '" + symbol + "' is called, and the plan has no code of it");
    Expected<KernelObject> found = findKernel(driver, code[home->second], symbol);
    if (!found.ok())
      return Status::error(ErrorKind::Plan, found.status().message());
    return KernelHandle(*found);
  }

  Expected<std::unique_ptr<Device>> createDevice(const RankPlace &place, ThreadPool &) override {
    const size_t local = size_t(place.rank - ranks.first);
    Expected<std::unique_ptr<CudaDevice>> device =
        CudaDevice::create(*gpus[local / size_t(options.ranksPerGpu)], blas ? &*blas : nullptr,
                           dnn ? &*dnn : nullptr, *reductions, options);
    if (!device.ok())
      return told(device.status());
    devices[local] = device->get();
    return std::unique_ptr<Device>(std::move(*device));
  }

  Expected<std::unique_ptr<Communicator>> createCommunicator(const RankPlace &place, int64_t requests) override {
    const size_t local = size_t(place.rank - ranks.first);
    CudaDevice &device = *devices[local];
    if (ncclWorld) {
      Expected<std::unique_ptr<NcclCommunicator>> made = NcclCommunicator::create(
          *nccl, *ncclWorld, *plane, *plan, device, *reductions, place, requests, options.inRankOrder);
      if (!made.ok())
        return told(made.status());
      communicators[local] = made->get();
      return std::unique_ptr<Communicator>(std::move(*made));
    }
    // Peers meet on the host, in every step.
    if (talks(*plan))
      device.forgetSteps(true);
    Expected<std::unique_ptr<PeerCommunicator>> made =
        PeerCommunicator::create(peers, device, *reductions, place, requests);
    if (!made.ok())
      return made.status();
    return std::unique_ptr<Communicator>(std::move(*made));
  }

  void fail(const Status &error) override {
    failed = true;
    if (plane)
      plane->fail(error);
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      gpu->forgive();
  }

  Status agree(const Status &mine, bool *answer) override {
    if (!plane)
      return mine;
    if (failed || !mine.ok())
      quieten();
    failed = false;
    const Status verdict = plane->agree(mine, answer);
    const bool wasReady = isReady;
    isReady |= verdict.ok();
    if (verdict.ok() || !ncclWorld || !wasReady)
      return verdict;
    if (!plane->lost().ok()) {
      ncclWorld->giveUp(verdict);
      return verdict;
    }
    // Some process has given its communicators up, so all do.
    quieten();
    Status renewed = ncclWorld->renew(cards());
    if (!renewed.ok())
      ncclWorld->giveUp(verdict);
    return renewed.ok() ? verdict : renewed;
  }
  void watch(const RankWatch *watched) override {
    if (plane)
      plane->watch(watched);
  }
  Expected<std::vector<std::string>> exchange(const std::string &mine) override { return plane->exchange(mine); }
  bool reachesOwners() const override { return !ncclWorld; }

private:
  /// Reports an error to the other ranks, since they may wait for this one before the first step.
  Status told(const Status &status) {
    if (!status.ok() && (ncclWorld || isOneOfMany))
      plane->fail(status);
    return status;
  }

  /// Work that a failed run has enqueued must not write into the next one.
  void quieten() {
    for (NcclCommunicator *communicator : communicators)
      if (communicator)
        communicator->abort();
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      if (Status drained = gpu->drain(); !drained.ok())
        plane->fail(drained);
  }

  std::vector<CardId> cards() const {
    std::vector<CardId> list;
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      std::memcpy(list.emplace_back().data(), gpu->uuid().bytes, sizeof(CardId));
    return list;
  }

  Status start(const plan::Plan &plan) {
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
    if (options.cudnn && hasAttentions(plan)) {
      Expected<Cudnn> library = loadCudnn(options.libraryFolder);
      if (library.ok())
        dnn = *library;
      else if (options.note)
        options.note("attention runs on generated kernels, since cuDNN is not here: " + library.status().message());
    }
    reductions = std::make_unique<ReduceKernels>(driver);
    devices.resize(size_t(ranks.count));
    communicators.resize(size_t(ranks.count));
    HPC_RETURN_IF_ERROR(loadModule(plan));
    return connectGpus(plan);
  }

  /// By NCCL where every rank has a card, else by the reach of the cards.
  Status connectGpus(const plan::Plan &plan) {
    const bool isRankPerGpu = gpus.size() > 1 && options.ranksPerGpu == 1;
    if (isOneOfMany || (isRankPerGpu && !isJoined)) {
      Expected<Nccl> library = loadNccl(options.libraryFolder);
      if (library.ok()) {
        nccl = *library;
        ncclWorld = std::make_unique<NcclWorld>(*nccl, plan, peers->world(), ranks, *plane);
        return ncclWorld->renew(cards());
      }
      if (isOneOfMany)
        return library.status();
    }
    for (const std::unique_ptr<Gpu> &gpu : gpus)
      for (const std::unique_ptr<Gpu> &other : gpus)
        if (gpu != other)
          HPC_RETURN_IF_ERROR(gpu->reach(*other));
    return gpus[0]->enter();
  }

  Status openGpus() {
    if (isOneOfMany && options.ranksPerGpu > 1)
      return Status::error(ErrorKind::Usage, "--ranks-per-gpu=" + std::to_string(options.ranksPerGpu) +
                                                 " is for one process: several talk by NCCL, which wants a GPU for "
                                                 "each rank; leave the flag out, or start one process");
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
    // A launcher may show each process its own GPUs alone; else the processes of a machine take them in turn.
    const int64_t taken = plane->indexOnMachine() * needed, first = present == needed ? 0 : taken;
    if (first + needed > present)
      return Status::error(ErrorKind::Usage, "this process is number " + std::to_string(plane->indexOnMachine() + 1) +
                                                 " on its machine and needs " + std::to_string(needed) +
                                                 " GPUs after the " + std::to_string(taken) +
                                                 " of those before it, the machine has " + std::to_string(present) +
                                                 "; start fewer processes here");
    for (int64_t i = first; i < first + needed; ++i) {
      Expected<std::unique_ptr<Gpu>> gpu = Gpu::open(driver, int(i));
      if (!gpu.ok())
        return gpu.status();
      gpus.push_back(std::move(*gpu));
    }
    return gpus[0]->enter();
  }

  Status loadModule(const plan::Plan &plan) {
    Expected<std::vector<const plan::CodeModule *>> modules = plan::codeToRun(plan, "ptx", "--target=cuda");
    HPC_RETURN_IF_ERROR(modules.status());
    for (const plan::CodeModule *module : *modules) {
      for (const std::unique_ptr<Gpu> &gpu : gpus)
        if (gpu->capability() < module->capability)
          return Status::error(ErrorKind::Unsupported,
                               gpu->name() + " has compute capability " + std::to_string(gpu->capability()) +
                                   ", the plan's code needs " + std::to_string(module->capability));
      Expected<CodeLibrary> loaded = loadCode(driver, module->bytes);
      if (!loaded.ok())
        return loaded.status();
      code.push_back(std::move(*loaded));
      for (const std::string &symbol : module->symbols)
        homes[symbol] = code.size() - 1;
    }
    return Status::success();
  }

  const CudaOptions options;
  const bool isJoined, isOneOfMany; ///< with other sessions of this process; with other processes
  std::shared_ptr<PeerWorld> peers;
  std::unique_ptr<ControlPlane> plane; ///< null until load()
  const plan::Plan *plan = nullptr;
  RankRange ranks;
  bool isReady = false; ///< all processes were, once: there are steps to begin anew
  std::atomic<bool> failed{false};
  // Members below use those above, and are destroyed first.
  Driver driver;
  std::optional<CublasLt> blas;
  std::optional<Cudnn> dnn; ///< null: attention runs on kernels
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::vector<CodeLibrary> code;
  std::map<std::string, size_t> homes; ///< by kernel: the number of its code
  std::unique_ptr<ReduceKernels> reductions;
  std::optional<Nccl> nccl;
  std::unique_ptr<NcclWorld> ncclWorld;          ///< null: the ranks talk as peers
  std::vector<CudaDevice *> devices;             ///< by rank of this process; owned by the session
  std::vector<NcclCommunicator *> communicators; ///< likewise; null where they are peers
};

} // namespace

std::unique_ptr<Backend> createCudaBackend(const CudaOptions &options, std::shared_ptr<PeerWorld> world) {
  return std::make_unique<CudaBackend>(options, std::move(world), nullptr);
}

std::unique_ptr<Backend> createCudaBackend(const CudaOptions &options, std::unique_ptr<ControlPlane> plane) {
  return std::make_unique<CudaBackend>(options, nullptr, std::move(plane));
}

} // namespace hpc::cuda
