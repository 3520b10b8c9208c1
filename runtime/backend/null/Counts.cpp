// One executor per rank, one rank after the other: nothing blocks, so one thread is enough.
#include "runtime/backend/null/Counts.h"

#include "runtime/backend/null/NullBackend.h"
#include "runtime/core/Executor.h"

namespace hpc::null {

bool Counts::operator==(const Counts &other) const {
  auto all = [](const Counts &counts) {
    return std::tie(counts.flops, counts.gemms, counts.kernels, counts.copies, counts.loads, counts.stores,
                    counts.waits, counts.copiedBytes, counts.traffic);
  };
  return all(*this) == all(other);
}

/// Ports without data: null devices do not look.
static std::vector<Array> emptyArrays(const std::vector<plan::Port> &ports) {
  std::vector<Array> arrays;
  for (const plan::Port &port : ports)
    arrays.push_back({port.dtype, port.shape, {}});
  return arrays;
}

static Status countRank(const plan::Plan &plan, Backend &backend, RankPlace place) {
  const plan::Stage &stage = plan.stages[size_t(place.stage)];
  ThreadPool alone;
  Expected<std::unique_ptr<Device>> device = backend.createDevice(place, alone);
  if (!device.ok())
    return device.status();
  Expected<std::unique_ptr<Communicator>> communicator =
      backend.createCommunicator(place, Executor::requestCount(stage));
  if (!communicator.ok())
    return communicator.status();
  Expected<Arena> arena = Arena::create(stage, **device, false);
  if (!arena.ok())
    return arena.status();
  ExecutorOptions options;
  options.ranks = {0, plan.worldSize()};
  Expected<SpecialStage> special = specialise(plan, place, {}, /*storesOutputs=*/true);
  HPC_RETURN_IF_ERROR(special.status());
  Executor executor(plan, std::move(*special), place, **device, **communicator, *arena, options);
  WeightPacking unpacked; // null devices have no weights
  HPC_RETURN_IF_ERROR(executor.prepare(backend, unpacked));
  std::vector<Array> inputs = emptyArrays(plan.inputs), outputs = emptyArrays(plan.outputs);
  return executor.run(inputs, outputs, Outputs::Ordinary);
}

Expected<std::vector<Counts>> countRanks(const plan::Plan &plan) {
  std::vector<Counts> counts(size_t(plan.worldSize()));
  std::unique_ptr<Backend> backend = createNullBackend(counts);
  HPC_RETURN_IF_ERROR(backend->load(plan, {0, plan.worldSize()}, /*threads=*/1));
  const int64_t ranksPerStage = plan.ranksPerStage();
  for (int64_t rank = 0; rank < plan.worldSize(); ++rank)
    HPC_RETURN_IF_ERROR(countRank(plan, *backend, {rank, rank / ranksPerStage, rank % ranksPerStage}));
  return counts;
}

} // namespace hpc::null
