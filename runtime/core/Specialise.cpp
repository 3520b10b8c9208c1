#include "runtime/core/Specialise.h"

#include "runtime/core/EpilogueFusion.h"

namespace hpc {

/// Whether the device takes the product in every micro-batch.
static Expected<bool> takes(const plan::Plan &plan, const RankPlace &place, const plan::Gemm &gemm, const DeviceTraits &traits) {
  for (int64_t microBatch = 0; microBatch < plan.microBatches; ++microBatch) {
    const Place at{place.coordinate, microBatch, plan.ranksPerStage()};
    Expected<bool> fuses = traits.fuses({gemm, at(gemm.m), at(gemm.n), at(gemm.k), at(gemm.addToC) != 0, nullptr, nullptr, nullptr,
                                         gemm.epilogue->kind});
    if (!fuses.ok() || !*fuses)
      return fuses;
  }
  return true;
}

static Status fuseEpilogues(const plan::Plan &plan, const RankPlace &place, const DeviceTraits &traits, plan::Stage &stage) {
  for (plan::Program &program : stage.programs)
    for (ProductWithEpilogue &found : findFusedEpilogues(plan, stage, program)) {
      plan::Instruction &product = program.instructions[size_t(found.product)];
      Expected<bool> isTaken = takes(plan, place, found.gemm, traits);
      if (!isTaken.ok())
        return isTaken.status().at("gemm of node '" + product.node + "'");
      if (!*isTaken)
        continue;
      product.action = std::move(found.gemm);
      program.instructions[size_t(found.kernel)].when = 0;
    }
  return Status::success();
}

Expected<SpecialStage> specialise(const plan::Plan &plan, const RankPlace &place, const DeviceTraits &traits, bool storesOutputs) {
  const plan::Stage &given = plan.stages[size_t(place.stage)];
  if (!traits.fuses && !traits.worksInHostMemory)
    return SpecialStage{{std::shared_ptr<void>(), &given}, {}};
  auto stage = std::make_shared<plan::Stage>(given);
  if (traits.fuses)
    HPC_RETURN_IF_ERROR(fuseEpilogues(plan, place, traits, *stage));
  std::vector<DirectPort> directPorts;
  if (traits.worksInHostMemory)
    directPorts = findDirectPorts(plan, *stage, {place.coordinate, 0, plan.ranksPerStage()}, storesOutputs);
  for (const DirectPort &port : directPorts)
    stage->programs[size_t(port.program)].instructions[size_t(port.instruction)].when = 0;
  return SpecialStage{std::move(stage), std::move(directPorts)};
}

} // namespace hpc
